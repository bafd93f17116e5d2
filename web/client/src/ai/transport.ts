import { Code } from "@connectrpc/connect";
import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";
import { sameId, TurndError } from "../errors.js";
import type { SendRequest } from "../options.js";
import type { Reply } from "../reply.js";
import type { ReplySnapshot } from "../snapshot.js";
import { asUuid } from "../turn_id.js";
import type { Turnd } from "../turnd.js";
import { ChunkWriter } from "./chunks.js";
import { contentOfMessage, resultsOfMessage, saysTheSame } from "./content.js";
import { conversationIdForChat, turnIdForEdit, turnIdForMessage, turnIdForResults } from "./ids.js";
import type { TurndMetadata } from "./message.js";

type SendOptions<M extends UIMessage> = Parameters<ChatTransport<M>["sendMessages"]>[0];
type ReconnectOptions<M extends UIMessage> = Parameters<ChatTransport<M>["reconnectToStream"]>[0];

/** What goes with a turn beside its content. */
export type TurnExtras = Omit<SendRequest, "text" | "content" | "conversationId" | "turnId" | "draft" | "signal" | "onEvent">;

/** The options of {@link TurndChatTransport}. */
export interface TurndChatTransportOptions<M extends UIMessage> {
  readonly turnd: Turnd;
  /** What goes with each turn, such as the options of its generation or what to do while another runs. */
  readonly extras?: TurnExtras | ((call: SendOptions<M>) => TurnExtras);
  /**
   * What an aborted call means. `leave`, the default: stop listening, and the reply goes on. `cancel`: stop the reply, too;
   * then a component that is unmounted stops it as much as a person does, since useChat aborts for both.
   */
  readonly onAbort?: "leave" | "cancel";
}

/** How many messages are remembered as sent or shown, for a later regenerate. */
const maxKnown = 256;

/**
 * Lets useChat of the AI SDK speak to turnd. Of a call only the last message is sent, as one turn whose id follows from the
 * message's, so that a message which is sent twice is answered once.
 *
 * Leaving is not stopping: useChat's own `stop` also runs when its component goes away, so all it does is to stop listening.
 * What a button calls to stop a reply is {@link TurndChatTransport.stop}; see also {@link withStop}.
 */
export class TurndChatTransport<M extends UIMessage = UIMessage> implements ChatTransport<M> {
  /** A stream that is taken up again brings the whole reply from its beginning. */
  readonly resumeStreamIsReplay = true;

  private readonly turnd: Turnd;
  private readonly known = new Map<string, KnownTurn>();
  /** The reply that is being streamed, by chat. */
  private readonly running = new Map<string, Reply>();

  constructor(private readonly options: TurndChatTransportOptions<M>) {
    this.turnd = options.turnd;
  }

  /** Sends the last message, or has another reply made to it. */
  async sendMessages(call: SendOptions<M>): Promise<ReadableStream<UIMessageChunk>> {
    const { messages, trigger, chatId } = call;
    const last = messages.at(-1);
    if (last === undefined) throw new TurndError("there is no message to send", { code: Code.InvalidArgument });
    if (trigger === "regenerate-message") return this.regenerate(call, last);
    if (last.role === "assistant") return this.answerCalls(call, last);
    const turn = await this.turnOf(call, last);
    const reply = this.send(call, { ...turn, content: contentOfMessage(last) });
    return this.stream(reply, { chatId, messageId: last.id, ...turn, said: JSON.stringify(last.parts), signal: call.abortSignal });
  }

  /** Takes up what runs in a chat; null if nothing does. */
  async reconnectToStream({ chatId, abortSignal }: ReconnectOptions<M>): Promise<ReadableStream<UIMessageChunk> | null> {
    const listening = abortSignal === undefined ? {} : { signal: abortSignal };
    const reply = await this.turnd.resume(conversationIdForChat(chatId), listening);
    return reply === undefined ? null : this.stream(reply, { chatId, turnId: reply.turnId, signal: abortSignal });
  }

  /** Stops what runs in a chat, from whichever page or device it was sent. Its stream ends with a chunk of type abort. */
  async stop(chatId: string): Promise<void> {
    const reply = this.running.get(chatId);
    await (reply === undefined ? this.turnd.stop(conversationIdForChat(chatId)) : reply.stop());
  }

  /**
   * The turn of a user message. A message that is named is sent once more: as the same turn if it says what it said before,
   * else as a sibling of it.
   */
  private async turnOf(call: SendOptions<M>, message: M): Promise<{ turnId: string; parent?: string }> {
    const { chatId, messages, abortSignal } = call;
    const turnId = turnIdForMessage(message.id);
    if (call.messageId !== message.id) return { turnId };
    const known = this.known.get(keyOf(chatId, message.id));
    if (known?.said === JSON.stringify(message.parts)) {
      return { turnId: known.turnId, ...(known.parent !== undefined && { parent: known.parent }) };
    }
    if (known === undefined) {
      const conversationId = conversationIdForChat(chatId);
      const stored = await this.turnd.turn({ conversationId, turnId, ...(abortSignal && { signal: abortSignal }) }).catch(orNone);
      if (stored === undefined || saysTheSame(stored.turn?.content ?? [], message)) return { turnId };
    }
    return { turnId: turnIdForEdit(message.id, message.parts), ...parentOf(messages) };
  }

  /** Sends the answers to calls of tools. The reply to them goes on in the message that holds the calls. */
  private answerCalls(call: SendOptions<M>, message: M): ReadableStream<UIMessageChunk> {
    const results = resultsOfMessage(message);
    if (results.length === 0) throw new TurndError("the last message answers no call of a tool", { code: Code.InvalidArgument });
    const turnId = turnIdForResults(message.id, results.map(({ toolUseId }) => toolUseId));
    const reply = this.send(call, { turnId, content: results.map(({ block }) => block) });
    return this.stream(reply, { chatId: call.chatId, turnId, continues: true, signal: call.abortSignal });
  }

  /**
   * Has another reply made in place of the one that was shown. If that one failed in a way that calls for the same turn
   * again, the turn is sent again instead: it is the attempt that was lost, and no new generation.
   */
  private async regenerate(call: SendOptions<M>, last: M): Promise<ReadableStream<UIMessageChunk>> {
    const { chatId, abortSignal } = call;
    const conversationId = conversationIdForChat(chatId);
    const message = last.role === "user" ? last : call.messages.findLast(({ role }) => role === "user");
    if (message === undefined) throw new TurndError("there is no user message to answer", { code: Code.InvalidArgument });
    const shown = await this.shownOf(chatId, message, abortSignal);
    const { turnId, replyId } = shown;
    const parent = shown.parent === undefined ? {} : { parent: shown.parent };
    const said = shown.said === undefined ? {} : { said: shown.said };
    if (shown.sameId || replyId === undefined) {
      const reply = this.send(call, { turnId, content: contentOfMessage(message), ...parent });
      return this.stream(reply, { chatId, messageId: message.id, turnId, ...parent, ...said, signal: abortSignal });
    }
    const listening = abortSignal === undefined ? {} : { signal: abortSignal };
    const { reply } = await this.turnd.regenerate({ conversationId, replyId, generation: shown.generation ?? 0, ...listening });
    const follow = this.turnd.follow({ conversationId, turnId, replyId: reply?.replyId ?? replyId, ...listening });
    return this.stream(follow, { chatId, messageId: message.id, turnId, ...parent, ...said, signal: abortSignal });
  }

  /** What is known of the turn of a user message: from this page, from the message as it was loaded, or from the server. */
  private async shownOf(chatId: string, message: M, signal: AbortSignal | undefined): Promise<KnownTurn> {
    const known = this.known.get(keyOf(chatId, message.id));
    if (known !== undefined) return known;
    const loaded = (message.metadata as TurndMetadata | undefined)?.turnd;
    if (loaded?.replyId !== undefined) return { ...loaded, sameId: false };
    const turnId = loaded?.turnId ?? turnIdForMessage(message.id);
    const { turn, replies } = await this.turnd.turn({ conversationId: conversationIdForChat(chatId), turnId, ...(signal && { signal }) });
    const latest = replies.at(-1);
    return {
      turnId,
      generation: turn?.generation ?? 0,
      ...(latest && { replyId: latest.replyId }),
      sameId: latest !== undefined && sameId(latest.advice),
    };
  }

  private send(call: SendOptions<M>, turn: { turnId: string; content: SendRequest["content"] & {}; parent?: string }): Reply {
    const { extras = {} } = this.options;
    return this.turnd.send({
      ...(typeof extras === "function" ? extras(call) : extras),
      ...turn,
      conversationId: conversationIdForChat(call.chatId),
      ...(call.abortSignal && { signal: call.abortSignal }),
    });
  }

  private stream(reply: Reply, shown: Shown): ReadableStream<UIMessageChunk> {
    if (this.options.onAbort === "cancel") {
      shown.signal?.addEventListener("abort", () => void reply.stop().catch(() => {}), { once: true });
    }
    const chunks = this.chunks(reply, shown);
    return new ReadableStream<UIMessageChunk>({
      pull: async (controller) => {
        const { value, done } = await chunks.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      cancel: async () => {
        reply.leave();
        await chunks.return(undefined);
      },
    });
  }

  private async *chunks(reply: Reply, shown: Shown): AsyncGenerator<UIMessageChunk, void, undefined> {
    const writer = new ChunkWriter(shown.turnId, shown.continues ?? false);
    this.running.set(shown.chatId, reply);
    try {
      for await (const snapshot of reply) {
        this.learn(shown, snapshot);
        yield* writer.write(snapshot);
      }
    } finally {
      if (this.running.get(shown.chatId) === reply) this.running.delete(shown.chatId);
    }
  }

  private learn({ chatId, messageId, turnId, parent, said }: Shown, { replyId, generation, end }: ReplySnapshot): void {
    if (messageId === undefined || replyId === "") return;
    const key = keyOf(chatId, messageId);
    this.known.delete(key);
    const failed = end !== undefined && end.kind !== "completed";
    const sent = { ...(parent !== undefined && { parent }), ...(said !== undefined && { said }) };
    this.known.set(key, { turnId, replyId, generation, sameId: failed && sameId(end.advice), ...sent });
    const [oldest] = this.known.keys();
    if (this.known.size > maxKnown && oldest !== undefined) this.known.delete(oldest);
  }
}

/** What a stream shows: the reply to which message of which chat. */
interface Shown {
  readonly chatId: string;
  readonly messageId?: string;
  readonly turnId: string;
  readonly parent?: string;
  /** The parts of the message, as JSON. */
  readonly said?: string;
  readonly continues?: boolean;
  readonly signal: AbortSignal | undefined;
}

const keyOf = (chatId: string, messageId: string) => `${chatId} ${messageId}`;

/** What is known of the turn of a user message. */
interface KnownTurn {
  readonly turnId: string;
  readonly replyId?: string;
  readonly generation?: number;
  /** The parent that the turn was sent with, if any. */
  readonly parent?: string;
  /** The parts that the turn was sent with, as JSON, if it was sent from here. */
  readonly said?: string;
  /** The latest reply failed, and the advice was to send the same turn again. */
  readonly sameId: boolean;
}

/** Nothing, in place of a failure to find something. */
function orNone(thrown: unknown): undefined {
  if (thrown instanceof TurndError && thrown.code === Code.NotFound) return undefined;
  throw thrown;
}

/** The parent of an edited message's turn, which makes it a sibling of the one before: the reply that it comes after. */
function parentOf(messages: readonly UIMessage[]): { parent?: string } {
  const before = messages.slice(0, -1).findLast(({ role }) => role === "assistant");
  if (before === undefined) return { parent: "root" };
  const parent = asUuid((before.metadata as TurndMetadata | undefined)?.turnd?.replyId ?? before.id);
  return parent === undefined ? {} : { parent };
}

/**
 * The helpers of useChat with a `stop` that stops the reply, for a button. Their own only stops listening, since it runs when
 * the component goes away as well.
 */
export function withStop<H extends { readonly id: string }, M extends UIMessage>(
  helpers: H,
  transport: TurndChatTransport<M>,
): Omit<H, "stop"> & { stop: () => Promise<void> } {
  return { ...helpers, stop: () => transport.stop(helpers.id) };
}
