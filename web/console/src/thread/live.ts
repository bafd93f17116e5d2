import { failureOf, type Failure } from "../api/failure";
import type { LiveSource } from "../api/turnd";
import type { ReplySnapshot } from "../api/turnd";

/** A reply that this page listens to, by the turn that it is for. */
export interface Live {
  readonly source: LiveSource;
  readonly snapshot: ReplySnapshot;
  /** Why listening ended before the reply did. */
  readonly failure: Failure | undefined;
}

// Deltas come by the hundred a second; what is seen of them changes this often.
const FRAME_MS = 40;

/** The replies that a page listens to. Leaving the page stops the listening and no reply. */
export class LiveReplies {
  private all: ReadonlyMap<string, Live> = new Map();
  private fresh = new Map<string, Live>();
  private timer: number | undefined;
  private readonly listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly current = (): ReadonlyMap<string, Live> => this.all;

  /** Listens to a reply until it ends. `turnId` names it from the start, `onEnd` hears of each end. */
  async listen(turnId: string, source: LiveSource, onEnd: () => void): Promise<void> {
    const was = this.fresh.get(turnId) ?? this.all.get(turnId);
    if (was && was.source !== source) was.source.leave();
    this.put(turnId, { source, snapshot: source.snapshot, failure: undefined });
    try {
      let introduced = source.snapshot.replyId;
      for await (const snapshot of source) {
        if (!this.holds(turnId, source)) return;
        this.put(turnId, { source, snapshot, failure: undefined });
        if (snapshot.replyId !== introduced || snapshot.end) {
          introduced = snapshot.replyId;
          onEnd();
        }
      }
    } catch (error) {
      if (this.holds(turnId, source)) this.put(turnId, { source, snapshot: source.snapshot, failure: failureOf(error) });
      onEnd();
    }
  }

  /** Forgets a turn that was never taken, or a reply that is shown from what is stored. */
  forget(turnId: string): void {
    this.fresh.delete(turnId);
    if (!this.all.has(turnId)) return;
    this.all.get(turnId)?.source.leave();
    this.all = new Map([...this.all].filter(([id]) => id !== turnId));
    for (const listener of this.listeners) listener();
  }

  /** Stops listening to all. */
  leave(): void {
    for (const live of [...this.all.values(), ...this.fresh.values()]) live.source.leave();
    this.fresh.clear();
    this.all = new Map();
  }

  private holds(turnId: string, source: LiveSource): boolean {
    return (this.fresh.get(turnId) ?? this.all.get(turnId))?.source === source;
  }

  private put(turnId: string, live: Live): void {
    this.fresh.set(turnId, live);
    this.timer ??= window.setTimeout(() => this.show(), FRAME_MS);
    if (!this.all.has(turnId) || live.snapshot.end) this.show();
  }

  private show(): void {
    window.clearTimeout(this.timer);
    this.timer = undefined;
    this.all = new Map([...this.all, ...this.fresh]);
    this.fresh.clear();
    for (const listener of this.listeners) listener();
  }
}
