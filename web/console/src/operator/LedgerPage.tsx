import { useState } from "react";
import { turnd } from "../api/turnd";
import { Failed } from "../app/Failed";
import { Page } from "../app/Page";
import { Link, navigate, paths } from "../app/router";
import { useLoad } from "../app/useLoad";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { CallTable } from "./CallTable";
import { NeedsScope } from "./NeedsScope";
import { Sums } from "./Sums";
import { shortId } from "../words/ids";

const DAY_MS = 86_400_000;

/** The ledger: every provider call of a conversation or a turn, or of the last day. */
export function LedgerPage({ conversationId, turnId }: { conversationId: string; turnId: string }) {
  const [tokens, setTokens] = useState<string[]>([]);
  const [since] = useState(() => timestampFromMs(Date.now() - DAY_MS));
  const filter = conversationId ? { conversationId, turnId } : { startTime: since };
  const name = `${conversationId} ${turnId}`;
  const page = useLoad(`ledger ${name} ${tokens.at(-1) ?? ""}`, (signal) =>
    turnd().operator.listProviderCalls({ filter, pageToken: tokens.at(-1) ?? "" }, { signal }),
  );
  const sums = useLoad(`sums ${name}`, (signal) => turnd().operator.sumProviderCalls({ filter }, { signal }));
  const next = page.value?.nextPageToken;
  return (
    <Page title="Ledger" actions={<NeedsScope />}>
      <p className="lead">
        {conversationId ? (
          <>
            Provider calls of {turnId ? "a turn of " : ""}
            <Link to={paths.conversation(conversationId)}>conversation {shortId(conversationId)}</Link>.{" "}
            <Link to={paths.ledger()}>All of the last day</Link>
          </>
        ) : (
          "Every request to a provider in the last 24 hours, the earliest first. It is entered before it leaves."
        )}
      </p>
      {!conversationId && <OfConversation />}
      <Failed failure={page.failure ?? sums.failure} />
      {sums.value && <Sums sums={sums.value} />}
      {page.value?.calls.length === 0 && <p className="nothing">No provider calls.</p>}
      {page.value && page.value.calls.length > 0 && <CallTable calls={page.value.calls} places={!turnId} />}
      <div className="row">
        {tokens.length > 0 && (
          <button type="button" onClick={() => setTokens(tokens.slice(0, -1))}>
            Earlier page
          </button>
        )}
        {next && (
          <button type="button" onClick={() => setTokens([...tokens, next])}>
            Next page
          </button>
        )}
        <button type="button" onClick={() => (page.reload(), sums.reload())}>
          Refresh
        </button>
      </div>
    </Page>
  );
}

function OfConversation() {
  const [id, setId] = useState("");
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        if (id.trim()) navigate(paths.ledger(id.trim()));
      }}
    >
      <input value={id} onChange={(event) => setId(event.target.value)} placeholder="Id of a conversation" aria-label="Id of a conversation" spellCheck={false} />
      <button type="submit">Show its calls</button>
    </form>
  );
}
