import { turnd } from "../api/turnd";
import { Failed } from "../app/Failed";
import { useLoad } from "../app/useLoad";
import { CallTable } from "../operator/CallTable";
import { cost, tokens } from "../words/amounts";
import type { Usage } from "../api/wire";

/** The provider calls of one turn, over all its replies. */
export function TurnLedger({ conversationId, turnId, version }: { conversationId: string; turnId: string; version: string }) {
  const calls = useLoad(`calls ${turnId} ${version}`, async (signal) => {
    const filter = { conversationId, turnId };
    const [ledger, turn] = await Promise.all([
      turnd().operator.listProviderCalls({ filter, pageSize: 200 }, { signal }),
      turnd().turns.getTurn({ conversationId, target: { case: "turnId", value: turnId } }, { signal }),
    ]);
    return { calls: ledger.calls, more: ledger.nextPageToken !== "", replies: turn.replies };
  });
  return (
    <section className="turn-ledger" aria-label="Ledger of this turn">
      <Failed failure={calls.failure} />
      {!calls.value && calls.loading && <p className="hint">Loading…</p>}
      {calls.value && (calls.value.calls.length > 0 ? <CallTable {...calls.value} /> : <p className="hint">No provider was called.</p>)}
      {calls.value?.more && <p className="hint">There are more on the page of the ledger.</p>}
    </section>
  );
}

/** What a reply used, in a line. */
export function Used({ usage }: { usage: Usage | undefined }) {
  const counted = tokens(usage);
  if (!usage || !counted) return null;
  return (
    <span title="Tokens of all its provider calls">
      {counted} tokens
      {usage.costMicros > 0n && `, cost ${cost(usage.costMicros)}`}
      {usage.providerCalls > 1 && `, ${usage.providerCalls} calls`}
      {usage.wastedTokens > 0n && `, ${String(usage.wastedTokens)} wasted`}
    </span>
  );
}
