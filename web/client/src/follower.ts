import { clone } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { pause } from "./clock.js";
import { milliseconds } from "./error_details.js";
import { lostLink, replyTooLarge, sameId, TurndError } from "./errors.js";
import { ErrorReason } from "./gen/turns/v1/error_pb.js";
import type { Accepted, Event } from "./gen/turns/v1/event_pb.js";
import { DeliveryResult } from "./gen/turns/v1/event_pb.js";
import { DeliverySource, RetryAdvice, type TurnInput, TurnInputSchema } from "./gen/turns/v1/turn_pb.js";
import type { TurnService } from "./gen/turns/v1/turn_service_pb.js";
import { eventsOfLink, type Open } from "./link.js";
import { drawBackoff, holdBack, untilOnline } from "./reconnect.js";
import { type EndEvent, isEnd, ReplyLog } from "./reply_log.js";
import type { World } from "./settings.js";
import type { Slots } from "./slots.js";

/** What is followed: a turn on its way, or a reply. */
export interface Followed {
  readonly conversationId: string;
  /** The turn to send; undefined if a reply is only followed. */
  readonly input?: TurnInput;
  /** The turn that is sent, or whose latest reply is followed. */
  readonly turnId?: string;
  readonly draft?: string;
  /** Whether an earlier delivery was made, or nearly. */
  readonly sent?: boolean;
}

/** How things stand with the link. */
export type LinkState = "idle" | "connecting" | "open" | "waiting" | "offline";

/** Sends a turn, or follows a reply, until a terminal event, over as many links as that takes. */
export class Follower {
  link: LinkState = "idle";
  generation = 0;
  result = DeliveryResult.UNSPECIFIED;
  queuePosition: number | undefined;
  restarts = 0;
  takenBack = 0;
  /** True from a restarted event until the other reply begins. */
  restarting = false;
  /** A terminal event was handed out and not answered by another attempt. */
  over = false;
  turnId: string;

  private sent: boolean;
  private begun = false;
  private progress = false;
  private again = 0;
  private holdOff = 0;

  constructor(
    readonly followed: Followed,
    readonly log: ReplyLog,
    private readonly turns: Client<typeof TurnService>,
    private readonly world: World,
    private readonly slots: Slots,
    private readonly hand: (event: Event | undefined) => void,
  ) {
    this.turnId = followed.turnId ?? "";
    this.sent = followed.sent ?? false;
  }

  /** Runs until the end, or until the caller leaves; it throws a TurndError if tries are of no more use. */
  async run(leave: AbortSignal): Promise<void> {
    try {
      await this.attempts(leave);
    } finally {
      this.flush();
      this.slots.forget(this.turnId);
    }
  }

  /** Writes the cursor as it is. */
  flush(): void {
    this.slots.flush(this.followed.conversationId, this.turnId);
  }

  private async attempts(leave: AbortSignal): Promise<void> {
    for (let fruitless = 0; !this.over && !leave.aborted; ) {
      if (this.holdOff > 0) {
        this.move("waiting");
        await pause(this.world.clock, this.holdOff, leave);
        this.holdOff = 0;
      }
      if (!this.world.surroundings.online()) this.move("offline");
      if (await untilOnline(this.world, leave)) fruitless = 0;
      if (leave.aborted) break;
      this.begun = this.progress = false;
      const error = await this.follow(leave);
      if (error === undefined || leave.aborted) {
        fruitless = 0;
        continue;
      }
      fruitless = this.progress ? 1 : fruitless + 1;
      await this.mend(error, fruitless, leave);
    }
    this.move("idle");
  }

  /** Makes ready for another attempt at the turn after it has ended. */
  reopen(delay: number): void {
    this.record();
    this.over = false;
    this.result = DeliveryResult.UNSPECIFIED;
    this.log.reopen();
    this.holdOff = delay;
  }

  /** Whether the turn is to be sent, or was, and no answer to it has come. */
  get unheard(): boolean {
    return this.followed.input !== undefined && this.result === DeliveryResult.UNSPECIFIED && this.log.replyId === "";
  }

  /** Clears the record of the turn. */
  forget(): void {
    this.slots.end(this.followed.conversationId, this.turnId);
  }

  /** Writes the record of the turn, from where it is shown. */
  record(): void {
    const { conversationId, input, draft = "" } = this.followed;
    if (input === undefined) return;
    const { replyId, offset } = this.log;
    const startTime = this.world.clock.now();
    this.slots.begin({ turnId: this.turnId, conversationId, input, draft, replyId, offset, startTime });
  }

  /** One link. It is undefined if a terminal event came. */
  private async follow(leave: AbortSignal): Promise<TurndError | undefined> {
    this.move("connecting");
    try {
      for await (const event of eventsOfLink(this.open, this.world, leave)) {
        this.link = "open";
        if (this.take(event)) return undefined;
      }
      return lostLink("the stream ended before a terminal event");
    } catch (thrown) {
      return TurndError.from(thrown);
    }
  }

  private readonly open: Open = (signal) => {
    const { conversationId, input } = this.followed;
    const { cursor } = this.log;
    if (input === undefined) {
      const target = cursor === undefined
        ? ({ case: "turnId", value: this.turnId } as const)
        : ({ case: "replyId", value: cursor.replyId } as const);
      return this.turns.followReply({ conversationId, target, offset: this.log.offset }, { signal });
    }
    const delivery = clone(TurnInputSchema, input);
    if (this.sent && delivery.source === DeliverySource.UNSPECIFIED) delivery.source = DeliverySource.CLIENT_RETRY;
    this.sent = true;
    return this.turns.turn({ input: delivery, ...(cursor && { cursor }) }, { signal });
  };

  /** Takes one event. It is true if the link has done its work. */
  private take(event: Event): boolean {
    const applied = this.log.apply(event);
    if (event.kind.case === "heartbeat") {
      this.progress = true;
      return false;
    }
    this.begun = true;
    const fresh = this.observe(event, applied);
    if (fresh === undefined) return false;
    if (isEnd(fresh)) return this.finish(fresh);
    if (fresh.nextOffset > fresh.offset) this.progress = true;
    this.hand(fresh);
    this.note(fresh);
    return false;
  }

  /** Takes note of what an event says beside the log. That something is as it was is no news. */
  private observe(event: Event, fresh: Event | undefined): Event | undefined {
    switch (event.kind.case) {
      case "accepted":
        return this.accept(event.kind.value) ? event : undefined;
      case "queued": {
        const known = this.queuePosition === event.kind.value.position;
        this.queuePosition = event.kind.value.position;
        if (!known) this.progress = true;
        return known ? undefined : event;
      }
      case "started":
        this.generation = Math.max(this.generation, event.kind.value.generation);
        this.queuePosition = undefined;
        this.restarting = false;
        return fresh;
      case "restarted":
        if (fresh?.kind.case === "restarted") {
          this.restarts++;
          if (!fresh.kind.value.continues) this.takenBack++;
          this.restarting = true;
        }
        return fresh;
      default:
        this.restarting = false;
        return fresh;
    }
  }

  private accept(accepted: Accepted): boolean {
    this.generation = Math.max(this.generation, accepted.turn?.generation ?? 0);
    if (this.result !== DeliveryResult.UNSPECIFIED) return false;
    this.result = accepted.result;
    return true;
  }

  /** The recorded cursor moves only after an event was handed out: what was not dealt with comes again. */
  private note(event: Event): void {
    const { cursor } = this.log;
    if (this.followed.input === undefined || cursor === undefined) return;
    const another = event.kind.case === "started" || event.kind.case === "restarted";
    this.slots.note(this.followed.conversationId, this.turnId, { replyId: cursor.replyId, offset: cursor.offset }, another);
  }

  /** The record of a turn that is over goes, then the caller hears of it. A held turn is not over. */
  private finish(event: EndEvent): boolean {
    this.progress = true;
    const { advice, delay } = endAdvice(event);
    const { settings, clock } = this.world;
    if (settings.retry === "auto" && this.followed.input && sameId(advice) && delay <= settings.maxWait && this.again < settings.maxAgain) {
      this.again++;
      this.reopen(Math.max(delay, drawBackoff(settings, clock.random(), this.again)));
      return true;
    }
    this.over = true;
    this.link = "idle";
    if (this.followed.input !== undefined && event.kind.case !== "held") this.forget();
    this.hand(event);
    return true;
  }

  /**
   * Decides about a link that was lost or refused, and waits before the next one. Once the server has begun to answer,
   * outcomes are events, so any status is a lost link, whatever it says.
   */
  private async mend(error: TurndError, fruitless: number, leave: AbortSignal): Promise<void> {
    if (error.cause === replyTooLarge || (!this.begun && !sameId(error.advice))) {
      this.settle(error);
      this.move("idle");
      throw error;
    }
    this.move("waiting");
    try {
      await holdBack(this.world, error, fruitless, leave);
    } catch (thrown) {
      this.move("idle");
      throw thrown;
    }
  }

  /**
   * Brings the record in line with a refusal: gone if it is the last word on the turn, without its cursor if that is what
   * was refused, so that the next try gets through.
   */
  private settle(error: TurndError): void {
    if (this.followed.input === undefined) return;
    if (error.settles) this.forget();
    else if (error.reason === ErrorReason.INVALID_CURSOR) {
      this.slots.note(this.followed.conversationId, this.turnId, { replyId: "", offset: 0 }, true);
    }
  }

  private move(link: LinkState): void {
    if (this.link === link) return;
    this.link = link;
    this.hand(undefined);
  }
}

/** What a terminal event advises, and how many milliseconds to wait first. */
export function endAdvice(event: EndEvent | undefined): { advice: RetryAdvice; delay: number } {
  switch (event?.kind.case) {
    case "abandoned":
    case "held":
      return { advice: event.kind.value.advice, delay: milliseconds(event.kind.value.retryDelay) };
    default:
      return { advice: RetryAdvice.UNSPECIFIED, delay: 0 };
  }
}
