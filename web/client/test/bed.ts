import { Code, ConnectError, createRouterTransport, type Transport } from "@connectrpc/connect";
import {
  type CancelReplyRequest, ConversationService, createTurnd, type Event, type FollowReplyRequest, type RegenerateReplyRequest,
  type TurndOptions, type TurnEntry, type TurnRequest, TurnService,
} from "../src/index.js";

/** One answer to a stream: its events, and how it ends after them. */
export interface Answer {
  readonly events: Event[];
  /** A status to end with, or `hang` to say nothing until the caller has gone; in good order if left out. */
  readonly end?: ConnectError | "hang";
}

/** A clock that moves only when somebody waits, and a server that gives the answers it was given, one a call. */
export class Bed {
  readonly turns: TurnRequest[] = [];
  readonly follows: FollowReplyRequest[] = [];
  readonly cancels: CancelReplyRequest[] = [];
  readonly regenerates: RegenerateReplyRequest[] = [];
  readonly waits: number[] = [];
  /** What the server says when it is asked. */
  runningReplyId = "";
  regeneratedReplyId = "";
  /** How many calls to stop find nothing. */
  missing = 0;
  entries: TurnEntry[] = [];
  now = 1_800_000_000_000;
  private next = 0;
  readonly transport: Transport;

  constructor(private readonly answers: Answer[]) {
    const bed = this;
    this.transport = createRouterTransport(({ service }) => {
      service(TurnService, {
        async *turn(request, context) {
          bed.turns.push(request);
          for await (const event of bed.answer(context.signal)) yield { event };
        },
        async *followReply(request, context) {
          bed.follows.push(request);
          for await (const event of bed.answer(context.signal)) yield { event };
        },
        cancelReply: (request) => {
          bed.cancels.push(request);
          if (bed.cancels.length <= bed.missing) throw new ConnectError("there is none", Code.NotFound);
          return { reply: { replyId: bed.runningReplyId } };
        },
        regenerateReply: (request) => {
          bed.regenerates.push(request);
          return { reply: { replyId: bed.regeneratedReplyId } };
        },
        getTurn: ({ target }) => {
          const known = bed.entries.find(({ turn }) => turn?.turnId === target.value);
          if (known?.turn === undefined) throw new ConnectError("there is none", Code.NotFound);
          return { turn: known.turn, replies: known.reply === undefined ? [] : [known.reply] };
        },
        listTurns: () => ({ entries: bed.entries }),
      });
      service(ConversationService, {
        getConversation: ({ conversationId }) => {
          if (bed.runningReplyId === "") throw new ConnectError("there is none", Code.NotFound);
          return { conversation: { conversationId, runningReplyId: bed.runningReplyId } };
        },
      });
    });
  }

  turnd(options: TurndOptions = {}) {
    return createTurnd({
      transport: this.transport,
      storage: "memory",
      clock: {
        now: () => this.now,
        random: () => 0.5,
        after: (ms, callback) => {
          if (ms >= 45_000) return () => {};
          this.waits.push(ms);
          this.now += ms;
          queueMicrotask(callback);
          return () => {};
        },
      },
      ...options,
    });
  }

  private async *answer(signal: AbortSignal): AsyncGenerator<Event> {
    const answer = this.answers[this.next++];
    if (answer === undefined) throw new ConnectError("more calls came than were expected", Code.OutOfRange);
    yield* answer.events;
    if (answer.end === "hang") await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    else if (answer.end !== undefined) throw answer.end;
  }
}
