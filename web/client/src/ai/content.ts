import { Code } from "@connectrpc/connect";
import type { FileUIPart, UIMessage } from "ai";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { TurndError } from "../errors.js";
import type { Block } from "../gen/turns/v1/content_pb.js";
import type { BlockInit } from "../options.js";
import { textBlock } from "../turn_input.js";

/** What a user message says, in blocks. Parts that only pages know, such as data parts, are left out. */
export function contentOfMessage(message: UIMessage): BlockInit[] {
  const blocks: BlockInit[] = [];
  for (const part of message.parts) {
    if (part.type === "text") blocks.push(textBlock(part.text));
    if (part.type === "file") blocks.push(fileBlock(part));
  }
  return blocks;
}

/** Whether a stored turn says in words, and with as many files, what a message says. */
export function saysTheSame(stored: readonly Block[], message: UIMessage): boolean {
  const words = stored.map(({ kind }) => (kind.case === "text" ? kind.value.text : kind.case));
  const said = contentOfMessage(message).map(({ kind }) => (kind?.case === "text" ? kind.value.text : kind?.case));
  return JSON.stringify(words) === JSON.stringify(said);
}

function fileBlock({ mediaType, url, filename }: FileUIPart): BlockInit {
  const source = sourceOf(url);
  if (mediaType.startsWith("image/")) return { kind: { case: "image", value: { mediaType, source } } };
  return { kind: { case: "document", value: { mediaType, source, ...(filename && { title: filename }) } } };
}

function sourceOf(url: string) {
  if (!url.startsWith("data:")) return { case: "url", value: url } as const;
  const comma = url.indexOf(",");
  const data = url.slice(comma + 1);
  try {
    const bytes = url.slice(0, comma).endsWith(";base64") ? base64Decode(data) : new TextEncoder().encode(decodeURIComponent(data));
    return { case: "data", value: bytes } as const;
  } catch (cause) {
    throw new TurndError("a file of the message is no valid data URL", { code: Code.InvalidArgument, cause });
  }
}

/** An answer to a call of a tool, and the call. */
interface Result {
  readonly toolUseId: string;
  readonly block: BlockInit;
}

/** The answers to the calls of a message's last step. */
export function resultsOfMessage(message: UIMessage): Result[] {
  const step = message.parts.slice(message.parts.findLastIndex((part) => part.type === "step-start") + 1);
  return step.flatMap((part) => {
    if (!("toolCallId" in part)) return [];
    if (part.state === "output-available") return [result(part.toolCallId, inWords(part.output), false)];
    if (part.state === "output-error") return [result(part.toolCallId, part.errorText, true)];
    if (part.state === "output-denied") return [result(part.toolCallId, "The user did not allow this call.", true)];
    return [];
  });
}

function result(toolUseId: string, text: string, isError: boolean): Result {
  const content = text === "" ? [] : [textBlock(text)];
  return { toolUseId, block: { kind: { case: "toolResult", value: { toolUseId, isError, content } } } };
}

/** Models read text: what is none is given as JSON. */
function inWords(output: unknown): string {
  return typeof output === "string" ? output : (JSON.stringify(output) ?? "");
}
