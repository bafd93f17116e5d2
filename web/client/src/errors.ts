import { Code, ConnectError } from "@connectrpc/connect";
import { type FieldViolation, type QuotaViolation, readDetails } from "./error_details.js";
import { ErrorReason } from "./gen/turns/v1/error_pb.js";
import { RetryAdvice } from "./gen/turns/v1/turn_pb.js";

/** What a {@link TurndError} is made of. */
export interface TurndErrorInit {
  readonly code: Code;
  readonly reason?: ErrorReason;
  readonly advice?: RetryAdvice;
  readonly retryDelay?: number;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly fieldViolations?: readonly FieldViolation[];
  readonly quotaViolations?: readonly QuotaViolation[];
  readonly gaveUp?: boolean;
  readonly cause?: unknown;
}

/** A failure by the server's word or by the link's. Calls of this package throw nothing else, but for the reason of a signal that aborts. */
export class TurndError extends Error {
  override readonly name = "TurndError";
  /** The status. */
  readonly code: Code;
  /** Why; unspecified if the failure did not come from turnd, but from what lies between. */
  readonly reason: ErrorReason;
  /** What can be done. Never unspecified: a failure that carries none has the advice that its code suggests. */
  readonly advice: RetryAdvice;
  /** How long the server asks to wait, in milliseconds; 0 if it does not say. */
  readonly retryDelay: number;
  /** What goes with the reason, such as the turn that keeps a conversation busy. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The fields at fault, with reason `INVALID_FIELD`. */
  readonly fieldViolations: readonly FieldViolation[];
  /** The quotas that are used up, with reason `QUOTA_EXCEEDED`. */
  readonly quotaViolations: readonly QuotaViolation[];
  /** True if tries are used up. The turn can still be sent again under its id. */
  readonly gaveUp: boolean;

  constructor(message: string, init: TurndErrorInit) {
    super(message, { cause: init.cause });
    this.code = init.code;
    this.reason = init.reason ?? ErrorReason.UNSPECIFIED;
    this.advice = init.advice ?? adviceFor(init.code);
    this.retryDelay = init.retryDelay ?? 0;
    this.metadata = init.metadata ?? {};
    this.fieldViolations = init.fieldViolations ?? [];
    this.quotaViolations = init.quotaViolations ?? [];
    this.gaveUp = init.gaveUp ?? false;
  }

  /** The failure of any value that was thrown. */
  static from(thrown: unknown): TurndError {
    if (thrown instanceof TurndError) return thrown;
    const error = ConnectError.from(thrown, Code.Unavailable);
    const details = readDetails(error);
    if (details.domain !== "turnd") {
      return new TurndError(error.message, { code: error.code, retryDelay: details.retryDelay, cause: thrown });
    }
    const name = details.reason ?? "";
    return new TurndError(name === "" ? error.rawMessage : `${name}: ${error.rawMessage}`, {
      ...details,
      code: error.code,
      reason: byName(ErrorReason, name) ?? ErrorReason.UNSPECIFIED,
      advice: byName(RetryAdvice, details.metadata["retry"]) ?? adviceFor(error.code),
      cause: thrown,
    });
  }

  /** The same failure, after the last try. */
  afterTries(tries: number): TurndError {
    return new TurndError(`gave up after ${tries} tries in a row: ${this.message}`, { ...this, gaveUp: true, cause: this });
  }

  /** Whether turnd itself has answered. */
  get fromTurnd(): boolean {
    return this.reason !== ErrorReason.UNSPECIFIED;
  }

  /**
   * Whether this is turnd's last word on the turn, so that nothing has to be remembered of it. Who the caller is, is another
   * matter: with the right key the turn may turn out to be running.
   */
  get settles(): boolean {
    if (!this.fromTurnd || sameId(this.advice)) return false;
    if (this.code === Code.Unauthenticated || this.code === Code.PermissionDenied) return false;
    return this.reason !== ErrorReason.INVALID_CURSOR;
  }
}

/** A link that was lost: coming again at once is right. */
export function lostLink(message: string, cause?: unknown): TurndError {
  return new TurndError(message, { code: Code.Unavailable, advice: RetryAdvice.SAME_ID_NOW, cause });
}

/** The cause of a failure that no further try can mend: the reply is larger than is gathered. */
export const replyTooLarge = new Error("the reply is too large to be gathered");

/** Whether an advice is to send the turn again under its id. */
export function sameId(advice: RetryAdvice): boolean {
  return advice === RetryAdvice.SAME_ID_NOW || advice === RetryAdvice.SAME_ID_AFTER_WAIT;
}

/**
 * The advice for a failure of the link: proxies and browsers do not know ours. Sending the same id again is safe whatever
 * happened, so only codes that would stay as they are do without it.
 */
export function adviceFor(code: Code): RetryAdvice {
  switch (code) {
    case Code.Unavailable:
    case Code.Unknown:
    case Code.Internal:
    case Code.Aborted:
    case Code.Canceled:
    case Code.DeadlineExceeded:
      return RetryAdvice.SAME_ID_AFTER_WAIT;
    default:
      return RetryAdvice.DO_NOT_RETRY;
  }
}

/** The value of an enum by its name; undefined for those of a later version and for none. */
function byName<E extends number>(enumeration: Record<string, string | E>, name: string | undefined): E | undefined {
  if (name === undefined || !Object.hasOwn(enumeration, name)) return undefined;
  const value = enumeration[name];
  return typeof value === "number" ? value : undefined;
}
