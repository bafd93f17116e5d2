import type { SumProviderCallsResponse, Usage } from "../api/wire";
import { cost, count, percent } from "../words/amounts";

/** Tokens in and out together. */
export function tokensOf(usage: Usage | undefined): number {
  return usage ? Number(usage.inputTokens + usage.outputTokens) : 0;
}

export function share(part: number, rest: number): number {
  return part + rest > 0 ? part / (part + rest) : 0;
}

/** What the ledger adds up to, retries apart from first calls. */
export function Sums({ sums }: { sums: SumProviderCallsResponse }) {
  const first = Number(sums.firstCalls);
  const retried = Number(sums.retryCalls);
  const firstTokens = tokensOf(sums.firstUsage);
  const retryTokens = tokensOf(sums.retryUsage);
  const wasted = Object.values(sums.wastedTokens).reduce((all, n) => all + Number(n), 0);
  const spent = (sums.firstUsage?.costMicros ?? 0n) + (sums.retryUsage?.costMicros ?? 0n);
  return (
    <dl className="figures">
      <Figure name="Calls" value={count(first + retried)} note={`${count(retried)} of them retries, ${percent(share(retried, first))}`} />
      <Figure
        name="Tokens"
        value={count(firstTokens + retryTokens)}
        note={`${count(retryTokens)} of them by retries, ${percent(share(retryTokens, firstTokens))}`}
      />
      <Figure name="Wasted tokens" value={count(wasted)} note={percent(share(wasted, firstTokens + retryTokens - wasted))} />
      <Figure name="Cost" value={cost(spent)} note="in the price table's currency" />
    </dl>
  );
}

function Figure({ name, value, note }: { name: string; value: string; note: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <b>{value}</b>
        <span className="hint">{note}</span>
      </dd>
    </div>
  );
}
