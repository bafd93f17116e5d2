import { base64Encode } from "@bufbuild/protobuf/wire";
import type { Block, ToolResultBlock } from "../gen/turns/v1/content_pb.js";
import { type Reply, ReplyStatus, type UserTurn } from "../gen/turns/v1/turn_pb.js";
import type { TurnEntry } from "../gen/turns/v1/turn_service_pb.js";
import type { Turnd } from "../turnd.js";
import { parseInput } from "./chunks.js";
import { conversationIdForChat } from "./ids.js";
import type { TurndUIMessage, TurnOfMessage } from "./message.js";

type Part = TurndUIMessage["parts"][number];

/** Loads a chat for useChat's `messages`: at most `limit` of its latest turns, 200 if left out. */
export async function loadMessages(
  turnd: Turnd,
  chatId: string,
  options: { readonly limit?: number; readonly leafId?: string; readonly signal?: AbortSignal } = {},
): Promise<TurndUIMessage[]> {
  return toUIMessages(await turnd.history({ ...options, conversationId: conversationIdForChat(chatId) }));
}

/**
 * The messages that show turns, given the earliest first. A user message's id is its turn's, and one of the assistant's has
 * its reply's. Turns that answer calls of tools are no messages of their own: the answers go to the calls, and the reply to
 * them goes on in the message that made those.
 */
export function toUIMessages(entries: readonly TurnEntry[]): TurndUIMessage[] {
  const messages: TurndUIMessage[] = [];
  for (const { turn, reply, replyCount, siblingTurnIds } of entries) {
    if (turn === undefined) continue;
    const results = turn.content.flatMap(({ kind }) => (kind.case === "toolResult" ? [kind.value] : []));
    const calling = messages.at(-1);
    if (results.length > 0 && calling?.role === "assistant") {
      answer(calling, results);
      if (reply !== undefined && reply.status !== ReplyStatus.IN_FLIGHT) goOn(calling, turn, reply, replyCount);
      continue;
    }
    messages.push(userMessage(turn, reply, replyCount, siblingTurnIds));
    if (reply !== undefined) messages.push(assistantMessage(turn, reply, replyCount));
  }
  return messages;
}

function userMessage(turn: UserTurn, reply: Reply | undefined, replyCount: number, siblingTurnIds: string[]): TurndUIMessage {
  const { turnId, parentId, generation } = turn;
  const turnd = { turnId, parentId, generation, replyCount, siblingTurnIds, ...(reply && { replyId: reply.replyId }) };
  return { id: turnId, role: "user", metadata: { turnd }, parts: turn.content.flatMap(partOf) };
}

function assistantMessage(turn: UserTurn, reply: Reply, replyCount: number): TurndUIMessage {
  return { id: reply.replyId, role: "assistant", metadata: metadataOf(turn, reply, replyCount), parts: stepOf(reply) };
}

function goOn(message: TurndUIMessage, turn: UserTurn, reply: Reply, replyCount: number): void {
  message.parts.push(...stepOf(reply));
  message.metadata = metadataOf(turn, reply, replyCount);
}

function metadataOf({ turnId, generation }: UserTurn, reply: Reply, replyCount: number): { turnd: TurnOfMessage } {
  const { replyId, attempt, provider, model } = reply;
  const end = endOf(reply.status);
  return { turnd: { turnId, replyId, generation, attempt, provider, model, replyCount, ...(end && { end }) } };
}

function endOf(status: ReplyStatus): TurnOfMessage["end"] {
  switch (status) {
    case ReplyStatus.COMPLETE:
      return "completed";
    case ReplyStatus.HELD:
      return "held";
    case ReplyStatus.ABANDONED:
      return "abandoned";
    default:
      return undefined;
  }
}

function stepOf(reply: Reply): Part[] {
  const { turnId, replyId, generation, attempt, provider, model } = reply;
  const shown: Part = { type: "data-turnd-reply", id: turnId, data: { turnId, replyId, generation, attempt, provider, model } };
  return [{ type: "step-start" }, shown, ...reply.content.flatMap(partOf)];
}

/** Gives the calls of a message their answers. */
function answer(message: TurndUIMessage, results: readonly ToolResultBlock[]): void {
  message.parts = message.parts.map((part): Part => {
    if (!("toolCallId" in part) || part.state !== "input-available") return part;
    const result = results.find(({ toolUseId }) => toolUseId === part.toolCallId);
    if (result === undefined) return part;
    const { toolCallId, input, type } = part;
    const words = result.content.map(({ kind }) => (kind.case === "text" ? kind.value.text : "")).join("");
    const call = { type, toolCallId, input } as { type: `tool-${string}`; toolCallId: string; input: unknown };
    if (result.isError) return { ...call, state: "output-error", errorText: words };
    const output = parseInput(words);
    return { ...call, state: "output-available", output: output.ok && words !== "" ? output.value : words };
  });
}

function partOf({ kind }: Block): Part[] {
  switch (kind.case) {
    case "text":
      return [{ type: "text", text: kind.value.text, state: "done" }];
    case "refusal":
      return [{ type: "text", text: kind.value.text, state: "done", providerMetadata: { turnd: { refusal: true } } }];
    case "thinking":
      return [{ type: "reasoning", text: kind.value.text, state: "done" }];
    case "image":
    case "document": {
      const { mediaType, source } = kind.value;
      const url = source.case === "data" ? `data:${mediaType};base64,${base64Encode(source.value)}` : (source.value ?? "");
      return [{ type: "file", mediaType, url }];
    }
    case "toolUse": {
      const { name, toolUseId, inputJson } = kind.value;
      const input = parseInput(inputJson);
      const call = { type: `tool-${name}`, toolCallId: toolUseId } as const;
      if (input.ok) return [{ ...call, state: "input-available", input: input.value }];
      return [{ ...call, state: "output-error", input: inputJson, errorText: "The model wrote no valid JSON for this call." }];
    }
    default:
      return [];
  }
}
