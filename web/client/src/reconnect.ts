import { pause } from "./clock.js";
import { sameId, TurndError } from "./errors.js";
import { RetryAdvice } from "./gen/turns/v1/turn_pb.js";
import type { RetrySettings, World } from "./settings.js";

/**
 * Waits before the next try, or throws the failure if there is to be none. `fruitless` counts the tries in a row that
 * brought nothing. The server's delay is kept to in full; what chance adds to it ends early once the network is back or the
 * page is looked at again.
 */
export async function holdBack(world: World, error: TurndError, fruitless: number, leave?: AbortSignal): Promise<void> {
  const { settings, clock } = world;
  if (error.retryDelay > settings.maxWait) throw error;
  if (fruitless > settings.maxReconnects) throw error.afterTries(fruitless);
  const backoff = atOnce(error, fruitless) ? 0 : drawBackoff(settings, clock.random(), fruitless);
  if (error.retryDelay + backoff === 0) return;
  world.onTrying(error, error.retryDelay + backoff);
  if (error.retryDelay > 0) await pause(clock, error.retryDelay, leave);
  if (backoff > 0) await pauseUntilWake(world, backoff, leave);
}

/** Advice to come at once is taken at its word the first time. */
function atOnce(error: TurndError, fruitless: number): boolean {
  return fruitless === 1 && error.fromTurnd && error.advice === RetryAdvice.SAME_ID_NOW;
}

/** Draws a wait evenly from 0 up to a bound that doubles with each try. */
export function drawBackoff({ backoff, maxBackoff }: RetrySettings, chance: number, fruitless: number): number {
  return chance * Math.min(maxBackoff, backoff * 2 ** Math.min(fruitless - 1, 30));
}

async function pauseUntilWake(world: World, ms: number, leave?: AbortSignal): Promise<void> {
  const woken = new AbortController();
  const stop = world.surroundings.onWake(() => woken.abort());
  await pause(world.clock, ms, leave, woken.signal);
  stop();
}

/** Pauses while there is no network. It is true if there was none. */
export async function untilOnline({ surroundings }: World, leave?: AbortSignal): Promise<boolean> {
  if (surroundings.online() || leave?.aborted === true) return false;
  await new Promise<void>((resolve) => {
    const end = () => {
      stop();
      leave?.removeEventListener("abort", end);
      resolve();
    };
    const stop = surroundings.onWake(() => {
      if (surroundings.online()) end();
    });
    leave?.addEventListener("abort", end, { once: true });
  });
  return true;
}

/** Makes a call that a repeat does no harm to until it is answered, by the rules that streams connect again by. */
export async function insist<A>(world: World, signal: AbortSignal | undefined, call: () => Promise<A>): Promise<A> {
  for (let tries = 1; ; tries++) {
    if (await untilOnline(world, signal)) tries = 1;
    signal?.throwIfAborted();
    try {
      return await call();
    } catch (thrown) {
      signal?.throwIfAborted();
      const error = TurndError.from(thrown);
      if (!sameId(error.advice)) throw error;
      await holdBack(world, error, tries, signal);
    }
  }
}
