import { CallClass, type ProviderCall, type Reply } from "../api/wire";
import { Link, paths } from "../app/router";
import { cost, count, estimated } from "../words/amounts";
import { classes } from "../words/states";
import { milliseconds, moment, span, when } from "../words/times";
import { shortId } from "../words/ids";

/** Provider calls, one a row. */
export function CallTable({ calls, replies, places = false }: { calls: ProviderCall[]; replies?: Reply[]; places?: boolean }) {
  const attempts = new Map(replies?.map((reply) => [reply.replyId, reply]));
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Provider calls">
      <table>
        <thead>
          <tr>
            {places && <th scope="col">Conversation</th>}
            {replies && <th scope="col">Attempt</th>}
            <th scope="col">Call</th>
            <th scope="col">Class</th>
            <th scope="col">Model</th>
            <th scope="col" className="number">
              In
            </th>
            <th scope="col" className="number">
              Out
            </th>
            <th scope="col" className="number">
              Cost
            </th>
            <th scope="col" className="number">
              Took
            </th>
            <th scope="col">Began</th>
            <th scope="col">Wasted</th>
          </tr>
        </thead>
        <tbody>
          {calls.map((call) => (
            <tr key={call.callId}>
              {places && (
                <td>
                  <Link to={paths.conversation(call.conversationId, call.replyId)}>{shortId(call.conversationId)}</Link>
                </td>
              )}
              {replies && <td>{attemptOf(attempts.get(call.replyId))}</td>}
              <td>
                {call.number} <span className="hint">{call.first ? "first" : "retry"}</span>
              </td>
              <td>
                <span className={`badge ${tone(call.class)}`} title={`Transport: ${call.phase}`}>
                  {classes[call.class] ?? "unknown"}
                </span>
                {call.httpStatus > 0 && <span className="hint"> {call.httpStatus}</span>}
              </td>
              <td title={call.provider}>
                {call.model}
                <span className="hint"> {call.endpoint}</span>
              </td>
              <Tokens call={call} />
              <td className="number">{cost(call.usage?.costMicros ?? 0n)}</td>
              <td className="number">{took(call)}</td>
              <td title={moment(call.createTime)}>{when(call.createTime)}</td>
              <td>{call.wasteCause}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Tokens({ call }: { call: ProviderCall }) {
  const usage = call.usage;
  const mark = estimated(usage) ? "≈ " : "";
  const title = estimated(usage) ? "Estimated by turnd" : "Reported by the provider";
  return (
    <>
      <td className="number" title={title}>
        {mark}
        {count(usage?.inputTokens ?? 0n)}
      </td>
      <td className="number" title={title}>
        {mark}
        {count(usage?.outputTokens ?? 0n)}
      </td>
    </>
  );
}

function attemptOf(reply: Reply | undefined): string {
  return reply ? `${reply.attempt}${reply.generation > 1 ? ` (generation ${reply.generation})` : ""}` : "";
}

function took(call: ProviderCall): string {
  const began = milliseconds(call.createTime);
  const ended = milliseconds(call.endTime);
  return began === undefined ? "" : ended === undefined ? "…" : span(ended - began);
}

function tone(kind: CallClass): string {
  switch (kind) {
    case CallClass.OK:
      return "good";
    case CallClass.UNSPECIFIED:
      return "running";
    case CallClass.AMBIGUOUS:
    case CallClass.TERMINAL:
      return "bad";
    default:
      return "held";
  }
}
