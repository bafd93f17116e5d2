import { asUuid, turnIdFor } from "../turn_id.js";

/** The conversation of a chat: the chat's own id if that is a UUID, else one derived from it. */
export function conversationIdForChat(chatId: string): string {
  return asUuid(chatId) ?? turnIdFor(`ai-sdk:chat:${chatId}`);
}

/** The turn of a user message: the message's own id if that is a UUID, else one derived from it. */
export function turnIdForMessage(messageId: string): string {
  return asUuid(messageId) ?? turnIdFor(`ai-sdk:message:${messageId}`);
}

/** The turn of a user message that was edited: the same edit is the same turn, another is another. */
export function turnIdForEdit(messageId: string, parts: readonly unknown[]): string {
  return turnIdFor(`ai-sdk:edit:${messageId}:${JSON.stringify(parts)}`);
}

/** The turn that answers calls of tools: it follows from which calls those are. */
export function turnIdForResults(messageId: string, toolUseIds: readonly string[]): string {
  return turnIdFor(`ai-sdk:results:${messageId}:${toolUseIds.join(" ")}`);
}
