import { create } from "@bufbuild/protobuf";
import { useEffect, useMemo, useRef, useState } from "react";
import { turnd } from "../api/turnd";
import { BlockSchema, type Conversation } from "../api/wire";
import { changed, onChange } from "../app/changes";
import { Failed } from "../app/Failed";
import { Link, paths } from "../app/router";
import { useAction } from "../app/useAction";
import { useLoad } from "../app/useLoad";
import { ConversationMenu } from "../conversations/ConversationMenu";
import { nameOf } from "../conversations/names";
import { actionsOf } from "./actions";
import { Announcer } from "./Announcer";
import { Composer, type Draft } from "./Composer";
import type { Live } from "./live";
import { PendingTurn } from "./PendingTurn";
import { plainText } from "./shown";
import { isGone, standingOf } from "./standing";
import { TurnView } from "./TurnView";
import { useLive } from "./useLive";
import { useStayBelow } from "./useStayBelow";
import { useThread } from "./useThread";
import { shortId } from "../words/ids";

const POLL_MS = 4_000;

/** A conversation as a thread: the branch down to its leaf, or down to another that is looked at. */
export function ConversationPage({ conversationId, at }: { conversationId: string; at: string }) {
  const loaded = useLoad(
    `conversation ${conversationId}`,
    async (signal) => (await turnd().conversations.getConversation({ conversationId }, { signal })).conversation,
    POLL_MS,
  );
  const conversation = loaded.value;
  const thread = useThread(conversationId, at);
  const { entries, reload } = thread;
  const reloadAll = useRef(() => {});
  reloadAll.current = () => {
    loaded.reload();
    reload();
  };
  const live = useLive(conversationId, entries, () => {
    reloadAll.current();
    changed(conversationId);
  });
  useEffect(() => onChange((id) => id === conversationId && reloadAll.current()), [conversationId]);
  const mark = conversation && `${conversation.leafId} ${conversation.runningReplyId} ${conversation.version}`;
  useEffect(() => {
    if (mark) reload();
  }, [mark, reload]);

  const latest = useRef(live);
  latest.current = live;
  // Made once for a conversation, so that turns that did not change are not drawn again.
  const actions = useMemo(() => {
    const now = { listen: live.listen, forget: live.forget, get live() { return latest.current.live; }, get said() { return latest.current.said; } };
    return actionsOf(conversationId, now, () => reloadAll.current());
  }, [conversationId, live.forget, live.listen]);

  const pending = pendingOf(live.live, new Set(entries.map((entry) => entry.turn?.turnId ?? "")));
  const gone = isGone([loaded.failure, thread.failure], conversation !== undefined);
  const { busy, turnId: runningTurn } = standingOf(live.live, entries, conversation);
  const end = useStayBelow(`${conversationId} ${at}`, thread.ready);
  const [back, setBack] = useState("");
  const stop = useAction((turnId: string) => actions.stop(turnId));
  const send = async (draft: Draft) => {
    const last = entries.at(-1);
    const parent = at ? last?.reply?.replyId || last?.turn?.turnId : undefined;
    const content = [create(BlockSchema, { kind: { case: "text", value: { text: draft.text } } })];
    actions.send({ draft: draft.id, content, onBusy: draft.onBusy, ...(parent && { parent }) });
    end.stay();
  };

  return (
    <div className="thread-page">
      <Head conversation={conversation} conversationId={conversationId} gone={gone} />
      <div className="thread">
        <Failed failure={thread.failure ?? loaded.failure} />
        {at && (
          <p className="notice">
            <span>You look at another branch. What you send here goes on below it.</span>
            <Link to={paths.conversation(conversationId)}>To the current branch</Link>
          </p>
        )}
        {thread.earlier && (
          <button type="button" className="more" disabled={thread.loading} onClick={thread.loadEarlier}>
            Earlier turns
          </button>
        )}
        {entries.map((entry, index) =>
          entry.turn ? (
            <TurnView
              key={entry.turn.turnId}
              entry={entry}
              turn={entry.turn}
              live={live.live.get(entry.turn.turnId)}
              last={index === entries.length - 1}
              busy={busy}
              gone={gone}
              actions={actions}
            />
          ) : null,
        )}
        {pending.map(([turnId, one]) => (
          <PendingTurn
            key={turnId}
            content={live.said.get(turnId) ?? []}
            live={one}
            onStop={() => void stop.run(turnId)}
            onDismiss={() => {
              setBack(plainText(live.said.get(turnId) ?? []));
              live.forget(turnId);
            }}
          />
        ))}
        <Failed failure={stop.failure} />
        {thread.ready && entries.length === 0 && pending.length === 0 && !thread.failure && <p className="nothing">Nothing was said yet.</p>}
        <div ref={end.mark} />
      </div>
      <Announcer snapshot={(runningTurn && live.live.get(runningTurn)?.snapshot) || latestEnd(live.live)} />
      <Composer
        running={busy && !gone}
        gone={gone}
        given={back}
        onSend={send}
        onStop={runningTurn ? () => void stop.run(runningTurn) : undefined}
      />
    </div>
  );
}

function Head({ conversation, conversationId, gone }: { conversation: Conversation | undefined; conversationId: string; gone: boolean }) {
  const name = conversation ? nameOf(conversation) : `Conversation ${shortId(conversationId)}`;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    document.title = `${name} · turnd`;
  }, [name]);
  return (
    <header className="thread-head">
      <Link to={paths.conversations()} className="back" aria-label="All conversations">
        ‹
      </Link>
      <h1 ref={heading} tabIndex={-1} dir="auto" title={conversationId}>
        {name}
      </h1>
      {conversation && !gone && (
        <div className="row">
          <ConversationMenu conversation={conversation} />
        </div>
      )}
    </header>
  );
}

/** Turns that were sent from this browser and are not part of what is shown, but for those that are over. */
function pendingOf(live: ReadonlyMap<string, Live>, shown: ReadonlySet<string>): [string, Live][] {
  return [...live].filter(([turnId, { snapshot, failure }]) => !shown.has(turnId) && (!snapshot.end || failure));
}

function latestEnd(live: ReadonlyMap<string, Live>) {
  return [...live.values()].at(-1)?.snapshot;
}
