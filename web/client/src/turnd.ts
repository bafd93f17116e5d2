import { type Client, Code, createClient } from "@connectrpc/connect";
import { pause, systemClock } from "./clock.js";
import { TurndError } from "./errors.js";
import { Follower, type Followed } from "./follower.js";
import type { Reply as StoredReply, TurnInput } from "./gen/turns/v1/turn_pb.js";
import { ConversationService } from "./gen/turns/v1/conversation_service_pb.js";
import { OperatorService } from "./gen/turns/v1/operator_service_pb.js";
import { type GetTurnResponse, type RegenerateReplyResponse, type TurnEntry, TurnService } from "./gen/turns/v1/turn_service_pb.js";
import type {
  FollowRequest, HistoryRequest, Listening, RegenerateRequest, ResumeOptions, SendRequest, SteerRequest, Target, TurndOptions,
} from "./options.js";
import { insist } from "./reconnect.js";
import { sameInput, type TurnRecord } from "./record.js";
import { Reply } from "./reply.js";
import { ReplyLog } from "./reply_log.js";
import { defaultRetrySettings, type RetrySettings, type World } from "./settings.js";
import type { ReplySnapshot } from "./snapshot.js";
import { Latest } from "./latest.js";
import { Slots } from "./slots.js";
import { SafeStorage } from "./storage.js";
import { browserSurroundings } from "./surroundings.js";
import { transportOf } from "./transport.js";
import { inputOf } from "./turn_input.js";

/** Makes a client. */
export function createTurnd(options: TurndOptions = {}): Turnd {
  return new Turnd(options);
}

/**
 * A client of turnd. A turn has one identity, its id: it is minted and recorded before anything leaves the page, and every
 * repeat, whatever the reason for it, carries the same id and the same input, so that the server answers it with the one
 * reply that the turn has.
 */
export class Turnd {
  /** The raw client of turns. It tries nothing again. */
  readonly turns: Client<typeof TurnService>;
  /** The raw client of conversations. */
  readonly conversations: Client<typeof ConversationService>;
  /** The raw client for those who run the server; needs the scope `operator`. */
  readonly operator: Client<typeof OperatorService>;

  private readonly world: World;
  private readonly slots: Slots;
  /** The replies on their way on this page, by conversation and turn. */
  private readonly live = new Map<string, Reply>();
  /** The latest conversations that were opened here without an id, so that a double tap does not open two. */
  private readonly opened = new Latest();
  /** The latest turns that were sent or taken up here. */
  private readonly own = new Latest();

  constructor(options: TurndOptions) {
    const transport = transportOf(options);
    this.turns = createClient(TurnService, transport);
    this.conversations = createClient(ConversationService, transport);
    this.operator = createClient(OperatorService, transport);
    const { storage, onTrying = () => {} } = options;
    this.world = {
      clock: options.clock ?? systemClock,
      surroundings: options.surroundings ?? browserSurroundings,
      settings: settingsOf(options),
      onTrying,
    };
    const open = () => (storage === "memory" ? undefined : (storage ?? globalThis.localStorage));
    this.slots = new Slots(new SafeStorage(open, options.onStorageTrouble), this.world.clock, {
      prefix: options.storagePrefix ?? "turnd:",
      maxAge: options.maxRecordAge ?? 3_600_000,
      every: options.recordEvery ?? 1_000,
      onDropped: options.onRecordDropped ?? (() => {}),
    });
  }

  /**
   * Sends a turn and follows its reply. The turn is recorded before this returns, and leaves at once. A draft whose turn is
   * in flight already, on this page or another, is not sent as a second one: the reply of the first is returned or followed.
   */
  send(request: SendRequest): Reply {
    const now = this.world.clock.now();
    const input = inputOf(request, now);
    const { draft = "" } = request;
    const known = this.inFlightOf(request, input);
    if (known !== undefined) return this.attach(known, request);
    const { conversationId, turnId } = input;
    if (request.conversationId === undefined) this.opened.add(conversationId);
    this.slots.begin({ turnId, conversationId, input, draft, replyId: "", offset: 0, startTime: now });
    return this.reply({ conversationId, input, turnId, draft }, new ReplyLog(), request);
  }

  /** Follows a reply from an offset of its log, without sending anything that could make another attempt. */
  follow(request: FollowRequest): Reply {
    const { conversationId, turnId, replyId, offset = 0 } = request;
    return this.reply({ conversationId, ...(turnId !== undefined && { turnId }) }, new ReplyLog(replyId, offset), request);
  }

  /**
   * Goes on with what runs in a conversation: the turn in flight that this browser has recorded or, failing that, the reply
   * that the server says is running. It is undefined if there is neither. If a recorded turn's reply has failed meanwhile in
   * a way that another attempt may cure, resuming makes that attempt.
   */
  async resume(conversationId: string, options: ResumeOptions = {}): Promise<Reply | undefined> {
    const record = this.slots.load(conversationId);
    if (record !== undefined) return this.attach(record, options, options.from);
    const replyId = await this.runningReply(conversationId, options.signal);
    return replyId === "" ? undefined : this.follow({ conversationId, replyId, ...options });
  }

  /** The turns in flight that this browser has recorded, in all conversations. */
  inFlight(): TurnRecord[] {
    return this.slots.all();
  }

  /**
   * Forgets all turns in flight that this browser has recorded, with what the user said in them: for one who leaves a browser
   * that others use. It stops nothing; a turn that has not reached the server yet is sent by this page or not at all.
   */
  forgetRecords(): void {
    this.slots.clear();
  }

  /**
   * Calls back when another tab sends a turn in a conversation, with the reply to it; this tab then shows the same. It ends
   * by the function it returns.
   */
  onSentElsewhere(conversationId: string, callback: (reply: Reply) => void, listening: Listening = {}): () => void {
    let seen = this.slots.load(conversationId)?.turnId;
    return this.world.surroundings.onStorage((key) => {
      if (key !== undefined && this.slots.conversationOf(key) !== conversationId) return;
      const record = this.slots.load(conversationId);
      if (record === undefined || record.turnId === seen) return;
      seen = record.turnId;
      if (!this.own.has(record.turnId)) callback(this.attach(record, listening));
    });
  }

  /**
   * Stops a reply and returns it, without content, in the state it reached: abandoned, or complete if that came first. By a
   * turn's id, the turn's live reply is stopped. Those who follow it get its end as ever.
   */
  async cancel({ conversationId, signal, ...target }: SteerRequest): Promise<StoredReply | undefined> {
    const request = { conversationId, target: targetOf(target) };
    return (await insist(this.world, signal, () => this.turns.cancelReply(request, this.call(signal)))).reply;
  }

  /**
   * Stops what runs in a conversation: the turn in flight that this browser has recorded or, failing that, the reply that
   * the server says is running. It is undefined if there is neither.
   */
  async stop(conversationId: string, signal?: AbortSignal): Promise<StoredReply | undefined> {
    const call = { conversationId, ...(signal && { signal }) };
    const record = this.slots.load(conversationId);
    if (record !== undefined) return this.cancel({ ...call, turnId: record.turnId });
    const replyId = await this.runningReply(conversationId, signal);
    return replyId === "" ? undefined : this.cancel({ ...call, replyId });
  }

  /** Has a reply of a new generation made, which costs money; {@link Turnd.follow} reads it. A repeat makes no other. */
  async regenerate({ generation = 0, signal, ...request }: RegenerateRequest): Promise<RegenerateReplyResponse> {
    const full = { ...request, expectedGeneration: generation };
    return insist(this.world, signal, () => this.turns.regenerateReply(full, this.call(signal)));
  }

  /** Makes another finished reply of its turn the live one, below which the conversation goes on. It costs nothing. */
  async select(conversationId: string, replyId: string, signal?: AbortSignal): Promise<StoredReply | undefined> {
    return (await insist(this.world, signal, () => this.turns.selectReply({ conversationId, replyId }, this.call(signal)))).reply;
  }

  /** Reads a turn and its replies, the earliest first. */
  async turn({ conversationId, signal, ...target }: SteerRequest): Promise<GetTurnResponse> {
    const request = { conversationId, target: targetOf(target) };
    return insist(this.world, signal, () => this.turns.getTurn(request, this.call(signal)));
  }

  /**
   * The turns on the way to a leaf, the earliest first: at most `limit` of the latest, 200 if left out. It is empty for a
   * conversation that does not exist yet.
   */
  async history({ conversationId, leafId = "", limit = 200, signal }: HistoryRequest): Promise<TurnEntry[]> {
    const entries: TurnEntry[] = [];
    for (let pageToken = ""; entries.length < limit; ) {
      const request = { conversationId, leafId, pageToken, pageSize: Math.min(200, limit - entries.length) };
      const page = await orIfMissing(insist(this.world, signal, () => this.turns.listTurns(request, this.call(signal))));
      if (page === undefined) return [];
      entries.push(...page.entries);
      pageToken = page.nextPageToken;
      if (pageToken === "") break;
    }
    return entries.reverse();
  }

  /** The turn of a draft that is in flight, if there is one. */
  private inFlightOf(request: SendRequest, input: TurnInput): TurnRecord | undefined {
    const ids = request.conversationId === undefined ? this.opened : [input.conversationId];
    for (const conversationId of ids) {
      const record = this.slots.load(conversationId);
      if (record !== undefined && isDraft(record, request, { ...input, conversationId })) return record;
    }
    return undefined;
  }

  /** The reply to a turn that is in flight: the one on this page if the caller listens in no way of its own. */
  private attach(record: TurnRecord, listening: Listening, from: ResumeOptions["from"] = "start"): Reply {
    const live = this.live.get(keyOf(record));
    if (live !== undefined && listening.signal === undefined && listening.onEvent === undefined) return live;
    const { replyId, offset } = from === "cursor" ? this.slots.shownTo(record) : { replyId: record.replyId, offset: 0 };
    return this.reply({ ...record, sent: true }, new ReplyLog(replyId, offset), listening);
  }

  private reply(followed: Followed, log: ReplyLog, { signal, onEvent }: Listening): Reply {
    const key = keyOf(followed);
    if (followed.input !== undefined) this.own.add(followed.turnId ?? "");
    const keep = (reply: Reply) => {
      if (followed.input !== undefined && signal === undefined) this.live.set(key, reply);
    };
    const reply = new Reply({
      follow: (hand) => new Follower(followed, log, this.turns, this.world, this.slots, hand),
      stop: ({ snapshot }) => this.stopReply(followed, snapshot),
      signal,
      onEvent,
      onIdle: (idle) => {
        if (this.live.get(key) === idle) this.live.delete(key);
      },
      onStart: keep,
    });
    reply.start();
    return reply;
  }

  /** Stops a reply. A turn that is not there may still be on its way, so it is looked for once more. */
  private async stopReply(followed: Followed, snapshot: ReplySnapshot): Promise<StoredReply | undefined> {
    const request = { conversationId: followed.conversationId, ...nameOf(followed, snapshot) };
    try {
      return await this.cancel(request);
    } catch (thrown) {
      if (followed.input === undefined || !isMissing(thrown)) throw thrown;
    }
    await pause(this.world.clock, this.world.settings.backoff);
    return orIfMissing(this.cancel(request));
  }

  /** A call that is not answered in the time that a stream may be silent is lost, too. */
  private call(signal: AbortSignal | undefined) {
    return { timeoutMs: this.world.settings.maxSilence, ...(signal && { signal }) };
  }

  private async runningReply(conversationId: string, signal: AbortSignal | undefined): Promise<string> {
    const answer = await orIfMissing(insist(this.world, signal, () =>
      this.conversations.getConversation({ conversationId }, this.call(signal))));
    return answer?.conversation?.runningReplyId ?? "";
  }
}

/** What a call brings; undefined if what it asks for does not exist. */
async function orIfMissing<A>(answer: Promise<A>): Promise<A | undefined> {
  try {
    return await answer;
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    throw thrown;
  }
}

const isMissing = (thrown: unknown) => thrown instanceof TurndError && thrown.code === Code.NotFound;

const keyOf = ({ conversationId, turnId = "" }: { conversationId: string; turnId?: string }) => `${conversationId} ${turnId}`;

function isDraft(record: TurnRecord, { draft = "", turnId }: SendRequest, input: TurnInput): boolean {
  const named = turnId === undefined ? record.draft === draft : record.turnId === input.turnId;
  return named && sameInput(record.input, input);
}

/** A turn that was sent goes by its own id, which also names one that waits in line, and whichever reply is live. */
function nameOf(followed: Followed, { turnId, replyId }: ReplySnapshot): Target {
  return followed.input !== undefined || replyId === "" ? { turnId } : { replyId };
}

function targetOf({ replyId, turnId }: Target) {
  return replyId === undefined
    ? ({ case: "turnId", value: turnId ?? "" } as const)
    : ({ case: "replyId", value: replyId } as const);
}

function settingsOf(options: TurndOptions): RetrySettings {
  const given = Object.entries(options).filter(([name, value]) => Object.hasOwn(defaultRetrySettings, name) && value !== undefined);
  return { ...defaultRetrySettings, ...Object.fromEntries(given) };
}
