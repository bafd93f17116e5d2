import type { ReactNode } from "react";
import type { Failure } from "../api/failure";
import { Link, paths } from "./router";

/** Says why something failed, and what can be done about it. */
export function Failed({ failure, children }: { failure: Failure | undefined; children?: ReactNode }) {
  if (!failure) return null;
  const scope = failure.reason === "SCOPE_MISSING" ? failure.metadata.scope : undefined;
  return (
    <div className="failed" role="alert">
      <strong>{failure.title}</strong>
      {scope ? (
        <p>
          It takes a key with the scope <code>{scope}</code>. <Link to={paths.identity()}>Use another key</Link>
        </p>
      ) : failure.reason === "UNAUTHENTICATED" ? (
        <p>
          {failure.detail} <Link to={paths.identity()}>Enter a key</Link>
        </p>
      ) : (
        <p>
          {failure.detail} {failure.reason && <code className="reason">{failure.reason}</code>}
        </p>
      )}
      {children}
    </div>
  );
}
