import { AbandonReason, ReplyStatus, RetryAdvice, StopReason, type Reply } from "../api/wire";
import { abandoned, advice as adviceWords, stopped } from "../words/states";

/** How a reply ended, if not simply well: why, and what can be done. */
export interface Ending {
  status: ReplyStatus;
  abandonReason: AbandonReason;
  stopReason: StopReason;
  advice: RetryAdvice;
  providerCode: string;
}

export function endingOf(reply: Reply): Ending {
  const { status, abandonReason, stopReason, advice } = reply;
  return { status, abandonReason, stopReason, advice, providerCode: "" };
}

export function Outcome({ ending, replaced }: { ending: Ending; replaced: boolean }) {
  if (ending.status === ReplyStatus.HELD) {
    return (
      <p className="outcome held">
        <strong>Held.</strong> Nobody knows what came of the request. It keeps its place until an operator decides.
      </p>
    );
  }
  if (ending.status === ReplyStatus.ABANDONED) {
    const superseded = ending.abandonReason === AbandonReason.SUPERSEDED;
    return (
      <p className={superseded || ending.abandonReason === AbandonReason.CANCELLED ? "outcome" : "outcome bad"}>
        <strong>{abandoned[ending.abandonReason] ?? "Given up"}.</strong>
        {ending.providerCode && <code> {ending.providerCode}</code>} {!superseded && !replaced && adviceWords[ending.advice]}
      </p>
    );
  }
  const words = stopped[ending.stopReason];
  return words ? <p className="outcome">{words}.</p> : null;
}
