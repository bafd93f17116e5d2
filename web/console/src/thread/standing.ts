import type { Failure } from "../api/failure";
import { ReplyStatus, type Conversation, type TurnEntry } from "../api/wire";
import type { Live } from "./live";

/** Whether something runs in a conversation, and for which turn as far as that is known. */
export interface Standing {
  busy: boolean;
  turnId: string | undefined;
}

/**
 * What runs in a conversation, by what is listened to and what was loaded. An end that was heard is newer than what was loaded,
 * which stays as it was if the conversation can't be loaded any more.
 */
export function standingOf(
  live: ReadonlyMap<string, Pick<Live, "snapshot" | "failure">>,
  entries: readonly TurnEntry[],
  conversation: Pick<Conversation, "runningReplyId"> | undefined,
): Standing {
  const ended = new Set([...live.values()].flatMap(({ snapshot }) => (snapshot.end ? [snapshot.replyId] : [])));
  const loaded = entries.find(({ reply }) => reply?.status === ReplyStatus.IN_FLIGHT && !ended.has(reply.replyId));
  const turnId = heard(live) ?? loaded?.turn?.turnId;
  const runs = conversation?.runningReplyId ?? "";
  return { turnId, busy: turnId !== undefined || (runs !== "" && !ended.has(runs)) };
}

function heard(live: ReadonlyMap<string, Pick<Live, "snapshot" | "failure">>): string | undefined {
  for (const [turnId, { snapshot, failure }] of live) {
    if (!failure && !snapshot.end && snapshot.state !== "queued" && snapshot.state !== "sending") return turnId;
  }
  return undefined;
}

/**
 * Whether a conversation was deleted, by why it can't be loaded. One that was shown and is nowhere any more was deleted too;
 * one that never was may still be made by its first turn.
 */
export function isGone(failures: readonly (Failure | undefined)[], wasShown: boolean): boolean {
  const reasons = failures.map((failure) => failure?.reason);
  return reasons.includes("CONVERSATION_DELETED") || (wasShown && reasons.includes("NOT_FOUND"));
}
