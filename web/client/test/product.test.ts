import { Chat } from "@ai-sdk/react";
import { lastAssistantMessageIsCompleteWithToolCalls } from "ai";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { loadMessages, TurndChatTransport, type TurndUIMessage } from "../src/ai/index.js";
import { AbandonReason, createTurnd, ErrorReason, newTurnId, RetryAdvice, TurndError, type TurndOptions } from "../src/index.js";
import { MemoryStorage } from "./memory_storage.js";
import { Product } from "./product.js";

let product: Product;

beforeAll(async () => {
  product = await Product.start();
});
afterAll(() => product.stop());

const client = (options: TurndOptions = {}) => createTurnd({ baseUrl: product.baseUrl, storage: new MemoryStorage(), ...options });
const says = (text: string) => ({ blocks: [{ text }] });
const gated = (text: string) => ({ blocks: [{ text }], steps: [{ at: "delta:1", do: "wait", gate: "mid" }] });

test("a reload in the middle finds the whole reply, and two tabs show the same, for one generation", async () => {
  await product.plan(gated("One two three four five six seven."));
  const storage = new MemoryStorage();
  const conversationId = newTurnId();
  const first = client({ storage });
  const reply = first.send({ conversationId, text: "hi" });
  for await (const { text } of reply) if (text !== "") break;
  await product.arrived("mid");
  const reloaded = await client({ storage }).resume(conversationId);
  const elsewhere = await client().resume(conversationId);
  await product.open("mid");
  const ends = await Promise.all([reloaded?.done, elsewhere?.done]);
  for (const end of ends) expect(end).toMatchObject({ state: "completed", text: "One two three four five six seven." });
  expect((await product.counts()).generations).toBe(1);
  expect(storage.length).toBe(0);
  expect(await client({ storage }).resume(conversationId)).toBeUndefined();
});

test("stop ends the reply, and regenerate twice at once makes one more", async () => {
  await product.plan(gated("One two three."), says("Again."));
  const turnd = client();
  const reply = turnd.send({ text: "hi" });
  for await (const { text } of reply) if (text !== "") break;
  const stopped = reply.done;
  await reply.stop();
  const end = await stopped;
  expect(end.end).toMatchObject({ kind: "abandoned", reason: AbandonReason.CANCELLED, advice: RetryAdvice.REGENERATE });

  const { conversationId } = reply;
  const request = { conversationId, replyId: end.replyId, generation: end.generation };
  const made = await Promise.all([turnd.regenerate(request), turnd.regenerate(request)]);
  const ids = made.map(({ reply }) => reply?.replyId ?? "");
  expect(new Set(ids).size).toBe(1);
  const again = await turnd.follow({ conversationId, replyId: ids[0] ?? "" }).done;
  expect(again).toMatchObject({ state: "completed", text: "Again.", generation: 2 });
  const third = await turnd.regenerate({ conversationId, replyId: again.replyId, generation: 2 });
  await turnd.follow({ conversationId, replyId: third.reply?.replyId ?? "" }).done;
  expect(await turnd.select(conversationId, again.replyId)).toMatchObject({ replyId: again.replyId });
  const [entry] = await turnd.history({ conversationId });
  expect(entry).toMatchObject({ replyCount: 3, reply: { replyId: again.replyId } });
});

test("errors say what was wrong, and what to do", async () => {
  await product.plan(says("Hello."));
  const turnd = client();
  const turnId = newTurnId();
  const conversationId = newTurnId();
  await turnd.send({ conversationId, turnId, text: "hi" }).done;
  const other = await turnd.send({ conversationId, turnId, text: "something else" }).done.catch((error: unknown) => error);
  expect(other).toBeInstanceOf(TurndError);
  expect(other).toMatchObject({ reason: ErrorReason.TURN_ID_REUSED, advice: RetryAdvice.NEW_ID });
  const blank = await turnd.send({ conversationId, text: "hi", options: { maxOutputTokens: -1 } }).done.catch((error: unknown) => error);
  expect(blank).toMatchObject({ reason: ErrorReason.INVALID_FIELD, advice: RetryAdvice.DO_NOT_RETRY });
  expect(blank instanceof TurndError && blank.fieldViolations.map(({ field }) => field)).toEqual(["input.options.max_output_tokens"]);
  expect(await turnd.history({ conversationId: newTurnId() })).toEqual([]);
  expect(turnd.inFlight()).toEqual([]);
});

test("the stop of a transport stops a reply that useChat streams, which keeps what was shown", async () => {
  await product.plan({ ...gated("One two three."), on_client_gone: "stop" }, says("Whole."));
  const turnd = client();
  const transport = new TurndChatTransport<TurndUIMessage>({ turnd });
  const id = `chat-${newTurnId()}`;
  const chat = new Chat<TurndUIMessage>({ id, transport });
  const sent = chat.sendMessage({ text: "hi" });
  await product.arrived("mid");
  await vi.waitFor(() => expect(chat.status).toBe("streaming"));
  await transport.stop(id);
  await sent;
  expect([chat.status, chat.lastMessage?.metadata?.turnd?.end]).toEqual(["ready", "abandoned"]);
  await vi.waitFor(async () => expect((await product.counts()).running).toBe(0), 5_000);
  await chat.regenerate();
  expect(chat.lastMessage?.parts.at(-1)).toMatchObject({ type: "text", text: "Whole." });
  expect((await loadMessages(turnd, id)).map(({ metadata }) => metadata?.turnd?.generation)).toEqual([2, 2]);
});

test("useChat's messages, tools, edits and history go through", async () => {
  await product.plan(
    { blocks: [{ thinking: "hm", signature: "s" }, { tool_use: { id: "t1", name: "weather", input: '{"city":"Oslo"}' } }], stop_reason: "tool_use" },
    says("Rain."),
    says("Sun."),
  );
  const turnd = client();
  const transport = new TurndChatTransport<TurndUIMessage>({
    turnd,
    extras: { options: { tools: [{ name: "weather", description: "the weather", inputSchemaJson: '{"type":"object"}' }] } },
  });
  const id = `chat-${newTurnId()}`;
  const chat = new Chat<TurndUIMessage>({
    id, transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
    onToolCall: ({ toolCall: { toolName, toolCallId } }) => void chat.addToolOutput({ tool: toolName, toolCallId, output: "rain" }),
  });
  const words = () => chat.messages.map(({ parts }) => parts.map((part) => (part.type === "text" ? part.text : "")).join(""));
  await chat.sendMessage({ text: "weather?" });
  await vi.waitFor(() => expect(words()).toEqual(["weather?", "Rain."]), 10_000);
  await vi.waitFor(() => expect(chat.status).toBe("ready"));

  const loaded = await loadMessages(turnd, id);
  const shape = (messages: TurndUIMessage[]) => messages.map(({ role, parts }) => [role, parts.map(({ type }) => type)]);
  expect(shape(loaded)).toEqual(shape(chat.messages));

  await chat.sendMessage({ text: "and tomorrow?", messageId: chat.messages[0]?.id ?? "" });
  expect(chat.error).toBeUndefined();
  expect(words()).toEqual(["and tomorrow?", "Sun."]);
  const edited = await loadMessages(turnd, id);
  expect(edited[0]?.metadata?.turnd?.siblingTurnIds).toHaveLength(2);
});
