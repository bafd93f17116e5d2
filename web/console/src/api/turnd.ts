import { createTurnd, type Turnd } from "../../../client/src/index.js";
import { credentials, identity, onIdentity, setIdentity, type Identity } from "./identity";

export { TurndError, type Reply as LiveSource, type ReplySnapshot, type ReplyEnd } from "../../../client/src/index.js";

let client: Turnd | undefined;
onIdentity(() => (client = undefined));

/** The client of who calls now. Turns in flight are recorded apart for each who called from this browser. */
export function turnd(): Turnd {
  client ??= createTurnd({ baseUrl: window.location.origin, headers: credentials, storagePrefix: `turnd:${caller()}:` });
  return client;
}

/**
 * Takes another identity for all further calls. A key that is given up takes with it what this browser recorded under it, since
 * the records hold what was said. Tells whether the new identity outlives the page.
 */
export function actAs(next: Identity): boolean {
  const former = identity().key ? turnd() : undefined;
  const before = caller();
  const kept = setIdentity(next);
  if (caller() !== before) former?.forgetRecords();
  return kept;
}

/** Forgets who calls, and what this browser recorded for them. */
export function forgetIdentity(): void {
  turnd().forgetRecords();
  setIdentity({ key: "", tenant: "", subject: "" });
}

// A key's second part is its public name; the secret is written nowhere but where it was entered.
function caller(): string {
  const { key, tenant, subject } = identity();
  const [scheme, id, secret] = key.split("_");
  const named = scheme === "turnd" && id && secret ? id : key ? "token" : "";
  return [named, tenant, subject].map(encodeURIComponent).join(":");
}
