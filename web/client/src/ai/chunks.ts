import type { FinishReason, InferUIMessageChunk } from "ai";
import { BlockKind } from "../gen/turns/v1/content_pb.js";
import { AbandonReason, RetryAdvice, StopReason } from "../gen/turns/v1/turn_pb.js";
import type { ReplyBlock } from "../reply_log.js";
import type { ReplyEnd, ReplySnapshot } from "../snapshot.js";
import type { TurndUIMessage, TurnOfMessage } from "./message.js";

/** A chunk of a message's stream. */
export type Chunk = InferUIMessageChunk<TurndUIMessage>;

/**
 * Turns snapshots of one reply into chunks. Each snapshot is compared with what was written, so that however many changes
 * one brings at once, a slow reader gets longer deltas and not more of them.
 */
export class ChunkWriter {
  private begun = false;
  private replyId = "";
  private takenBack = 0;
  private position: number | undefined;
  private written: WrittenBlock[] = [];

  /** With `continues` the chunks belong to a message that is there already. */
  constructor(private readonly turnId: string, private readonly continues: boolean) {}

  /** The chunks that lead to a snapshot. */
  *write(snapshot: ReplySnapshot): Generator<Chunk> {
    if (snapshot.state === "queued" && snapshot.queuePosition !== this.position) {
      this.position = snapshot.queuePosition;
      yield { type: "data-turnd-queued", data: { position: this.position ?? 0 }, transient: true };
    }
    if (snapshot.replyId === "") return;
    yield* this.begin(snapshot);
    for (const [i, block] of snapshot.blocks.entries()) yield* this.grow(i, block);
    if (snapshot.end !== undefined) yield* this.finish(snapshot, snapshot.end);
  }

  private *begin(snapshot: ReplySnapshot): Generator<Chunk> {
    const { replyId, takenBack } = snapshot;
    if (replyId === this.replyId && takenBack === this.takenBack) return;
    const previousReplyId = this.replyId;
    this.replyId = replyId;
    if (!this.begun) {
      this.begun = true;
      yield { type: "start", ...(!this.continues && { messageId: replyId }), messageMetadata: this.metadata(snapshot) };
      yield { type: "start-step" };
    } else {
      if (takenBack !== this.takenBack) {
        this.written = [];
        yield { type: "reset-step" };
      }
      yield { type: "data-turnd-restarted", id: replyId, data: { previousReplyId, replyId } };
      yield { type: "message-metadata", messageMetadata: this.metadata(snapshot) };
    }
    this.takenBack = takenBack;
    yield { type: "data-turnd-reply", id: this.turnId, data: this.replyData(snapshot) };
  }

  private *grow(at: number, block: ReplyBlock): Generator<Chunk> {
    if (block.kind === BlockKind.OPAQUE) return;
    const shown = (this.written[at] ??= new WrittenBlock(`${this.replyId}-${at}`, block));
    yield* shown.write(block);
  }

  private *finish(snapshot: ReplySnapshot, end: ReplyEnd): Generator<Chunk> {
    for (const shown of this.written) if (shown !== undefined) yield* shown.close(end.kind === "completed");
    if (end.kind === "held") {
      const { retryDelay, age } = end;
      yield { type: "data-turnd-held", id: this.replyId, data: { replyId: this.replyId, retryDelay, age } };
    }
    yield { type: "finish-step" };
    const messageMetadata = this.metadata(snapshot);
    if (end.kind === "abandoned") {
      yield { type: "message-metadata", messageMetadata };
      const reason = AbandonReason[end.reason] ?? "UNSPECIFIED";
      if (isStop(end.reason)) yield { type: "abort", reason: reason.toLowerCase() };
      else yield { type: "error", errorText: `The reply was given up (${reason}). ${adviceInWords(end.advice, end.retryDelay)}` };
      return;
    }
    yield { type: "finish", finishReason: end.kind === "held" ? "other" : finishReason(end.stopReason), messageMetadata };
  }

  private metadata(snapshot: ReplySnapshot): { turnd: TurnOfMessage } {
    const { replyId, generation, attempt, provider, model, end } = snapshot;
    return { turnd: { turnId: this.turnId, replyId, generation, attempt, provider, model, ...(end && { end: end.kind }) } };
  }

  private replyData({ replyId, generation, attempt, provider, model }: ReplySnapshot) {
    return { turnId: this.turnId, replyId, generation, attempt, provider, model };
  }
}

/** One block as far as chunks of it were written. */
class WrittenBlock {
  private length = 0;
  private state: "new" | "open" | "closed" = "new";
  private text = "";

  constructor(private readonly id: string, private readonly block: ReplyBlock) {}

  *write({ text, done }: ReplyBlock): Generator<Chunk> {
    if (this.state === "new") {
      this.state = "open";
      yield this.start();
    }
    this.text = text;
    if (text.length > this.length) {
      yield this.delta(text.slice(this.length));
      this.length = text.length;
    }
    if (done) yield* this.close(true);
  }

  /** Closes the block if it is open, whole or not. */
  *close(whole: boolean): Generator<Chunk> {
    if (this.state !== "open") return;
    this.state = "closed";
    switch (this.block.kind) {
      case BlockKind.THINKING:
        yield { type: "reasoning-end", id: this.id };
        return;
      case BlockKind.TOOL_USE:
        yield this.call(whole);
        return;
      default:
        yield { type: "text-end", id: this.id };
    }
  }

  private start(): Chunk {
    const { kind } = this.block;
    if (kind === BlockKind.THINKING) return { type: "reasoning-start", id: this.id };
    if (kind === BlockKind.TOOL_USE) return { type: "tool-input-start", ...this.tool() };
    const refusal = kind === BlockKind.REFUSAL && { providerMetadata: { turnd: { refusal: true } } };
    return { type: "text-start", id: this.id, ...refusal };
  }

  private delta(delta: string): Chunk {
    const { kind, toolUseId } = this.block;
    if (kind === BlockKind.THINKING) return { type: "reasoning-delta", id: this.id, delta };
    if (kind === BlockKind.TOOL_USE) return { type: "tool-input-delta", toolCallId: toolUseId, inputTextDelta: delta };
    return { type: "text-delta", id: this.id, delta };
  }

  private call(whole: boolean): Chunk {
    const input = parseInput(this.text);
    if (whole && input.ok) return { type: "tool-input-available", ...this.tool(), input: input.value };
    const errorText = whole ? "The model wrote no valid JSON for this call." : "The reply ended before this call was whole.";
    return { type: "tool-input-error", ...this.tool(), input: this.text, errorText };
  }

  private tool() {
    return { toolCallId: this.block.toolUseId, toolName: this.block.toolName };
  }
}

/** The input of a call by its JSON; a call without any has an empty one. */
export function parseInput(json: string): { ok: true; value: unknown } | { ok: false } {
  try {
    return { ok: true, value: json.trim() === "" ? {} : JSON.parse(json) };
  } catch {
    return { ok: false };
  }
}

/** Why a reply is over that somebody put an end to. */
function isStop(reason: AbandonReason): boolean {
  return reason === AbandonReason.CANCELLED || reason === AbandonReason.SUPERSEDED || reason === AbandonReason.DISCONNECTED;
}

/** What a person is told to do next. */
export function adviceInWords(advice: RetryAdvice, delay: number): string {
  switch (advice) {
    case RetryAdvice.SAME_ID_NOW:
      return "Send the message again.";
    case RetryAdvice.SAME_ID_AFTER_WAIT:
      return `Send the message again${delay > 0 ? ` in ${Math.ceil(delay / 1000)} s` : " in a while"}.`;
    case RetryAdvice.NEW_ID:
      return "Say it in a new message.";
    case RetryAdvice.REGENERATE:
      return "Ask for another reply.";
    default:
      return "Sending it again does not help.";
  }
}

function finishReason(reason: StopReason): FinishReason {
  switch (reason) {
    case StopReason.END_TURN:
    case StopReason.STOP_SEQUENCE:
      return "stop";
    case StopReason.TOOL_USE:
      return "tool-calls";
    case StopReason.LENGTH:
    case StopReason.CONTEXT_EXCEEDED:
      return "length";
    case StopReason.REFUSAL:
    case StopReason.CONTENT_FILTER:
      return "content-filter";
    default:
      return "other";
  }
}
