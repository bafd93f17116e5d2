import { create } from "@bufbuild/protobuf";
import {
  type AbandonReason, BlockKind, DeliveryResult, type Event, EventSchema, type RetryAdvice, StopReason,
} from "../src/index.js";
import { utf8Length } from "../src/utf8.js";

export const conversation = "0190b6a0-0000-7000-8000-00000000c000";
export const turnA = "0190b6a0-0000-7000-8000-0000000000a0";
export const replyA = "0190b6a0-0000-7000-8000-0000000000a1";
export const replyB = "0190b6a0-0000-7000-8000-0000000000b1";

export const accepted = (result = DeliveryResult.NEW): Event =>
  create(EventSchema, { kind: { case: "accepted", value: { turn: { conversationId: conversation, turnId: turnA, generation: 1 }, result } } });

export const started = (replyId: string, attempt = 1): Event =>
  create(EventSchema, { replyId, kind: { case: "started", value: { attempt, generation: 1, epoch: 1n } } });

export const heartbeat = (replyId: string): Event => create(EventSchema, { replyId, kind: { case: "heartbeat", value: {} } });

export const queued = (position: number): Event => create(EventSchema, { kind: { case: "queued", value: { position } } });

export const restarted = (previousReplyId: string, replyId: string, offset = 0, continues = false): Event =>
  create(EventSchema, { replyId, offset, nextOffset: offset, kind: { case: "restarted", value: { previousReplyId, continues } } });

/** The log of one block, a delta for each piece. */
export function block(replyId: string, at: number, blockIndex: number, kind: BlockKind, pieces: string[], tool = ""): Event[] {
  const toolUseId = tool === "" ? "" : "call_1";
  const log = [event(replyId, at, at + 1, { case: "blockStarted", value: { blockIndex, kind, toolUseId, toolName: tool } })];
  at++;
  for (const text of pieces) {
    const next = at + utf8Length(text);
    log.push(event(replyId, at, next, { case: "delta", value: { blockIndex, kind, text } }));
    at = next;
  }
  return [...log, event(replyId, at, at + 1, { case: "blockCompleted", value: { blockIndex } })];
}

export const text = (replyId: string, ...pieces: string[]): Event[] => block(replyId, 0, 0, BlockKind.TEXT, pieces);

export const completed = (log: Event[]): Event =>
  endOf(log, { case: "completed", value: { stopReason: StopReason.END_TURN } });

export const abandoned = (log: Event[], reason: AbandonReason, advice: RetryAdvice, seconds = 0): Event =>
  endOf(log, { case: "abandoned", value: { reason, advice, retryDelay: { seconds: BigInt(seconds) }, partialLength: lengthOf(log) } });

export const held = (log: Event[], advice: RetryAdvice): Event => endOf(log, { case: "held", value: { advice } });

export const lengthOf = (log: Event[]): number => log.at(-1)?.nextOffset ?? 0;

type Kind = NonNullable<Parameters<typeof create<typeof EventSchema>>[1]>["kind"];

function event(replyId: string, offset: number, nextOffset: number, kind: Kind): Event {
  return create(EventSchema, { replyId, offset, nextOffset, ...(kind && { kind }) });
}

function endOf(log: Event[], kind: Kind): Event {
  return event(log.at(-1)?.replyId ?? "", lengthOf(log), lengthOf(log), kind);
}
