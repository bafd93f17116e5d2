import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { TurndError } from "./errors.js";
import { type TurnInput, TurnInputSchema } from "./gen/turns/v1/turn_pb.js";
import type { BlockInit, SendRequest } from "./options.js";
import { asUuid, newTurnId } from "./turn_id.js";

/** The turn that a request asks for, with ids minted where there are none. */
export function inputOf(request: SendRequest, now: number): TurnInput {
  const { options, onBusy, onDisconnect, onAmbiguous, onPartial, overrideNoProgress } = request;
  return create(TurnInputSchema, {
    conversationId: idOf("conversationId", request.conversationId, now),
    turnId: idOf("turnId", request.turnId, now),
    content: contentOf(request),
    ...parentOf(request.parent),
    ...defined({ options, onBusy, onDisconnect, onAmbiguous, onPartial, overrideNoProgress }),
  });
}

function contentOf({ text, content = [] }: SendRequest): BlockInit[] {
  return text === undefined ? [...content] : [textBlock(text), ...content];
}

/** A block of plain text. */
export function textBlock(text: string): BlockInit {
  return { kind: { case: "text", value: { text } } };
}

function parentOf(parent: string | undefined) {
  if (parent === undefined) return {};
  if (parent === "root") return { parent: { case: "root", value: true } } as const;
  return { parent: { case: "parentId", value: parent } } as const;
}

function idOf(field: string, id: string | undefined, now: number): string {
  if (id === undefined || id === "") return newTurnId(now);
  const uuid = asUuid(id);
  if (uuid !== undefined) return uuid;
  throw new TurndError(`${field} is no UUID; derive one by turnIdFor from an id of another form`, { code: Code.InvalidArgument });
}

/** The fields that are there. */
function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
