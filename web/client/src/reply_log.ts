import { clone, create, equals } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { lostLink, replyTooLarge, TurndError } from "./errors.js";
import { BlockKind } from "./gen/turns/v1/content_pb.js";
import {
  type Cursor, CursorSchema, type Delta, type Event, EventSchema, type Restarted, type Started, StartedSchema,
} from "./gen/turns/v1/event_pb.js";
import { cutUtf8, utf8Length } from "./utf8.js";

/** The bytes that a log gathers at most. A server's own limit is 8 MiB a reply by default. */
const maxReplyBytes = 64 * 1024 * 1024;
/** How many replies are remembered as replaced; a turn's budget of attempts is far smaller. */
const maxReplaced = 16;

/** One piece of a reply as far as it is known. */
export interface ReplyBlock {
  /** What `text` is: text, reasoning, words of refusal, or JSON of a tool's input. */
  readonly kind: BlockKind;
  /** Its number in the log of its reply. */
  readonly index: number;
  readonly text: string;
  /** Identifies the call of a tool; else empty. */
  readonly toolUseId: string;
  /** Names the tool of a call; else empty. */
  readonly toolName: string;
  /** Whether the block is closed. */
  readonly done: boolean;
}

/** A terminal event. */
export type EndEvent = Event & { kind: Extract<Event["kind"], { case: "completed" | "abandoned" | "held" }> };

interface GrowingBlock {
  kind: BlockKind;
  index: number;
  text: string;
  toolUseId: string;
  toolName: string;
  done: boolean;
  /** Belongs to a reply that the present one continues in a log of its own. */
  earlier: boolean;
}

/**
 * Gathers the events of a reply. It goes by their offsets, which count bytes of UTF-8, and by nothing else: events may come
 * again, and cut otherwise than before, from one stream or from several; each byte of the log is taken once.
 */
export class ReplyLog {
  private blocks: GrowingBlock[] = [];
  private size = 0;
  private replaced: string[] = [];
  private startedEvent: Started | undefined;
  private endEvent: EndEvent | undefined;

  /** A log that is known up to an offset already holds only what comes after it. An empty id takes the first reply. */
  constructor(
    private id = "",
    private next = 0,
  ) {}

  /** The id of the reply; empty before the first of its events. */
  get replyId(): string {
    return this.id;
  }

  /** Up to which offset the log is known. */
  get offset(): number {
    return this.next;
  }

  /** Where to go on; undefined before the reply's id is known. */
  get cursor(): Cursor | undefined {
    return this.id === "" ? undefined : create(CursorSchema, { replyId: this.id, offset: this.next });
  }

  /** The latest introduction of an attempt. */
  get started(): Started | undefined {
    return this.startedEvent;
  }

  /** The terminal event, if there is one. After one of kind held or abandoned the reply can go on. */
  get end(): EndEvent | undefined {
    return this.endEvent;
  }

  /** What a person is to read: the blocks of text and of refusal, joined. */
  get text(): string {
    return this.blocks.filter((b) => b.kind === BlockKind.TEXT || b.kind === BlockKind.REFUSAL).map((b) => b.text).join("");
  }

  /** All blocks in their order. */
  snapshot(): readonly ReplyBlock[] {
    return this.blocks.map(({ earlier: _, ...block }) => block);
  }

  /**
   * Takes an event and returns what of it is new: the event itself, a delta cut to its new part, or undefined if all of it
   * was known. After an event of kind restarted the log is empty, unless the event says that it continues. It throws, and
   * changes nothing, if something between is missing or the event is another reply's: then the events have to be had again
   * from the cursor on.
   */
  apply(event: Event): Event | undefined {
    switch (event.kind.case) {
      case "accepted":
      case "queued":
      case "heartbeat":
        return event;
      case "restarted":
        return this.restart(event, event.kind.value);
      case undefined:
        if (event.replyId === "") return undefined;
    }
    if (this.replaced.includes(event.replyId)) return undefined;
    if (this.id !== "" && event.replyId !== this.id) throw lostLink("the event belongs to another reply");
    if (event.offset > this.next) {
      throw lostLink(`the event begins at ${event.offset} and the log is known up to ${this.next}`);
    }
    return this.grow(event);
  }

  /** Takes back an end that is not for ever, before the reply is followed again. */
  reopen(): void {
    if (this.endEvent?.kind.case !== "completed") this.endEvent = undefined;
  }

  private grow(event: Event): Event | undefined {
    if (this.endEvent?.kind.case === "completed") return undefined;
    switch (event.kind.case) {
      case "started":
        return this.begin(event, event.kind.value);
      case "completed":
      case "abandoned":
      case "held":
        return this.finish(event as EndEvent);
    }
    if (event.nextOffset <= this.next) return undefined;
    const size = this.size + event.nextOffset - this.next;
    if (size > maxReplyBytes) {
      throw new TurndError(replyTooLarge.message, { code: Code.ResourceExhausted, cause: replyTooLarge });
    }
    const fresh = event.kind.case === "delta" ? this.cut(event, event.kind.value) : event;
    this.add(fresh);
    this.id = event.replyId;
    this.next = event.nextOffset;
    this.size = size;
    this.endEvent = undefined;
    return fresh;
  }

  private add({ kind }: Event): void {
    switch (kind.case) {
      case "blockStarted": {
        const { kind: blockKind, blockIndex, toolUseId, toolName } = kind.value;
        this.blocks.push({ kind: blockKind, index: blockIndex, text: "", toolUseId, toolName, done: false, earlier: false });
        return;
      }
      case "delta":
        this.blockOf(kind.value).text += kind.value.text;
        return;
      case "blockCompleted": {
        const block = this.find(kind.value.blockIndex);
        if (block !== undefined) block.done = true;
      }
    }
  }

  private begin(event: Event, started: Started): Event | undefined {
    this.id = event.replyId;
    if (this.startedEvent !== undefined && equals(StartedSchema, this.startedEvent, started)) return undefined;
    this.startedEvent = started;
    this.endEvent = undefined;
    return event;
  }

  private finish(event: EndEvent): Event | undefined {
    this.id = event.replyId;
    if (this.endEvent !== undefined && equals(EventSchema, this.endEvent, event)) return undefined;
    this.endEvent = event;
    return event;
  }

  /**
   * Moves to another reply. An event that does not start from the present reply and leads to one that was left before is a
   * late repeat; otherwise the way back to an earlier reply is open, since a person can select it again.
   */
  private restart(event: Event, restarted: Restarted): Event | undefined {
    if (event.replyId === this.id) return undefined;
    if (restarted.previousReplyId !== this.id && this.replaced.includes(event.replyId)) return undefined;
    const continues = restarted.continues && (event.offset === 0 || event.offset === this.next);
    const fresh = restarted.continues && !continues ? withoutContinues(event) : event;
    this.forget(event.replyId);
    this.id = event.replyId;
    this.startedEvent = undefined;
    this.endEvent = undefined;
    if (!continues) {
      this.next = 0;
      this.size = 0;
      this.blocks = [];
    } else if (event.offset === 0) {
      this.next = 0;
      for (const block of this.blocks) block.earlier = true;
    }
    return fresh;
  }

  private forget(successor: string): void {
    this.replaced = this.replaced.filter((id) => id !== successor);
    if (this.id !== "") this.replaced = [...this.replaced, this.id].slice(-maxReplaced);
  }

  /** Takes off a delta what is known already. */
  private cut(event: Event, delta: Delta): Event {
    const bytes = utf8Length(delta.text);
    if (event.nextOffset - event.offset !== bytes) {
      throw lostLink(`the offsets of a delta are ${event.offset} and ${event.nextOffset} and its text has ${bytes} bytes`);
    }
    const known = this.next - event.offset;
    if (known === 0) return event;
    const text = cutUtf8(delta.text, known);
    if (text === undefined) throw lostLink(`the log is known up to ${this.next}, which is inside a rune`);
    const fresh = clone(EventSchema, event);
    fresh.offset = this.next;
    fresh.kind = { case: "delta", value: { ...delta, text } };
    return fresh;
  }

  /** The block that grows. One that was opened before the offset at which this log begins is made here. */
  private blockOf(delta: Delta): GrowingBlock {
    const known = this.find(delta.blockIndex);
    if (known !== undefined) return known;
    const block = { kind: delta.kind, index: delta.blockIndex, text: "", toolUseId: "", toolName: "", done: false, earlier: false };
    this.blocks.push(block);
    return block;
  }

  private find(index: number): GrowingBlock | undefined {
    return this.blocks.findLast((block) => !block.earlier && block.index === index);
  }
}

/** The new log takes over at a place that was not shown, or keeps less than was shown: it is read from its beginning. */
function withoutContinues(event: Event): Event {
  const fresh = clone(EventSchema, event);
  if (fresh.kind.case === "restarted") fresh.kind.value.continues = false;
  return fresh;
}

/** Whether an event ends a stream. */
export function isEnd(event: Event): event is EndEvent {
  return event.kind.case === "completed" || event.kind.case === "abandoned" || event.kind.case === "held";
}
