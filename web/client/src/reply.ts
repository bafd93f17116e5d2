import { Code } from "@connectrpc/connect";
import { sameId, TurndError } from "./errors.js";
import { endAdvice, type Follower } from "./follower.js";
import type { Event } from "./gen/turns/v1/event_pb.js";
import type { Reply as StoredReply } from "./gen/turns/v1/turn_pb.js";
import { type ReplySnapshot, snapshotOf } from "./snapshot.js";

/** What a {@link Reply} is made with. */
export interface ReplyInit {
  /** Makes the follower, which tells each change by the function it is given. */
  readonly follow: (hand: (event: Event | undefined) => void) => Follower;
  readonly stop: (reply: Reply) => Promise<StoredReply | undefined>;
  readonly onEvent?: ((event: Event) => void) | undefined;
  /** Leaves once it aborts. */
  readonly signal?: AbortSignal | undefined;
  readonly onIdle: (reply: Reply) => void;
  readonly onStart: (reply: Reply) => void;
}

/**
 * A reply on its way. Iterating it gives snapshots, the latest first and then one for each change that the loop is quick
 * enough to see; the last has an end. Any number of loops may run at once, and lost links do not show but in `link`.
 *
 * Leaving is not stopping: once all loops are left by `break`, or the signal has aborted, this stops listening and the
 * reply goes on at the server. Iterating again goes on where it was. {@link Reply.stop} is what stops it.
 */
export class Reply implements AsyncIterable<ReplySnapshot> {
  private readonly follower: Follower;
  private version = 0;
  private known: { version: number; snapshot: ReplySnapshot } | undefined;
  private running: { leave: AbortController; settled: Promise<void> } | undefined;
  private failure: TurndError | undefined;
  private waiting: (() => void)[] = [];
  private loops = 0;
  private wantedWhole = false;

  /** @internal */
  constructor(private readonly init: ReplyInit) {
    this.follower = init.follow((event) => this.changed(event));
  }

  get conversationId(): string {
    return this.follower.followed.conversationId;
  }

  /** The id of the turn that was sent; empty if a reply is followed by its own id. */
  get turnId(): string {
    return this.follower.turnId;
  }

  /** The reply as far as it is known now. */
  get snapshot(): ReplySnapshot {
    if (this.known?.version !== this.version) this.known = { version: this.version, snapshot: snapshotOf(this.follower) };
    return this.known.snapshot;
  }

  /**
   * The last snapshot, once there is an end, whichever it is. It rejects with a {@link TurndError} if tries are of no more
   * use, and as fetch does if this was left.
   */
  get done(): Promise<ReplySnapshot> {
    this.wantedWhole = true;
    return this.whenDone();
  }

  /**
   * Stops the reply and returns it in the state it reached. Loops get its end as ever. A turn that no answer has come to yet is
   * no longer sent; if it turns out not to have arrived, there is nothing to stop and loops just end.
   */
  async stop(): Promise<StoredReply | undefined> {
    const { unheard } = this.follower;
    if (unheard) {
      this.leave();
      this.follower.forget();
    }
    const stored = await this.init.stop(this);
    if (unheard && stored !== undefined) this.start();
    return stored;
  }

  /** Stops listening, and nothing else. */
  leave(): void {
    this.running?.leave.abort();
    this.follower.flush();
    this.wake();
  }

  /**
   * Sends the turn once more after its reply was abandoned or held, first waiting as long as the server asked for. It can
   * start another attempt, which can cost money. It throws if the advice was another, or if nothing has ended.
   */
  again(): this {
    const { advice, delay } = endAdvice(this.follower.log.end);
    if (!this.follower.over || this.follower.followed.input === undefined || !sameId(advice)) {
      throw new TurndError("sending the same turn again does not help", { code: Code.FailedPrecondition });
    }
    this.follower.reopen(delay);
    this.running?.leave.abort(); // what has ended may not have let go yet
    this.start();
    return this;
  }

  /** Begins, or goes on after leaving or after a failure. */
  start(): void {
    const earlier = this.running;
    if (earlier !== undefined && !earlier.leave.signal.aborted) return;
    if (this.follower.over || this.init.signal?.aborted === true) return;
    const leave = new AbortController();
    const left = () => this.leave();
    this.init.signal?.addEventListener("abort", left, { once: true });
    this.failure = undefined;
    const run = { leave, settled: this.run(leave, earlier?.settled) };
    this.running = run;
    this.init.onStart(this);
    void run.settled.then(() => {
      this.init.signal?.removeEventListener("abort", left);
      if (this.running !== run) return;
      this.running = undefined;
      this.changed(undefined);
      this.init.onIdle(this);
    });
  }

  /** Runs the follower, once what was left before has let go of it. */
  private async run(leave: AbortController, earlier: Promise<void> | undefined): Promise<void> {
    if (earlier !== undefined) await earlier;
    try {
      await this.follower.run(leave.signal);
    } catch (thrown) {
      if (!leave.signal.aborted) this.failure = TurndError.from(thrown);
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ReplySnapshot, void, undefined> {
    this.loops++;
    try {
      this.start();
      for (let seen = -1; ; ) {
        if (seen !== this.version) {
          seen = this.version;
          yield this.snapshot;
        } else if (this.failure !== undefined) throw this.failure;
        else if (this.running === undefined || this.running.leave.signal.aborted) return;
        else await new Promise<void>((resolve) => this.waiting.push(resolve));
      }
    } finally {
      this.loops--;
      if (this.loops === 0 && !this.wantedWhole) this.leave();
    }
  }

  private async whenDone(): Promise<ReplySnapshot> {
    this.start();
    await this.running?.settled;
    if (this.failure !== undefined) throw this.failure;
    if (!this.follower.over) throw this.init.signal?.reason ?? new DOMException("the reply was left", "AbortError");
    return this.snapshot;
  }

  private changed(event: Event | undefined): void {
    this.version++;
    this.wake();
    if (event !== undefined) this.tell(event);
  }

  /** A fault of the caller's own code is the page's to report, and no reason to lose the link. */
  private tell(event: Event): void {
    try {
      this.init.onEvent?.(event);
    } catch (fault) {
      queueMicrotask(() => {
        throw fault;
      });
    }
  }

  private wake(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }
}
