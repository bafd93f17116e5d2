import { useState } from "react";
import { turnd } from "../api/turnd";
import type { Reply } from "../api/wire";
import { Failed } from "../app/Failed";
import { Page } from "../app/Page";
import { Link, paths } from "../app/router";
import { useLoad } from "../app/useLoad";
import { many } from "../words/amounts";
import { milliseconds, moment, span } from "../words/times";
import { NeedsScope } from "./NeedsScope";
import { Resolve } from "./Resolve";
import { shortId } from "../words/ids";

/** Replies of unknown outcome, for an operator to decide. */
export function HeldPage() {
  const [token, setToken] = useState<string[]>([]);
  const held = useLoad(
    `held ${token.length}`,
    (signal) => turnd().operator.listHeldReplies({ pageToken: token.at(-1) ?? "" }, { signal }),
    token.length === 0 ? 5_000 : 0,
  );
  const replies = held.value?.replies;
  const next = held.value?.nextPageToken;
  return (
    <Page title="Held replies" actions={<NeedsScope />}>
      <p className="lead">
        A request went out, and nobody knows what came of it. Held replies keep their place and their quota until somebody decides. Look at
        the provider's own records first.
      </p>
      <Failed failure={held.failure} />
      {replies?.length === 0 && <p className="nothing">Nothing is held.</p>}
      <ul className="cards">
        {replies?.map((reply) => <HeldReply key={reply.replyId} reply={reply} onResolved={held.reload} />)}
      </ul>
      <div className="row">
        {token.length > 0 && (
          <button type="button" onClick={() => setToken(token.slice(0, -1))}>
            Earlier page
          </button>
        )}
        {next && (
          <button type="button" onClick={() => setToken([...token, next])}>
            Next page
          </button>
        )}
      </div>
    </Page>
  );
}

function HeldReply({ reply, onResolved }: { reply: Reply; onResolved: () => void }) {
  const since = milliseconds(reply.createTime);
  return (
    <li className="card">
      <div className="row spread">
        <Link to={paths.conversation(reply.conversationId, reply.replyId)}>Conversation {shortId(reply.conversationId)}</Link>
        <span className="badge held">held</span>
      </div>
      <dl className="facts">
        <dt>Claimed</dt>
        <dd>
          {moment(reply.createTime)}
          {since !== undefined && `, ${span(Date.now() - since)} ago`}
        </dd>
        <dt>Model</dt>
        <dd>
          {reply.model} {reply.provider && `(${reply.provider})`}
        </dd>
        <dt>Attempt</dt>
        <dd>
          {reply.attempt}, generation {reply.generation}, epoch {String(reply.epoch)}
        </dd>
        <dt>Written so far</dt>
        <dd>{many(reply.length, "byte")}</dd>
        <dt>Ledger</dt>
        <dd>
          <Link to={paths.ledger(reply.conversationId, reply.turnId)}>Its provider calls</Link>
        </dd>
      </dl>
      <Resolve reply={reply} onResolved={onResolved} />
    </li>
  );
}
