/** Time and chance, so that tests can stand in for them. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls back after a number of milliseconds, unless the function it returns is called before. */
  after(ms: number, callback: () => void): () => void;
  /** A number from 0 up to 1. */
  random(): number;
}

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
};

/** Pauses until the time has passed or the signal aborts, whichever is first. It never rejects. */
export function pause(clock: Clock, ms: number, ...signals: (AbortSignal | undefined)[]): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      cancel();
      for (const signal of signals) signal?.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(ms, end);
    for (const signal of signals) {
      if (signal?.aborted) return end();
      signal?.addEventListener("abort", end, { once: true });
    }
  });
}
