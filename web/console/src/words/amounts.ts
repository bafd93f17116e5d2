import { TokenSource, type Usage } from "../api/wire";

const counted = new Intl.NumberFormat();

export function count(n: number | bigint): string {
  return counted.format(n);
}

/** One of something, or many. */
export function many(n: number, one: string, more = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : more}`;
}

/** An amount of the price table's currency, from millionths. */
export function cost(micros: bigint): string {
  const whole = Number(micros) / 1e6;
  if (whole === 0) return "0";
  return whole.toLocaleString(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 6 });
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0).replace(/\.0$/, "")} %`;
}

export function estimated(usage: Usage | undefined): boolean {
  return usage?.source === TokenSource.ESTIMATED;
}

/** Tokens in and out, with a mark if they were estimated. */
export function tokens(usage: Usage | undefined): string {
  if (!usage || usage.source === TokenSource.UNSPECIFIED) return "";
  return `${estimated(usage) ? "≈ " : ""}${count(usage.inputTokens)} in, ${count(usage.outputTokens)} out`;
}
