import { useSyncExternalStore } from "react";
import type { Failure } from "../api/failure";

// Whether the server answers, by the last that was heard of it. What is shown stays, and says so, while it does not.
let reached = true;
const listeners = new Set<() => void>();

function note(now: boolean): void {
  if (now === reached) return;
  reached = now;
  for (const listener of listeners) listener();
}

/** The server has answered. */
export function noteReached(): void {
  note(true);
}

/** A call has failed that keeps something fresh. */
export function noteFailed(failure: Failure): void {
  note(failure.reason !== "");
}

/** A failure, unless it is told once for the whole page and there is something to show meanwhile. */
export function worthTelling(failure: Failure, shown: boolean): Failure | undefined {
  return failure.reason === "" && shown ? undefined : failure;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("online", listener);
  window.addEventListener("offline", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("online", listener);
    window.removeEventListener("offline", listener);
  };
}

export function useReach(): "offline" | "unreached" | "reached" {
  return useSyncExternalStore(subscribe, () => (!navigator.onLine ? "offline" : reached ? "reached" : "unreached"));
}
