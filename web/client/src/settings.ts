import type { Clock } from "./clock.js";
import type { TurndError } from "./errors.js";
import type { Surroundings } from "./surroundings.js";

/**
 * Who decides about another attempt after a reply was abandoned or held. Another attempt can cost money, so it is not the
 * same as connecting again, which never does. With `ask` the end is handed to the caller, who may call
 * {@link Reply.again}; with `auto` the turn is sent again where that is the advice.
 */
export type RetryPolicy = "ask" | "auto";

/** How hard and how long is tried. All times are in milliseconds. */
export interface RetrySettings {
  /** Who decides about another attempt; `ask` by default. */
  readonly retry: RetryPolicy;
  /** How often `auto` sends a turn again; 3 by default. */
  readonly maxAgain: number;
  /** The tries in a row that may bring nothing new; 8 by default. */
  readonly maxReconnects: number;
  /** The upper bound of the wait before the first try; it doubles with each up to `maxBackoff`. 250 by default. */
  readonly backoff: number;
  /** 8,000 by default. */
  readonly maxBackoff: number;
  /** The longest delay of the server's that is waited for; a longer one is an error. 60,000 by default. */
  readonly maxWait: number;
  /** How long a stream may be silent before it counts as lost: three of the server's heartbeats. 45,000 by default. */
  readonly maxSilence: number;
}

export const defaultRetrySettings: RetrySettings = {
  retry: "ask",
  maxAgain: 3,
  maxReconnects: 8,
  backoff: 250,
  maxBackoff: 8_000,
  maxWait: 60_000,
  maxSilence: 45_000,
};

/** What replies and calls need of the world. */
export interface World {
  readonly clock: Clock;
  readonly surroundings: Surroundings;
  readonly settings: RetrySettings;
  /** Is told of each failure that is followed by a wait and another try. */
  readonly onTrying: (cause: TurndError, wait: number) => void;
}
