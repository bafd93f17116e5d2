import { recall, remember } from "../app/memory";

/** Who calls: by a key, or on a server without authentication by name. */
export interface Identity {
  key: string;
  tenant: string;
  subject: string;
}

const NAME = "turnd.identity";
const NOBODY: Identity = { key: "", tenant: "", subject: "" };

function read(): Identity {
  try {
    const kept: unknown = JSON.parse(recall("session", NAME) ?? "null");
    if (typeof kept !== "object" || kept === null) return NOBODY;
    const text = (name: keyof Identity) => {
      const value = (kept as Record<string, unknown>)[name];
      return typeof value === "string" ? value : "";
    };
    return { key: text("key"), tenant: text("tenant"), subject: text("subject") };
  } catch {
    return NOBODY;
  }
}

let current = read();
const listeners = new Set<() => void>();

export function identity(): Identity {
  return current;
}

/** Takes another identity for all further calls. Tells whether it outlives the page. */
export function setIdentity(next: Identity): boolean {
  current = next;
  const nobody = !next.key && !next.tenant && !next.subject;
  const kept = remember("session", NAME, nobody ? undefined : JSON.stringify(next));
  for (const listener of listeners) listener();
  return kept;
}

export function onIdentity(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The headers by which a call says who makes it. */
export function credentials(): Record<string, string> {
  const headers: Record<string, string> = {};
  if (current.key) headers.authorization = `Bearer ${current.key}`;
  if (current.tenant) headers["x-turnd-tenant"] = current.tenant;
  if (current.subject) headers["x-turnd-subject"] = current.subject;
  return headers;
}
