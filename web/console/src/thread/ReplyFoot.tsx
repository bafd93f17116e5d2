import type { ReplySnapshot } from "../api/turnd";
import { ReplyStatus, type Reply } from "../api/wire";
import { status as statusWords } from "../words/states";
import { ago, milliseconds, moment, span } from "../words/times";
import { Siblings } from "./Siblings";
import { Used } from "./TurnLedger";

interface Props {
  reply: Reply | undefined;
  snapshot: ReplySnapshot | undefined;
  count: number;
  onStep: (by: 1 | -1) => void;
  onStop: (() => void) | undefined;
  onRegenerate: (() => void) | undefined;
  onAgain: (() => void) | undefined;
  onUse: (() => void) | undefined;
  ledger: boolean;
  onLedger: () => void;
}

/** What is known about a reply, and what can be done with it. */
export function ReplyFoot(props: Props) {
  const { reply, snapshot, count, onStep, onStop, onRegenerate, onAgain, onUse, ledger, onLedger } = props;
  const attempt = snapshot?.attempt || reply?.attempt || 1;
  const model = snapshot?.model || reply?.model;
  return (
    <div className="under">
      <Siblings what="reply to this turn" at={attempt - 1} of={Math.max(count, attempt)} onStep={onStep} />
      <State reply={reply} snapshot={snapshot} />
      {model && <span>{model}</span>}
      <Times reply={reply} />
      {!snapshot && <Used usage={reply?.usage} />}
      {snapshot?.end && snapshot.end.kind !== "held" && <Used usage={snapshot.end.usage} />}
      {onStop && <Act onClick={onStop}>{snapshot?.state === "queued" ? "Take out of line" : "Stop"}</Act>}
      {onUse && <Act onClick={onUse}>Use this reply</Act>}
      {onAgain && <Act onClick={onAgain}>Send again</Act>}
      {onRegenerate && <Act onClick={onRegenerate}>Regenerate</Act>}
      <button type="button" className="small" aria-expanded={ledger} onClick={onLedger}>
        Ledger
      </button>
    </div>
  );
}

function Act({ onClick, children }: { onClick: () => void; children: string }) {
  return (
    <button type="button" className="small" onClick={onClick}>
      {children}
    </button>
  );
}

function State({ reply, snapshot }: Pick<Props, "reply" | "snapshot">) {
  if (snapshot && !snapshot.end) {
    const word = snapshot.state === "queued" ? "in line" : snapshot.state === "restarted" ? "restarted" : "running";
    return <span className={`badge ${snapshot.state === "queued" ? "held" : "running"}`}>{word}</span>;
  }
  const kind = snapshot?.end?.kind;
  if (kind === "completed" || (!kind && reply?.status === ReplyStatus.COMPLETE)) return null;
  if (kind === "held" || (!kind && reply?.status === ReplyStatus.HELD)) return <span className="badge held">held</span>;
  if (!kind && reply?.status === ReplyStatus.IN_FLIGHT) return <span className="badge running">running</span>;
  return <span className="badge">{statusWords[ReplyStatus.ABANDONED]}</span>;
}

function Times({ reply }: { reply: Reply | undefined }) {
  const began = milliseconds(reply?.createTime);
  const ended = milliseconds(reply?.endTime);
  if (began === undefined) return null;
  return (
    <span title={moment(reply?.createTime)}>
      {ago(began)}
      {ended !== undefined && ended >= began && `, took ${span(ended - began)}`}
    </span>
  );
}
