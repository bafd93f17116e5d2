import { create } from "@bufbuild/protobuf";
import { Chat } from "@ai-sdk/react";
import { lastAssistantMessageIsCompleteWithToolCalls } from "ai";
import { expect, test, vi } from "vitest";
import { loadMessages, TurndChatTransport, type TurndUIMessage, turnIdForMessage, withStop } from "../src/ai/index.js";
import { AbandonReason, BlockKind, ReplyStatus, RetryAdvice, TurnEntrySchema } from "../src/index.js";
import { Bed } from "./bed.js";
import { abandoned, accepted, block, completed, conversation, held, lengthOf, queued, replyA, replyB, restarted, started, text } from "./events.js";

const hello = text(replyA, "Hel", "lo");

function chatOn(bed: Bed, init: Partial<ConstructorParameters<typeof Chat<TurndUIMessage>>[0]> = {}) {
  const transport = new TurndChatTransport<TurndUIMessage>({ turnd: bed.turnd() });
  return { transport, chat: new Chat<TurndUIMessage>({ id: conversation, transport, ...init }) };
}

const textOf = (message: TurndUIMessage | undefined) =>
  message?.parts.map((part) => (part.type === "text" ? part.text : "")).join("");

test("a message is sent as one turn, and its reply is shown", async () => {
  const bed = new Bed([{ events: [accepted(), started(replyA), ...hello, completed(hello)] }]);
  const { chat } = chatOn(bed);
  await chat.sendMessage({ text: "hi" });
  expect(chat.status).toBe("ready");
  expect(chat.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  expect(textOf(chat.lastMessage)).toBe("Hello");
  expect(chat.lastMessage).toMatchObject({ id: replyA, metadata: { turnd: { replyId: replyA, generation: 1, end: "completed" } } });
  expect(bed.turns[0]?.input).toMatchObject({ conversationId: conversation, turnId: turnIdForMessage(chat.messages[0]?.id ?? "") });
  expect(bed.turns[0]?.input?.content).toHaveLength(1);
});

test("a lost link does not show", async () => {
  const bed = new Bed([
    { events: [accepted(), started(replyA), ...hello.slice(0, 2)] },
    { events: [accepted(), started(replyA), ...hello, completed(hello)] },
  ]);
  const { chat } = chatOn(bed);
  await chat.sendMessage({ text: "hi" });
  expect(textOf(chat.lastMessage)).toBe("Hello");
  expect(chat.messages).toHaveLength(2);
});

test("a restart takes back what was shown, in the same message", async () => {
  const other = text(replyB, "Good day");
  const bed = new Bed([{
    events: [accepted(), started(replyA), ...hello.slice(0, 2), restarted(replyA, replyB), started(replyB, 2), ...other, completed(other)],
  }]);
  const { chat } = chatOn(bed);
  await chat.sendMessage({ text: "hi" });
  expect(textOf(chat.lastMessage)).toBe("Good day");
  expect(chat.messages).toHaveLength(2);
  expect(chat.lastMessage?.metadata?.turnd?.replyId).toBe(replyB);
});

test("reasoning and calls of tools are parts, and their answers are a turn whose reply goes on in the message", async () => {
  const thinking = block(replyA, 0, 0, BlockKind.THINKING, ["hm"]);
  const call = block(replyA, lengthOf(thinking), 1, BlockKind.TOOL_USE, ['{"city":', '"Oslo"}'], "weather");
  const answer = text(replyB, "Rain.");
  const bed = new Bed([
    { events: [accepted(), started(replyA), ...thinking, ...call, completed(call)] },
    { events: [accepted(), started(replyB), ...answer, completed(answer)] },
  ]);
  const { chat } = chatOn(bed, {
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
    onToolCall: ({ toolCall }) => {
      void chat.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: { sky: "rain" } });
    },
  });
  await chat.sendMessage({ text: "weather?" });
  await vi.waitFor(() => expect(textOf(chat.lastMessage)).toBe("Rain."));
  expect(chat.messages).toHaveLength(2);
  expect(chat.lastMessage?.parts.map(({ type }) => type)).toEqual([
    "step-start", "data-turnd-reply", "reasoning", "tool-weather", "step-start", "data-turnd-reply", "text",
  ]);
  expect(chat.lastMessage?.parts[3]).toMatchObject({ input: { city: "Oslo" }, output: { sky: "rain" }, state: "output-available" });
  expect(bed.turns[1]?.input?.content[0]?.kind).toMatchObject({
    case: "toolResult", value: { toolUseId: "call_1", isError: false, content: [{ kind: { value: { text: '{"sky":"rain"}' } } }] },
  });
});

test("useChat's stop only leaves, and the transport's stops the reply (case C41)", async () => {
  const bed = new Bed([
    { events: [accepted(), started(replyA), ...hello.slice(0, 2)], end: "hang" },
    { events: [accepted(), started(replyA), ...hello, abandoned(hello, AbandonReason.CANCELLED, RetryAdvice.REGENERATE)] },
  ]);
  const { chat, transport } = chatOn(bed);
  const sent = chat.sendMessage({ text: "hi" });
  await vi.waitFor(() => expect(textOf(chat.lastMessage)).toBe("Hel"));
  await chat.stop();
  await sent;
  expect(chat.status).toBe("ready");
  expect(bed.cancels).toEqual([]);

  await withStop(chat, transport).stop();
  expect(bed.cancels[0]?.target).toEqual({ case: "turnId", value: bed.turns[0]?.input?.turnId });
  await chat.resumeStream();
  expect(chat.status).toBe("ready");
});

test("an abort stops the reply where it is said to", async () => {
  const bed = new Bed([{ events: [accepted(), started(replyA), ...hello.slice(0, 2)], end: "hang" }]);
  const transport = new TurndChatTransport<TurndUIMessage>({ turnd: bed.turnd(), onAbort: "cancel" });
  const chat = new Chat<TurndUIMessage>({ id: conversation, transport });
  const sent = chat.sendMessage({ text: "hi" });
  await vi.waitFor(() => expect(textOf(chat.lastMessage)).toBe("Hel"));
  await chat.stop();
  await sent;
  await vi.waitFor(() => expect(bed.cancels).toHaveLength(1));
});

test("a reload takes up the turn in flight, and shows the reply once", async () => {
  const bed = new Bed([
    { events: [accepted(), started(replyA), ...hello.slice(0, 2)], end: "hang" },
    { events: [accepted(), started(replyA), ...hello, completed(hello)] },
  ]);
  const { chat, transport } = chatOn(bed);
  void chat.sendMessage({ text: "hi" });
  await vi.waitFor(() => expect(textOf(chat.lastMessage)).toBe("Hel"));
  await chat.stop();
  const after = new Chat<TurndUIMessage>({ id: conversation, transport, messages: chat.messages });
  await after.resumeStream();
  expect(after.messages).toHaveLength(2);
  expect(textOf(after.lastMessage)).toBe("Hello");
  expect(bed.turns[1]?.input?.turnId).toBe(bed.turns[0]?.input?.turnId);
  await after.resumeStream();
  expect(bed.turns).toHaveLength(2);
});

test("a regenerate is compared with the generation that was shown", async () => {
  const other = text(replyB, "Hi");
  const bed = new Bed([
    { events: [accepted(), started(replyA), ...hello, completed(hello)] },
    { events: [started(replyB), ...other, completed(other)] },
  ]);
  bed.regeneratedReplyId = replyB;
  const { chat } = chatOn(bed);
  await chat.sendMessage({ text: "hi" });
  await chat.regenerate();
  expect(bed.regenerates[0]).toMatchObject({ replyId: replyA, expectedGeneration: 1, conversationId: conversation });
  expect(textOf(chat.lastMessage)).toBe("Hi");
  expect(chat.messages).toHaveLength(2);
});

test("a reply that failed is asked for again as the same turn, if that is the advice", async () => {
  const bed = new Bed([
    { events: [accepted(), started(replyA), ...hello.slice(0, 2), abandoned(hello.slice(0, 2), AbandonReason.LEASE_EXPIRED, RetryAdvice.SAME_ID_NOW)] },
    { events: [accepted(), started(replyB, 2), ...text(replyB, "Hi"), completed(text(replyB, "Hi"))] },
  ]);
  const { chat } = chatOn(bed);
  await chat.sendMessage({ text: "hi" });
  expect(chat.error?.message).toBe("The reply was given up (LEASE_EXPIRED). Send the message again.");
  await chat.regenerate();
  expect(bed.regenerates).toEqual([]);
  expect(bed.turns[1]?.input?.turnId).toBe(bed.turns[0]?.input?.turnId);
  expect(textOf(chat.lastMessage)).toBe("Hi");
});

test("an edit is a sibling of the message that it replaces", async () => {
  const bed = new Bed([
    { events: [accepted(), started(replyA), ...hello, completed(hello)] },
    { events: [accepted(), started(replyB), ...text(replyB, "Hi"), completed(text(replyB, "Hi"))] },
  ]);
  const { chat } = chatOn(bed);
  await chat.sendMessage({ text: "hi" });
  await chat.sendMessage({ text: "hey", messageId: chat.messages[0]?.id ?? "" });
  const [first, second] = bed.turns.map(({ input }) => input);
  expect(second?.turnId).not.toBe(first?.turnId);
  expect(second?.parent).toEqual({ case: "root", value: true });
});

test("a message that is sent once more unchanged is the same turn, also after a reload", async () => {
  const lost = { events: [accepted(), started(replyA), ...hello.slice(0, 2), abandoned(hello.slice(0, 2), AbandonReason.LEASE_EXPIRED, RetryAdvice.SAME_ID_NOW)] };
  const next = { events: [accepted(), started(replyB, 2), ...text(replyB, "Hi"), completed(text(replyB, "Hi"))] };
  const bed = new Bed([lost, lost, next]);
  const { chat, transport } = chatOn(bed);
  await chat.sendMessage({ text: "hi" });
  chat.messages = chat.messages.slice(0, 1);
  await chat.sendMessage();
  const [message] = chat.messages;
  if (message === undefined) throw new Error("there is no message");
  const turnId = turnIdForMessage(message.id);
  bed.entries = [create(TurnEntrySchema, { turn: { turnId, content: [{ kind: { case: "text", value: { text: "hi" } } }] } })];
  const reloaded = new TurndChatTransport<TurndUIMessage>({ turnd: bed.turnd() });
  const after = new Chat<TurndUIMessage>({ id: conversation, transport: reloaded, messages: [message] });
  await after.sendMessage();
  expect(transport).not.toBe(reloaded);
  expect(bed.turns.map(({ input }) => [input?.turnId, input?.parent.case])).toEqual(Array(3).fill([turnId, undefined]));
  expect(textOf(after.lastMessage)).toBe("Hi");
});

test("a held reply and a place in line are data", async () => {
  const data = vi.fn();
  const bed = new Bed([{ events: [accepted(), queued(1), started(replyA), ...hello.slice(0, 2), held(hello.slice(0, 2), RetryAdvice.SAME_ID_AFTER_WAIT)] }]);
  const { chat } = chatOn(bed, { onData: ({ type, data: value }) => data(type, value) });
  await chat.sendMessage({ text: "hi" });
  expect(chat.status).toBe("ready");
  expect(data).toHaveBeenCalledWith("data-turnd-queued", { position: 1 });
  expect(chat.lastMessage?.parts.at(-1)?.type).toBe("data-turnd-held");
});

test("history becomes messages, with the answers of tools at their calls", async () => {
  const bed = new Bed([]);
  const turnB = "0190b6a0-0000-7000-8000-0000000000b0";
  const entry = (turnId: string, replyId: string, content: object[], reply: object[]) =>
    create(TurnEntrySchema, {
      turn: { turnId, generation: 1, content }, replyCount: 2, siblingTurnIds: [turnId],
      reply: { turnId, replyId, status: ReplyStatus.COMPLETE, content: reply, generation: 1 },
    });
  const turnOne = "0190b6a0-0000-7000-8000-0000000000a0";
  bed.entries = [
    entry(turnB, replyB, [{ kind: { case: "toolResult", value: { toolUseId: "c", content: [{ kind: { case: "text", value: { text: "rain" } } }] } } }],
      [{ kind: { case: "text", value: { text: "Rain." } } }]),
    entry(turnOne, replyA, [{ kind: { case: "text", value: { text: "weather?" } } }],
      [{ kind: { case: "toolUse", value: { toolUseId: "c", name: "weather", inputJson: "{}" } } }]),
  ];
  const messages = await loadMessages(bed.turnd(), conversation);
  expect(messages.map(({ id, role }) => [id, role])).toEqual([[turnOne, "user"], [replyA, "assistant"]]);
  expect(messages[0]?.metadata?.turnd).toMatchObject({ replyCount: 2, siblingTurnIds: [turnOne], replyId: replyA });
  expect(messages[1]?.parts.map(({ type }) => type)).toEqual([
    "step-start", "data-turnd-reply", "tool-weather", "step-start", "data-turnd-reply", "text",
  ]);
  expect(messages[1]?.parts[2]).toMatchObject({ state: "output-available", output: "rain" });
});
