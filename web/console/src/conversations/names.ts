import type { Conversation } from "../api/wire";
import { shortId } from "../words/ids";

/** What a conversation is called: its title, else the beginning of its id. */
export function nameOf(conversation: Conversation): string {
  return conversation.title.trim() || `Untitled ${shortId(conversation.conversationId)}`;
}

/** Labels as one writes them, name=value on a line each. */
export function labelLines(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join("\n");
}

/** The labels of such lines. A line without = is a label without a value. */
export function parseLabels(lines: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const line of lines.split("\n")) {
    const at = line.indexOf("=");
    const name = (at < 0 ? line : line.slice(0, at)).trim();
    if (name) labels[name] = at < 0 ? "" : line.slice(at + 1).trim();
  }
  return labels;
}

/** What was typed to find conversations: words of the title, and labels as name=value. */
export function parseFilter(text: string): { words: string[]; labels: Record<string, string> } {
  const words: string[] = [];
  const labels: Record<string, string> = {};
  for (const part of text.split(/\s+/)) {
    const at = part.indexOf("=");
    if (at > 0) labels[part.slice(0, at)] = part.slice(at + 1);
    else if (part) words.push(part.toLowerCase());
  }
  return { words, labels };
}
