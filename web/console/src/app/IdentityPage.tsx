import { useState, type FormEvent } from "react";
import { actAs, forgetIdentity, turnd } from "../api/turnd";
import { failureOf, type Failure } from "../api/failure";
import { identity } from "../api/identity";
import { Failed } from "./Failed";
import { Page } from "./Page";
import { navigate, paths } from "./router";

/** Where a key is entered, or on a server without authentication whom to act for. */
export function IdentityPage() {
  const [draft, setDraft] = useState(identity);
  const [failure, setFailure] = useState<Failure>();
  const [said, setSaid] = useState("");
  const change = (name: "key" | "tenant" | "subject") => (event: { target: { value: string } }) =>
    setDraft({ ...draft, [name]: event.target.value });

  const use = async (event: FormEvent) => {
    event.preventDefault();
    const next = { key: draft.key.trim(), tenant: draft.tenant.trim(), subject: draft.subject.trim() };
    const kept = actAs(next);
    setFailure(undefined);
    try {
      await turnd().conversations.listConversations({ pageSize: 1 });
    } catch (error) {
      const failed = failureOf(error);
      if (failed.reason !== "SCOPE_MISSING") return setFailure(failed);
    }
    if (kept) return navigate(paths.conversations());
    setSaid("In use until this page is left: the browser lets nothing be kept.");
  };

  return (
    <Page title="Who you are">
      <form className="sheet narrow" onSubmit={(event) => void use(event)}>
        <label>
          Key or token
          <input
            type="password"
            value={draft.key}
            onChange={change("key")}
            autoComplete="off"
            spellCheck={false}
            placeholder="turnd_…"
            aria-describedby="key-kept"
          />
        </label>
        <p id="key-kept" className="hint">
          Kept for this tab alone, until it is closed, and sent with each call as a header. It is never part of an address. Scopes:{" "}
          <code>read</code> shows conversations, <code>turns</code> writes in them, <code>operator</code> is for the pages of operators.
        </p>
        <details open={draft.tenant !== "" || draft.subject !== ""}>
          <summary>Without a key</summary>
          <p className="hint">A server on loopback with no authentication believes these names.</p>
          <label>
            Tenant
            <input value={draft.tenant} onChange={change("tenant")} placeholder="default" spellCheck={false} autoComplete="off" />
          </label>
          <label>
            Subject
            <input value={draft.subject} onChange={change("subject")} placeholder="default" spellCheck={false} autoComplete="off" />
          </label>
        </details>
        <Failed failure={failure} />
        {said && <p role="status">{said}</p>}
        <div className="row">
          <button type="submit" className="primary">
            Use it
          </button>
          <button
            type="button"
            onClick={() => {
              forgetIdentity();
              setDraft(identity());
              setFailure(undefined);
              setSaid("Forgotten.");
            }}
          >
            Forget it
          </button>
        </div>
      </form>
    </Page>
  );
}
