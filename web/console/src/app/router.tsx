import { useSyncExternalStore, type AnchorHTMLAttributes, type MouseEvent } from "react";

export type Route =
  | { page: "conversations" }
  | { page: "conversation"; conversationId: string; at: string }
  | { page: "held" }
  | { page: "ledger"; conversationId: string; turnId: string }
  | { page: "retries"; range: string }
  | { page: "workers" }
  | { page: "identity" }
  | { page: "missing" };

export const paths = {
  conversations: () => "/",
  conversation: (id: string, at = "") => `/c/${encodeURIComponent(id)}${at ? `?at=${encodeURIComponent(at)}` : ""}`,
  held: () => "/operator/held",
  ledger: (conversationId = "", turnId = "") => {
    const query = new URLSearchParams();
    if (conversationId) query.set("conversation", conversationId);
    if (turnId) query.set("turn", turnId);
    return `/operator/ledger${query.size > 0 ? `?${query}` : ""}`;
  },
  retries: (range = "") => `/operator/retries${range ? `?range=${range}` : ""}`,
  workers: () => "/operator/workers",
  identity: () => "/identity",
};

export function parse(href: string): Route {
  const url = new URL(href, "http://console.invalid");
  const [first, second, ...rest] = url.pathname.split("/").slice(1);
  if (rest.length > 0) return { page: "missing" };
  if (first === "" && second === undefined) return { page: "conversations" };
  if (first === "c" && second) {
    return { page: "conversation", conversationId: decode(second), at: url.searchParams.get("at") ?? "" };
  }
  if (first === "identity" && second === undefined) return { page: "identity" };
  if (first !== "operator") return { page: "missing" };
  switch (second) {
    case "held":
    case "workers":
      return { page: second };
    case "retries":
      return { page: "retries", range: url.searchParams.get("range") ?? "" };
    case "ledger":
      return {
        page: "ledger",
        conversationId: url.searchParams.get("conversation") ?? "",
        turnId: url.searchParams.get("turn") ?? "",
      };
    default:
      return { page: "missing" };
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("popstate", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("popstate", listener);
  };
}

export function navigate(path: string, replace = false): void {
  if (path === window.location.pathname + window.location.search) return;
  if (replace) window.history.replaceState(null, "", path);
  else window.history.pushState(null, "", path);
  for (const listener of listeners) listener();
}

export function useHref(): string {
  return useSyncExternalStore(subscribe, () => window.location.pathname + window.location.search);
}

export function Link({ to, onClick, ...rest }: { to: string } & AnchorHTMLAttributes<HTMLAnchorElement>) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !plain) return;
    event.preventDefault();
    navigate(to);
  };
  return <a {...rest} href={to} onClick={follow} />;
}
