import { useDeferredValue, useMemo, useRef, useState } from "react";
import type { Conversation } from "../api/wire";
import { Failed } from "../app/Failed";
import { Link, navigate, paths } from "../app/router";
import { useShortcuts } from "../app/shortcuts";
import { milliseconds, ago } from "../words/times";
import { many } from "../words/amounts";
import { nameOf, parseFilter } from "./names";
import { NewConversation } from "./NewConversation";
import { usePages } from "./usePages";

export function ConversationList({ current }: { current: string }) {
  const [filter, setFilter] = useState("");
  const [creating, setCreating] = useState(false);
  const box = useRef<HTMLInputElement>(null);
  const wanted = useMemo(() => parseFilter(filter), [filter]);
  const { list, more, loading, failure, loadMore } = usePages(useDeferredValue(wanted.labels));
  const shown = useMemo(
    () => list.filter((c) => wanted.words.every((word) => `${nameOf(c)} ${c.conversationId}`.toLowerCase().includes(word))),
    [list, wanted],
  );
  const step = (by: number) => {
    const at = shown.findIndex((c) => c.conversationId === current);
    const next = shown[at < 0 ? 0 : at + by];
    if (next) navigate(paths.conversation(next.conversationId));
  };
  useShortcuts({
    "/": () => box.current?.focus(),
    n: () => setCreating(true),
    j: () => step(1),
    k: () => step(-1),
  });

  return (
    <nav className="list" aria-label="Conversations">
      <div className="list-head">
        <input
          ref={box}
          type="search"
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
          onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
          placeholder="Title, or label=value"
          aria-label="Filter conversations by words of the title and by label=value"
          spellCheck={false}
        />
        <button type="button" className="primary" onClick={() => setCreating(true)}>
          New
        </button>
      </div>
      <Failed failure={failure} />
      <ul>
        {shown.map((c) => (
          <li key={c.conversationId}>
            <Link
              to={paths.conversation(c.conversationId)}
              aria-current={c.conversationId === current ? "page" : undefined}
              className="conversation"
            >
              <span className="conversation-line">
                <span className="conversation-name" dir="auto">
                  {nameOf(c)}
                </span>
                <time>{ago(milliseconds(c.updateTime))}</time>
              </span>
              <Facts conversation={c} />
            </Link>
          </li>
        ))}
      </ul>
      <p className="list-foot" role="status">
        {shown.length === 0 && !failure && (loading ? "Loading…" : list.length > 0 || filter ? "None matches." : "No conversations yet.")}
        {filter && more && ` Looked through ${many(list.length, "conversation")}.`}
      </p>
      {more && (
        <button type="button" className="more" disabled={loading} onClick={loadMore}>
          Load more
        </button>
      )}
      {creating && <NewConversation onClose={() => setCreating(false)} />}
    </nav>
  );
}

function Facts({ conversation }: { conversation: Conversation }) {
  const labels = Object.entries(conversation.labels).slice(0, 3);
  if (labels.length === 0 && !conversation.runningReplyId) return null;
  return (
    <span className="conversation-line">
      {conversation.runningReplyId && <span className="badge running">running</span>}
      {labels.map(([name, value]) => (
        <span key={name} className="label" dir="auto">
          {value ? `${name}=${value}` : name}
        </span>
      ))}
    </span>
  );
}
