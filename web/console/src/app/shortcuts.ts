import { useEffect, useRef, useSyncExternalStore } from "react";
import { recall, remember } from "./memory";

const NAME = "turnd.shortcuts";
const listeners = new Set<() => void>();
let enabled = recall("local", NAME) !== "off";

/** Whether single keys do something. Who dictates, or leans on the keyboard, may turn that off. */
export function useShortcutsEnabled(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => enabled,
  );
}

export function enableShortcuts(on: boolean): void {
  enabled = on;
  remember("local", NAME, on ? undefined : "off");
  for (const listener of listeners) listener();
}

/** Every shortcut, as the help lists them. */
export const SHORTCUTS: readonly (readonly [string, string])[] = [
  ["?", "Show this list"],
  ["g c", "Conversations"],
  ["g h", "Held replies"],
  ["g l", "Ledger"],
  ["g r", "Retries"],
  ["g w", "Workers"],
  ["/", "Filter conversations"],
  ["n", "New conversation"],
  ["j  k", "Next, previous conversation"],
  ["c", "Write a turn"],
  ["Enter", "Send; with Shift a new line"],
  [".", "Stop the running reply"],
  ["r", "Regenerate the last reply"],
  ["[  ]", "Previous, next reply to the last turn"],
];

let pressed = "";
let prefixAt = 0;

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function combine(event: KeyboardEvent): void {
  if (/^(Shift|Control|Alt|Meta)$/.test(event.key)) return;
  const now = performance.now();
  const paired = pressed === "g" && now - prefixAt < 1500;
  prefixAt = now;
  pressed = paired ? `g ${event.key}` : event.key;
}

/** Runs what belongs to a key while this part of the page is there. A key after g is written "g x". */
export function useShortcuts(keys: Readonly<Record<string, (() => void) | undefined>>): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      if (!enabled || typing(event.target) || document.querySelector("dialog[open]")) return;
      const act = latest.current[pressed];
      if (!act) return;
      event.preventDefault();
      act();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}

/** Makes pairs of keys, before any part of the page hears of the second. Called once. */
export function combineKeys(): void {
  window.addEventListener("keydown", combine, { capture: true });
}
