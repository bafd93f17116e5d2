import { turnd } from "../api/turnd";
import type { Worker } from "../api/wire";
import { Failed } from "../app/Failed";
import { Page } from "../app/Page";
import { useLoad } from "../app/useLoad";
import { count } from "../words/amounts";
import { ago, durationMs, milliseconds, moment, span } from "../words/times";
import { NeedsScope } from "./NeedsScope";

const REFRESH_MS = 5_000;

export function WorkersPage() {
  const workers = useLoad("workers", (signal) => turnd().operator.listWorkers({}, { signal }), REFRESH_MS);
  return (
    <Page title="Workers" actions={<NeedsScope />}>
      <p className="lead">A worker is a running turnd. Its claims are good while its lease is; the claims of a dead one are swept.</p>
      <Failed failure={workers.failure} />
      {workers.value && (
        <div className="scroll" tabIndex={0} role="region" aria-label="Workers">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">State</th>
                <th scope="col">Lease</th>
                <th scope="col" className="number">
                  Claims
                </th>
                <th scope="col" className="number">
                  Up for
                </th>
                <th scope="col">Id</th>
              </tr>
            </thead>
            <tbody>
              {workers.value.workers.map((worker) => (
                <Row key={worker.workerId} worker={worker} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Page>
  );
}

function Row({ worker }: { worker: Worker }) {
  const until = milliseconds(worker.leaseExpireTime);
  const alive = until !== undefined && until > Date.now();
  const state = !alive ? "dead" : worker.draining ? "draining" : "alive";
  return (
    <tr>
      <th scope="row">{worker.name}</th>
      <td>
        <span className={`badge ${alive ? (worker.draining ? "held" : "good") : "bad"}`}>{state}</span>
      </td>
      <td title={moment(worker.leaseExpireTime)}>{until === undefined ? "" : alive ? `${span(until - Date.now())} left` : `ran out ${ago(until)}`}</td>
      <td className="number">{count(worker.inFlight)}</td>
      <td className="number">{span(durationMs(worker.uptime))}</td>
      <td>
        <code>{worker.workerId}</code>
      </td>
    </tr>
  );
}
