/** How long an answer is waited for. What takes longer is lost, as a stream is that says nothing for so long. */
const PATIENCE_MS = 45_000;

/**
 * Asks again each so many milliseconds while the page is looked at, but not for what is still on its way: a server that takes
 * longer than the interval would never get to answer.
 */
export function poll(every: number, busy: () => boolean, ask: () => void): () => void {
  let waited = 0;
  const timer = setInterval(() => {
    waited = busy() ? waited + every : 0;
    if (document.visibilityState !== "visible" || (waited > 0 && waited < PATIENCE_MS)) return;
    waited = 0;
    ask();
  }, every);
  return () => clearInterval(timer);
}
