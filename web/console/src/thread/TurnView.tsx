import { memo, useEffect, useState } from "react";
import { sameId } from "../../../client/src/index.js";
import { BlockKind, OnBusy, ReplyStatus, StopReason, type Block, type Reply, type TurnEntry, type UserTurn } from "../api/wire";
import { Failed } from "../app/Failed";
import { useShortcuts } from "../app/shortcuts";
import { useAction } from "../app/useAction";
import { Resolve } from "../operator/Resolve";
import type { Actions } from "./actions";
import { selectable } from "./actions";
import type { Live } from "./live";
import { ReplyFoot } from "./ReplyFoot";
import { GrowingReply, StoredReply } from "./ReplyView";
import { SaidTurn } from "./SaidTurn";
import { shownBlocks } from "./shown";
import { ToolForm } from "./ToolForm";
import { TurnLedger } from "./TurnLedger";

interface Props {
  entry: TurnEntry;
  turn: UserTurn;
  live: Live | undefined;
  /** Whether it is the last of the branch that is shown. */
  last: boolean;
  /** Whether some reply of the conversation is running. */
  busy: boolean;
  /** Whether the conversation was deleted, so that it can only be read as far as it is here. */
  gone: boolean;
  actions: Actions;
}

/** A user turn with its reply, or with whichever of its replies is looked at. */
export const TurnView = memo(function TurnView({ entry, turn, live, last, busy, gone, actions }: Props) {
  const [aside, setAside] = useState<Reply>();
  const [ledger, setLedger] = useState(false);
  const stored = entry.reply;
  useEffect(() => setAside(undefined), [stored?.replyId]);

  const growing = !aside && live && !isOld(live, stored) ? live : undefined;
  const shown = aside ?? stored;
  const running = !gone && (growing ? !growing.snapshot.end : stored?.status === ReplyStatus.IN_FLIGHT);
  const free = !busy && !gone;
  const step = useAction(async (by: 1 | -1) => {
    const replies = await actions.replies(turn.turnId);
    const at = replies.findIndex((reply) => reply.replyId === shown?.replyId);
    const next = replies[at + by];
    if (next) setAside(next.replyId === stored?.replyId ? undefined : next);
  });
  const act = useAction((what: () => Promise<void>) => what());
  const regenerate = () => stored && void act.run(() => actions.regenerate(turn, stored, live?.snapshot));
  const stop = () => void act.run(() => actions.stop(turn.turnId));
  const at = (shown?.attempt ?? 1) - 1;
  useShortcuts(
    last
      ? {
          ".": running ? stop : undefined,
          r: free && !aside ? regenerate : undefined,
          "[": at > 0 ? () => void step.run(-1) : undefined,
          "]": at < entry.replyCount - 1 ? () => void step.run(1) : undefined,
        }
      : {},
  );

  return (
    <article className="turn" aria-label={`Turn ${String(turn.seq)}`}>
      <SaidTurn turn={turn} siblings={entry.siblingTurnIds} gone={gone} actions={actions} />
      {(shown || growing) && (
        <div className={aside ? "reply aside" : "reply"} aria-busy={running} aria-label="Reply" role="group">
          {growing ? <GrowingReply snapshot={growing.snapshot} /> : shown && <StoredReply reply={shown} replaced={!!aside} />}
          <Failed failure={growing?.failure} />
          {last && !aside && !running && !gone && <AnswerTools reply={stored} live={growing} actions={actions} />}
          {shown?.status === ReplyStatus.HELD && !aside && !gone && <Resolve reply={shown} onResolved={() => void actions.goTo(turn.turnId)} />}
          <ReplyFoot
            reply={shown}
            snapshot={growing?.snapshot}
            count={entry.replyCount}
            onStep={(by) => void step.run(by)}
            onStop={running ? stop : undefined}
            onRegenerate={!running && free && !aside && shown?.status !== ReplyStatus.HELD ? regenerate : undefined}
            onAgain={growing?.snapshot.end && canRepeat(growing) && free ? () => actions.again(turn.turnId) : undefined}
            onUse={aside && selectable(aside) && free ? () => void act.run(() => actions.use(aside)) : undefined}
            ledger={ledger}
            onLedger={() => setLedger(!ledger)}
          />
          <Failed failure={act.failure ?? step.failure} />
          {ledger && <TurnLedger conversationId={turn.conversationId} turnId={turn.turnId} version={`${entry.replyCount} ${shown?.status}`} />}
        </div>
      )}
    </article>
  );
});

/** A live reply gives way to the stored one once that has ended too, or is another. */
function isOld({ snapshot }: Live, stored: Reply | undefined): boolean {
  if (!stored || !snapshot.end) return false;
  return snapshot.replyId !== stored.replyId || (stored.status !== ReplyStatus.IN_FLIGHT && !canRepeat({ snapshot }));
}

/** Whether the turn was sent from here and its end invites to send it again. */
function canRepeat({ snapshot }: Pick<Live, "snapshot">): boolean {
  return snapshot.end?.kind === "abandoned" && snapshot.turnId !== "" && sameId(snapshot.end.advice);
}

function AnswerTools({ reply, live, actions }: { reply: Reply | undefined; live: Live | undefined; actions: Actions }) {
  const blocks = live ? live.snapshot.blocks : shownBlocks(reply?.content ?? []);
  const end = live?.snapshot.end;
  const waits = live ? end?.kind === "completed" && end.stopReason === StopReason.TOOL_USE : reply?.stopReason === StopReason.TOOL_USE;
  const calls = blocks.filter((block) => block.kind === BlockKind.TOOL_USE);
  const parent = live?.snapshot.replyId || reply?.replyId;
  if (!waits || calls.length === 0 || !parent) return null;
  const send = async (draft: string, content: Block[]) => actions.send({ draft, content, parent, onBusy: OnBusy.REJECT });
  return <ToolForm key={parent} calls={calls} onSend={send} />;
}
