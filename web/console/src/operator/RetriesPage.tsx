import { Failed } from "../app/Failed";
import { Page } from "../app/Page";
import { navigate, paths } from "../app/router";
import { useLoad } from "../app/useLoad";
import { count, percent } from "../words/amounts";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { turnd } from "../api/turnd";
import { Chart, type Bar } from "./Chart";
import { NeedsScope } from "./NeedsScope";
import { share, Sums, tokensOf } from "./Sums";
import { RANGES, sumWindows, type Range, type Window } from "./windows";

const REFRESH_MS = 30_000;

/** What retries cost: their share of requests, and of tokens, which is what is paid for. */
export function RetriesPage({ range: name }: { range: string }) {
  const range = RANGES.find((r) => r.name === name) ?? RANGES[0];
  const windows = useLoad(`windows ${range.name}`, (signal) => sumWindows(range, Date.now(), signal), REFRESH_MS);
  const whole = useLoad(
    `whole ${range.name}`,
    (signal) => {
      const start = (Math.floor(Date.now() / range.windowMs) - range.windows + 1) * range.windowMs;
      return turnd().operator.sumProviderCalls({ filter: { startTime: timestampFromMs(start) } }, { signal });
    },
    REFRESH_MS,
  );
  return (
    <Page
      title="Retries"
      actions={
        <>
          <NeedsScope />
          <label className="inline">
            <span className="unseen">Time</span>
            <select value={range.name} onChange={(event) => navigate(paths.retries(event.target.value), true)}>
              {RANGES.map((r) => (
                <option key={r.name} value={r.name}>
                  {r.words}
                </option>
              ))}
            </select>
          </label>
        </>
      }
    >
      <p className="lead">Retries fall on the longest requests, and the invoice counts tokens: so the share of tokens is the one to watch.</p>
      <Failed failure={windows.failure ?? whole.failure} />
      {whole.value && <Sums sums={whole.value} />}
      {windows.value ? <Charts windows={windows.value} range={range} /> : windows.loading && <p role="status">Adding up…</p>}
      {whole.value && (
        <div className="columns">
          <Causes title="Wasted tokens by cause" amounts={whole.value.wastedTokens} none="None were wasted." />
          <Causes title="Repeated deliveries by layer" amounts={whole.value.duplicates} none="Nothing was delivered twice." />
        </div>
      )}
    </Page>
  );
}

function Charts({ windows, range }: { windows: Window[]; range: Range }) {
  const format = new Intl.DateTimeFormat(undefined, range.windowMs < 3_600_000 * 6 ? { hour: "2-digit", minute: "2-digit" } : { weekday: "short", hour: "2-digit" });
  const bars = (part: (w: Window) => [retries: number, first: number], unit: string): Bar[] =>
    windows.map((w) => {
      const [retries, first] = part(w);
      const all = retries + first;
      return { name: format.format(w.start), share: share(retries, first), note: `${count(retries)} of ${count(all)} ${unit}`, any: all > 0 };
    });
  const requests = bars((w) => [Number(w.sums.retryCalls), Number(w.sums.firstCalls)], "requests");
  const tokens = bars((w) => [tokensOf(w.sums.retryUsage), tokensOf(w.sums.firstUsage)], "tokens");
  return (
    <>
      <Chart title="Retries in requests" bars={requests} tone="requests" />
      <Chart title="Retries in tokens" bars={tokens} tone="tokens" />
      <details>
        <summary>The same as a table</summary>
        <div className="scroll" tabIndex={0} role="region" aria-label="Retries over time">
          <table>
            <thead>
              <tr>
                <th scope="col">From</th>
                <th scope="col">Requests</th>
                <th scope="col">Tokens</th>
              </tr>
            </thead>
            <tbody>
              {requests.map((bar, at) => (
                <tr key={bar.name}>
                  <td>{bar.name}</td>
                  <td>
                    {percent(bar.share)} <span className="hint">{bar.note}</span>
                  </td>
                  <td>
                    {percent(tokens[at]?.share ?? 0)} <span className="hint">{tokens[at]?.note}</span>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </>
  );
}

function Causes({ title, amounts, none }: { title: string; amounts: Readonly<Record<string, bigint>>; none: string }) {
  const sorted = Object.entries(amounts)
    .filter(([, n]) => n > 0n)
    .sort(([, a], [, b]) => Number(b - a));
  return (
    <section>
      <h2>{title}</h2>
      {sorted.length === 0 ? (
        <p className="hint">{none}</p>
      ) : (
        <dl className="facts">
          {sorted.map(([cause, n]) => (
            <div key={cause}>
              <dt>{cause}</dt>
              <dd className="number">{count(n)}</dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}
