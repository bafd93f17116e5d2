import { ErrorReason } from "./wire";
import { TurndError } from "./turnd";

/** Why a call failed, in words for people. */
export interface Failure {
  title: string;
  detail: string;
  /** The name of the reason, or nothing if it was not the server that failed. */
  reason: string;
  metadata: Readonly<Record<string, string>>;
}

const TITLES: Readonly<Partial<Record<ErrorReason, string>>> = {
  [ErrorReason.UNSPECIFIED]: "The server can't be reached",
  [ErrorReason.NOT_FOUND]: "There is no such thing here",
  [ErrorReason.CONVERSATION_DELETED]: "This conversation has been deleted",
  [ErrorReason.TURN_DELETED]: "This turn has been deleted",
  [ErrorReason.CONVERSATION_BUSY]: "Another reply of this conversation is running",
  [ErrorReason.WAITING_FOR_TOOLS]: "Some tool calls are still to be answered",
  [ErrorReason.RATE_LIMITED]: "Too many requests",
  [ErrorReason.QUOTA_EXCEEDED]: "The day's quota is used up",
  [ErrorReason.OVERLOADED]: "The server has its hands full",
  [ErrorReason.CAP_REACHED]: "A cap has been reached",
  [ErrorReason.STORE_UNAVAILABLE]: "The database can't be reached",
  [ErrorReason.PROVIDER_UNAVAILABLE]: "No model provider can be reached",
  [ErrorReason.UNAUTHENTICATED]: "The server wants to know who you are",
  [ErrorReason.SCOPE_MISSING]: "Your key may not do this",
  [ErrorReason.SUSPENDED]: "Your subject is suspended",
  [ErrorReason.REPLY_CHANGED]: "Another reply has taken this one's place",
  [ErrorReason.WRONG_STATE]: "That can't be done as things stand",
};

/** The words for anything that was thrown. */
export function failureOf(thrown: unknown): Failure {
  const { reason, message, metadata } = TurndError.from(thrown);
  const name = reason === ErrorReason.UNSPECIFIED ? "" : (ErrorReason[reason] ?? "");
  const detail = message.replace(/^(\[\w+\]|[A-Z_]+:) /, "");
  return { title: TITLES[reason] ?? "That did not work", detail, reason: name, metadata };
}
