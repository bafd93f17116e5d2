import { timestampMs, type Duration, type Timestamp } from "@bufbuild/protobuf/wkt";

export function milliseconds(time: Timestamp | undefined): number | undefined {
  return time ? timestampMs(time) : undefined;
}

export function durationMs(duration: Duration | undefined): number {
  return duration ? Number(duration.seconds) * 1000 + duration.nanos / 1e6 : 0;
}

/** A length of time in its two greatest units. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return pair(minutes, "min", Math.round(seconds % 60), "s");
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return pair(hours, "h", minutes % 60, "min");
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

function pair(great: number, greatUnit: string, small: number, smallUnit: string): string {
  return small > 0 ? `${great} ${greatUnit} ${small} ${smallUnit}` : `${great} ${greatUnit}`;
}

/** How long ago, in one unit. */
export function ago(ms: number | undefined, now = Date.now()): string {
  if (ms === undefined) return "";
  const seconds = Math.max(0, (now - ms) / 1000);
  if (seconds < 10) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

const today = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** When it was: only the time of day, if that is today. */
export function when(time: Timestamp | undefined): string {
  const ms = milliseconds(time);
  if (ms === undefined) return "";
  const sameDay = new Date(ms).toDateString() === new Date().toDateString();
  return (sameDay ? today : clock).format(ms);
}

export function moment(time: Timestamp | undefined): string {
  const ms = milliseconds(time);
  return ms === undefined ? "" : clock.format(ms);
}
