import { ReplyStatus, StopReason, type Reply } from "../api/wire";
import type { ReplyEnd, ReplySnapshot } from "../api/turnd";
import { AbandonReason, RetryAdvice } from "../api/wire";
import { Outcome, endingOf, type Ending } from "./Outcome";
import { ReplyBlocks } from "./ReplyBlocks";
import { shownBlocks } from "./shown";

/** A reply that is stored. */
export function StoredReply({ reply, replaced }: { reply: Reply; replaced: boolean }) {
  return (
    <>
      <ReplyBlocks blocks={shownBlocks(reply.content)} running={false} />
      {reply.contentTruncated && <p className="hint">There is more than can be shown here.</p>}
      <Outcome ending={endingOf(reply)} replaced={replaced} />
    </>
  );
}

/** A reply that is being written, or has just ended. */
export function GrowingReply({ snapshot }: { snapshot: ReplySnapshot }) {
  const { blocks, end, state, link, restarts } = snapshot;
  const running = !end;
  return (
    <>
      {restarts > 0 && <p className="hint">The attempt before was given up. This is another.</p>}
      <ReplyBlocks blocks={blocks} running={running} />
      {running && blocks.length === 0 && <p className="hint waiting">{waiting(snapshot)}</p>}
      {running && state !== "queued" && blocks.length > 0 && <LinkNote link={link} />}
      {end && <Outcome ending={endingOfLive(end)} replaced={false} />}
    </>
  );
}

function waiting({ state, link, queuePosition }: ReplySnapshot): string {
  if (link === "offline") return "Offline. It goes on once the network is back.";
  if (state === "queued") return queuePosition ? `In line: ${queuePosition} before it.` : "In line: it is next.";
  if (state === "sending") return link === "waiting" ? "No connection yet, trying again…" : "Sending…";
  return "The model has not begun yet…";
}

function LinkNote({ link }: { link: ReplySnapshot["link"] }) {
  if (link === "offline") return <p className="hint">Offline. The reply goes on at the server, and is shown once the network is back.</p>;
  if (link === "waiting") return <p className="hint">The connection was lost. Connecting again…</p>;
  return null;
}

function endingOfLive(end: ReplyEnd): Ending {
  const none = { abandonReason: AbandonReason.UNSPECIFIED, stopReason: StopReason.UNSPECIFIED, advice: RetryAdvice.UNSPECIFIED, providerCode: "" };
  switch (end.kind) {
    case "completed":
      return { ...none, status: ReplyStatus.COMPLETE, stopReason: end.stopReason };
    case "held":
      return { ...none, status: ReplyStatus.HELD, advice: end.advice };
    case "abandoned":
      return { ...none, status: ReplyStatus.ABANDONED, abandonReason: end.reason, advice: end.advice, providerCode: end.providerCode };
  }
}
