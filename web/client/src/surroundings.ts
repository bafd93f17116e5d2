/** What a page can tell of the world around it. */
export interface Surroundings {
  /** Whether there may be a network. */
  online(): boolean;
  /** Calls back when it becomes worth while to connect at once: the network is back, or the page is looked at again. */
  onWake(callback: (cause: "online" | "visible") => void): () => void;
  /** Calls back when another tab has changed a key of the shared storage; with undefined if it may have changed all. */
  onStorage(callback: (key: string | undefined) => void): () => void;
}

/** The surroundings by the browser's events. Where there are none, as in Node, the network is always there. */
export const browserSurroundings: Surroundings = {
  online: () => globalThis.navigator?.onLine !== false,
  onWake: (callback) => {
    const online = () => callback("online");
    const visible = () => {
      if (globalThis.document?.visibilityState === "visible") callback("visible");
    };
    return all(listen(globalThis, "online", online), listen(globalThis.document, "visibilitychange", visible));
  },
  onStorage: (callback) =>
    listen(globalThis, "storage", (event) => {
      const key = "key" in event ? event.key : null;
      callback(typeof key === "string" ? key : undefined);
    }),
};

function listen(target: Partial<EventTarget> | undefined, type: string, listener: (event: Event) => void): () => void {
  if (typeof target?.addEventListener !== "function") return () => {};
  target.addEventListener(type, listener);
  return () => target.removeEventListener?.(type, listener);
}

function all(...ends: (() => void)[]): () => void {
  return () => ends.forEach((end) => end());
}
