import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { turnd } from "../api/turnd";
import type { SumProviderCallsResponse } from "../api/wire";

/** A part of the time that is looked at, with what the ledger adds up to in it. */
export interface Window {
  start: number;
  end: number;
  sums: SumProviderCallsResponse;
}

export interface Range {
  name: string;
  words: string;
  windowMs: number;
  windows: number;
}

const MINUTE = 60_000;

export const RANGES: readonly [Range, ...Range[]] = [
  { name: "1h", words: "Last hour", windowMs: 5 * MINUTE, windows: 12 },
  { name: "6h", words: "Last 6 hours", windowMs: 15 * MINUTE, windows: 24 },
  { name: "24h", words: "Last day", windowMs: 60 * MINUTE, windows: 24 },
  { name: "7d", words: "Last week", windowMs: 360 * MINUTE, windows: 28 },
];

const AT_ONCE = 4;

/** Asks for the sums of every window of a range, a few at once. Windows begin at round times, so that they don't move. */
export async function sumWindows(range: Range, now: number, signal: AbortSignal): Promise<Window[]> {
  const last = Math.floor(now / range.windowMs);
  const starts = Array.from({ length: range.windows }, (_, at) => (last - range.windows + 1 + at) * range.windowMs);
  const found = new Map<number, Window>();
  const queue = [...starts];
  const work = async () => {
    for (let start = queue.shift(); start !== undefined; start = queue.shift()) {
      const end = start + range.windowMs;
      const filter = { startTime: timestampFromMs(start), endTime: timestampFromMs(end) };
      found.set(start, { start, end, sums: await turnd().operator.sumProviderCalls({ filter }, { signal }) });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return starts.flatMap((start) => found.get(start) ?? []);
}
