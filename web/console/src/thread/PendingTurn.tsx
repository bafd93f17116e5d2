import type { Block } from "../api/wire";
import { Failed } from "../app/Failed";
import type { Live } from "./live";
import { GrowingReply } from "./ReplyView";
import { UserBlocks } from "./UserBlocks";

/** A turn that was sent from here, and is not part of what was loaded: on its way, in line, or refused. */
export function PendingTurn({ content, live, onStop, onDismiss }: { content: readonly Block[]; live: Live; onStop: () => void; onDismiss: () => void }) {
  const { snapshot, failure } = live;
  return (
    <article className="turn" aria-label="Turn on its way">
      <div className="said">
        <UserBlocks content={content} />
      </div>
      <div className="reply" role="group" aria-label="Reply" aria-busy={!snapshot.end && !failure}>
        {failure ? (
          <Failed failure={failure}>
            <div className="row">
              <button type="button" onClick={onDismiss}>
                Take it back into the box
              </button>
            </div>
          </Failed>
        ) : (
          <>
            <GrowingReply snapshot={snapshot} />
            {!snapshot.end && snapshot.state !== "sending" && (
              <div className="under">
                <span className={`badge ${snapshot.state === "queued" ? "held" : "running"}`}>
                  {snapshot.state === "queued" ? "in line" : "running"}
                </span>
                <button type="button" className="small" onClick={onStop}>
                  {snapshot.state === "queued" ? "Take out of line" : "Stop"}
                </button>
              </div>
            )}
          </>
        )}
      </div>
    </article>
  );
}
