import { milliseconds } from "./error_details.js";
import type { Follower, LinkState } from "./follower.js";
import type { Cursor, DeliveryResult } from "./gen/turns/v1/event_pb.js";
import { AbandonReason, RetryAdvice, type StopReason, type Usage } from "./gen/turns/v1/turn_pb.js";
import type { EndEvent, ReplyBlock } from "./reply_log.js";

/**
 * How a reply stands: `sending` until the server has answered, `queued` while its turn waits in line, `restarted` from the
 * moment another reply takes its place until that one begins. The last three are ends; of them `held` and `abandoned` are
 * ends of the stream only, and the reply can go on if it is followed again.
 */
export type ReplyState = "sending" | "queued" | "running" | "restarted" | "completed" | "abandoned" | "held";

/** How a reply ended. */
export type ReplyEnd =
  | { readonly kind: "completed"; readonly stopReason: StopReason; readonly usage: Usage | undefined }
  | {
      readonly kind: "abandoned";
      readonly reason: AbandonReason;
      /** What can be done, and how many milliseconds to wait first. */
      readonly advice: RetryAdvice;
      readonly retryDelay: number;
      /** How many bytes of the log are kept. */
      readonly partialLength: number;
      /** The error code of the provider, if it gave one. */
      readonly providerCode: string;
      readonly usage: Usage | undefined;
    }
  | { readonly kind: "held"; readonly advice: RetryAdvice; readonly retryDelay: number; readonly age: number };

/** A reply as far as it is known at one moment. It never changes. */
export interface ReplySnapshot {
  readonly state: ReplyState;
  readonly conversationId: string;
  /** The turn that was sent or followed; empty if a reply is followed by its own id. */
  readonly turnId: string;
  /** Empty before the first event of the reply. */
  readonly replyId: string;
  readonly blocks: readonly ReplyBlock[];
  /** What a person is to read: the blocks of text and of refusal, joined. */
  readonly text: string;
  readonly cursor: Cursor | undefined;
  readonly attempt: number;
  /** The turn's as far as it was told, which a regenerate is compared with. */
  readonly generation: number;
  readonly provider: string;
  readonly model: string;
  /** How the server took the first delivery that it accepted. */
  readonly delivery: DeliveryResult;
  /** How many turns come before this one, while it waits in line. */
  readonly queuePosition: number | undefined;
  /** How often another reply has taken the place of the one shown. */
  readonly restarts: number;
  /** How often what had been shown was taken back with that: all times but those in which the other reply continued it. */
  readonly takenBack: number;
  readonly end: ReplyEnd | undefined;
  readonly link: LinkState;
}

/** Takes a snapshot. */
export function snapshotOf(follower: Follower): ReplySnapshot {
  const { log, followed } = follower;
  return {
    state: stateOf(follower),
    conversationId: followed.conversationId,
    turnId: follower.turnId,
    replyId: log.replyId,
    blocks: log.snapshot(),
    text: log.text,
    cursor: log.cursor,
    attempt: log.started?.attempt ?? 0,
    generation: follower.generation,
    provider: log.started?.provider ?? "",
    model: log.started?.model ?? "",
    delivery: follower.result,
    queuePosition: follower.queuePosition,
    restarts: follower.restarts,
    takenBack: follower.takenBack,
    end: endOf(log.end),
    link: follower.link,
  };
}

function stateOf({ log, queuePosition, restarting }: Follower): ReplyState {
  if (log.end !== undefined) return log.end.kind.case;
  if (restarting) return "restarted";
  if (log.started !== undefined || log.offset > 0) return "running";
  return queuePosition === undefined ? "sending" : "queued";
}

function endOf(event: EndEvent | undefined): ReplyEnd | undefined {
  switch (event?.kind.case) {
    case "completed": {
      const { stopReason, usage } = event.kind.value;
      return { kind: "completed", stopReason, usage };
    }
    case "abandoned": {
      const { reason, advice, retryDelay, partialLength, providerCode, usage } = event.kind.value;
      return { kind: "abandoned", reason, advice, retryDelay: milliseconds(retryDelay), partialLength, providerCode, usage };
    }
    case "held": {
      const { advice, retryDelay, age } = event.kind.value;
      return { kind: "held", advice, retryDelay: milliseconds(retryDelay), age: milliseconds(age) };
    }
    default:
      return undefined;
  }
}
