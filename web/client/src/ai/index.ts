/**
 * A transport for useChat of the AI SDK.
 *
 * @packageDocumentation
 */
export { type Chunk, ChunkWriter } from "./chunks.js";
export { loadMessages, toUIMessages } from "./history.js";
export { conversationIdForChat, turnIdForEdit, turnIdForMessage, turnIdForResults } from "./ids.js";
export type { TurndDataParts, TurndMetadata, TurndUIMessage, TurnOfMessage } from "./message.js";
export { TurndChatTransport, type TurndChatTransportOptions, type TurnExtras, withStop } from "./transport.js";
