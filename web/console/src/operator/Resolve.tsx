import { create } from "@bufbuild/protobuf";
import { useState } from "react";
import { turnd } from "../api/turnd";
import { BlockSchema, type Block, type Reply } from "../api/wire";
import { changed } from "../app/changes";
import { Failed } from "../app/Failed";
import { useAction } from "../app/useAction";
import { useLoad } from "../app/useLoad";
import { ReplyBlocks } from "../thread/ReplyBlocks";
import { shownBlocks } from "../thread/shown";

interface Props {
  reply: Reply;
  onResolved: () => void;
}

/** The two ways out of held. */
export function Resolve({ reply, onResolved }: Props) {
  const [way, setWay] = useState<"" | "release" | "complete">("");
  const leave = () => setWay("");
  if (way === "release") return <Release reply={reply} onResolved={onResolved} onLeave={leave} />;
  if (way === "complete") return <Complete reply={reply} onResolved={onResolved} onLeave={leave} />;
  return (
    <div className="row">
      <button type="button" onClick={() => setWay("release")}>
        Release…
      </button>
      <button type="button" onClick={() => setWay("complete")}>
        Complete with text…
      </button>
    </div>
  );
}

function placeOf(reply: Reply) {
  return { conversationId: reply.conversationId, replyId: reply.replyId, expectedEpoch: reply.epoch };
}

function Release({ reply, onResolved, onLeave }: Props & { onLeave: () => void }) {
  const { run, busy, failure } = useAction(async () => {
    await turnd().operator.releaseHeldReply(placeOf(reply));
    changed(reply.conversationId);
    onLeave();
    onResolved();
  });
  return (
    <div className="resolve">
      <p>The reply is given up and its quota is given back. Whoever sends the turn again pays for another attempt.</p>
      <Failed failure={failure} />
      <div className="row">
        <button type="button" className="primary" autoFocus disabled={busy} onClick={() => void run()}>
          Release it
        </button>
        <button type="button" onClick={onLeave}>
          Leave it held
        </button>
      </div>
    </div>
  );
}

// What is stored may have been shown to somebody, so that a completion can only add to it.
function Complete({ reply, onResolved, onLeave }: Props & { onLeave: () => void }) {
  const [text, setText] = useState("");
  const stored = useLoad(`held ${reply.replyId}`, async () => {
    const found = await turnd().turn({ conversationId: reply.conversationId, replyId: reply.replyId });
    return found.replies.find((one) => one.replyId === reply.replyId)?.content ?? [];
  });
  const written = stored.value ?? [];
  const { run, busy, failure } = useAction(async () => {
    await turnd().operator.completeHeldReply({ ...placeOf(reply), content: continued(written, text) });
    changed(reply.conversationId);
    onLeave();
    onResolved();
  });
  const some = written.length > 0;
  return (
    <form
      className="resolve"
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
    >
      {some && (
        <section aria-label="Written so far" className="written">
          <p className="hint">Written so far. It may have been shown, and stays as it is.</p>
          <ReplyBlocks blocks={shownBlocks(written)} running={false} />
        </section>
      )}
      <label>
        {some ? "How it goes on" : "What the reply says"}
        <textarea autoFocus rows={4} value={text} onChange={(event) => setText(event.target.value)} dir="auto" />
      </label>
      <Failed failure={stored.failure ?? failure} />
      <div className="row">
        <button type="submit" className="primary" disabled={busy || !stored.value || (text.trim() === "" && !some)}>
          Complete it
        </button>
        <button type="button" onClick={onLeave}>
          Leave it held
        </button>
      </div>
    </form>
  );
}

/** What is written, and then the text: in the last block if that is one of text, else in one of its own. */
function continued(written: readonly Block[], text: string): Block[] {
  const last = written.at(-1);
  const before = last?.kind.case === "text" ? last.kind.value.text : undefined;
  const kept = before === undefined ? written : written.slice(0, -1);
  const whole = (before ?? "") + text;
  return whole === "" ? [...kept] : [...kept, create(BlockSchema, { kind: { case: "text", value: { text: whole } } })];
}
