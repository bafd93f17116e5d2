import { sha1 } from "./sha1.js";

/**
 * The UUIDv5 namespace of ids that follow from ids elsewhere. It is the same as in the Go client and never changes, or a
 * message that is delivered again after an update would be a second turn.
 */
export const UPSTREAM_NAMESPACE = "2c9d1f70-7c1c-5b0e-8f0a-4c6a9b8e5d31";

/**
 * Derives a turn id from the id of something elsewhere: a message of another library, a webhook, an entry of a queue. Equal
 * ids give equal turns, so that what is delivered twice is answered once. Put the name of the source before the id, such as
 * `slack:Ev0123`, to keep sources apart.
 */
export function turnIdFor(upstream: string): string {
  const name = new TextEncoder().encode(upstream);
  const data = new Uint8Array(16 + name.length);
  data.set(bytesOf(UPSTREAM_NAMESPACE));
  data.set(name, 16);
  return format(sha1(data).slice(0, 16), 5);
}

/** Mints the id of a turn that a person made: a UUID of version 7. */
export function newTurnId(now: number = Date.now()): string {
  const bytes = new Uint8Array(16);
  globalThis.crypto.getRandomValues(bytes);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, Math.floor(now / 0x100000000));
  view.setUint32(2, now % 0x100000000);
  return format(bytes, 7);
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The UUID that a text is, in lower case; undefined if it is none. */
export function asUuid(text: string): string | undefined {
  const lower = text.toLowerCase();
  return uuidPattern.test(lower) ? lower : undefined;
}

function bytesOf(uuid: string): Uint8Array {
  const hex = uuid.replaceAll("-", "");
  return Uint8Array.from({ length: 16 }, (_, i) => Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16));
}

function format(bytes: Uint8Array, version: number): string {
  const marked = Uint8Array.from(bytes);
  marked[6] = ((marked[6] ?? 0) & 0x0f) | (version << 4);
  marked[8] = ((marked[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(marked, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
