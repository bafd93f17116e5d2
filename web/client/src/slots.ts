import type { Clock } from "./clock.js";
import { decodeRecord, encodeRecord, type TurnRecord } from "./record.js";
import type { SafeStorage } from "./storage.js";
import { asUuid } from "./turn_id.js";

/** A record that was dropped, and why. */
export interface DroppedRecord {
  readonly conversationId: string;
  readonly why: "corrupt" | "stale";
}

/** How far a reply was dealt with. */
export interface ShownTo {
  readonly replyId: string;
  readonly offset: number;
}

/** How many turns are remembered as shown on this page. */
const maxShown = 64;

/**
 * The places for turns in flight: one a conversation, in storage that other tabs share. A reply whose turn has been replaced
 * there by a later one can no longer write to it.
 */
export class Slots {
  private readonly written = new Map<string, number>();
  private readonly unwritten = new Map<string, ShownTo>();
  /** By turn, how far this page has come. A record tells how far any page has. */
  private readonly shown = new Map<string, ShownTo>();

  constructor(
    private readonly storage: SafeStorage,
    private readonly clock: Clock,
    private readonly options: {
      readonly prefix: string;
      readonly maxAge: number;
      readonly every: number;
      readonly onDropped: (dropped: DroppedRecord) => void;
    },
  ) {}

  /** Writes the record of a turn that is about to be sent. */
  begin(record: TurnRecord): void {
    this.storage.set(this.key(record.conversationId), encodeRecord(record));
  }

  /** The turn in flight of a conversation. One that is corrupt, too old or from the future is dropped. */
  load(conversationId: string): TurnRecord | undefined {
    const stored = this.storage.get(this.key(conversationId));
    if (stored === undefined) return undefined;
    const record = decodeRecord(stored);
    if (record === undefined || record.conversationId !== conversationId) return this.drop(conversationId, "corrupt");
    if (Math.abs(this.clock.now() - record.startTime) > this.options.maxAge) return this.drop(conversationId, "stale");
    return record;
  }

  /** The turns in flight of all conversations. */
  all(): TurnRecord[] {
    return this.storage
      .keys(this.options.prefix)
      .map((key) => this.conversationOf(key))
      .filter((conversationId) => conversationId !== undefined)
      .map((conversationId) => this.load(conversationId))
      .filter((record) => record !== undefined);
  }

  /**
   * Moves the cursor in the record of a turn. It is written now if it matters much, else when the last write is long enough
   * ago or at the next flush: a cursor that lags costs a few events that are read again.
   */
  note(conversationId: string, turnId: string, shown: ShownTo, now: boolean): void {
    this.unwritten.set(turnId, shown);
    this.shown.delete(turnId);
    this.shown.set(turnId, shown);
    const [oldest] = this.shown.keys();
    if (this.shown.size > maxShown && oldest !== undefined) this.shown.delete(oldest);
    const last = this.written.get(turnId) ?? -Infinity;
    if (now || this.clock.now() - last >= this.options.every) this.flush(conversationId, turnId);
  }

  /** How far a turn in flight is shown: on this page if it was shown here, else as its record says. */
  shownTo(record: TurnRecord): ShownTo {
    return this.shown.get(record.turnId) ?? record;
  }

  /** Writes what a note has left unwritten. */
  flush(conversationId: string, turnId: string): void {
    const shown = this.unwritten.get(turnId);
    if (shown === undefined) return;
    this.unwritten.delete(turnId);
    const record = this.read(conversationId);
    if (record?.turnId !== turnId) return;
    this.written.set(turnId, this.clock.now());
    this.storage.set(this.key(conversationId), encodeRecord({ ...record, ...shown }));
  }

  /** Clears the record of a turn that is over. */
  end(conversationId: string, turnId: string): void {
    this.forget(turnId);
    this.shown.delete(turnId);
    if (this.read(conversationId)?.turnId === turnId) this.storage.remove(this.key(conversationId));
  }

  /** Clears the records of all turns, also of those that are too old or corrupt. */
  clear(): void {
    for (const key of this.storage.keys(this.options.prefix)) {
      if (this.conversationOf(key) !== undefined) this.storage.remove(key);
    }
    this.unwritten.clear();
    this.shown.clear();
    this.written.clear();
  }

  /** Lets go of what is kept here for a turn that nobody follows any more. */
  forget(turnId: string): void {
    this.written.delete(turnId);
    this.unwritten.delete(turnId);
  }

  /**
   * The conversation whose record a key of the storage holds; undefined for other keys, among them those of a client whose
   * prefix begins with this one.
   */
  conversationOf(key: string): string | undefined {
    return key.startsWith(this.options.prefix) ? asUuid(key.slice(this.options.prefix.length)) : undefined;
  }

  /** What is stored, however old: a reply that is being read is not given up for its age. */
  private read(conversationId: string): TurnRecord | undefined {
    const stored = this.storage.get(this.key(conversationId));
    return stored === undefined ? undefined : decodeRecord(stored);
  }

  private drop(conversationId: string, why: DroppedRecord["why"]): undefined {
    this.storage.remove(this.key(conversationId));
    this.options.onDropped({ conversationId, why });
    return undefined;
  }

  private key(conversationId: string): string {
    return this.options.prefix + conversationId;
  }
}
