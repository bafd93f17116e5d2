// What this tab changed, told to its own lists at once and to the browser's other tabs.
const NAME = "turnd.changes";
const listeners = new Set<(conversationId: string) => void>();

function open(): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel(NAME);
  } catch {
    return undefined;
  }
}

const channel = open();
channel?.addEventListener("message", (event: MessageEvent<unknown>) => {
  if (typeof event.data === "string") tell(event.data);
});

function tell(conversationId: string): void {
  for (const listener of [...listeners]) listener(conversationId);
}

export function changed(conversationId: string): void {
  tell(conversationId);
  channel?.postMessage(conversationId);
}

export function onChange(listener: (conversationId: string) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
