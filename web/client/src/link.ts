import { lostLink } from "./errors.js";
import type { Event } from "./gen/turns/v1/event_pb.js";
import type { World } from "./settings.js";

/** Opens one call of a stream. */
export type Open = (signal: AbortSignal) => AsyncIterable<{ readonly event?: Event | undefined }>;

/**
 * The events of one call. It fails as a lost link once nothing has come for too long, once the network has come back, and
 * when the page is looked at again after more than a heartbeat of silence: what was open then is most likely dead, and
 * coming again costs nothing. Ending it lets go of the call, which stops nothing at the server but this stream.
 */
export async function* eventsOfLink(open: Open, world: World, leave: AbortSignal): AsyncGenerator<Event> {
  const { clock, surroundings, settings } = world;
  const link = new AbortController();
  let lost: string | undefined;
  const lose = (why: string) => {
    lost ??= why;
    link.abort();
  };
  let heard = clock.now();
  let cancelWatch = () => {};
  const watch = () => {
    cancelWatch();
    heard = clock.now();
    cancelWatch = clock.after(settings.maxSilence, () => lose(`nothing has come for ${settings.maxSilence} ms`));
  };
  const stopWake = surroundings.onWake((cause) => {
    if (cause === "online") lose("the network has changed");
    else if (clock.now() - heard > settings.maxSilence / 3) lose("nothing has come for longer than a heartbeat");
  });
  const left = () => link.abort();
  leave.addEventListener("abort", left, { once: true });
  if (leave.aborted) left();
  watch();
  const messages = open(link.signal)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { value, done } = await nextOf(messages, link.signal);
      if (done === true) return;
      watch();
      if (value.event !== undefined) yield value.event;
    }
  } catch (thrown) {
    throw lost === undefined ? thrown : lostLink(lost, thrown);
  } finally {
    cancelWatch();
    stopWake();
    leave.removeEventListener("abort", left);
    link.abort();
    messages.return?.().catch(() => {});
  }
}

/** The next message, or a failure once the signal aborts: not every fetch lets go of a read that waits. */
function nextOf<T>(messages: AsyncIterator<T>, signal: AbortSignal): Promise<IteratorResult<T>> {
  return new Promise((resolve, reject) => {
    const end = () => reject(signal.reason);
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    messages.next().then(resolve, reject).finally(() => signal.removeEventListener("abort", end));
  });
}
