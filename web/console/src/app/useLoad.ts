import { useCallback, useEffect, useRef, useState } from "react";
import { failureOf, type Failure } from "../api/failure";
import { poll } from "./polling";
import { noteFailed, noteReached, worthTelling } from "./reach";

export interface Loaded<T> {
  value: T | undefined;
  failure: Failure | undefined;
  loading: boolean;
  reload: () => void;
}

/**
 * Loads a value, again whenever the name of what is loaded changes, and each so many milliseconds while the page is
 * looked at. What was loaded under a name is shown until its successor is there.
 */
export function useLoad<T>(name: string, load: (signal: AbortSignal) => Promise<T>, every = 0): Loaded<T> {
  const [state, setState] = useState<{ name: string; value?: T; failure?: Failure | undefined; loading: boolean }>({ name, loading: true });
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const busy = useRef(false);

  useEffect(() => {
    const left = new AbortController();
    busy.current = true;
    setState((was) => (was.name === name ? { ...was, loading: true } : { name, loading: true }));
    latest.current(left.signal).then(
      (value) => {
        if (left.signal.aborted) return;
        busy.current = false;
        noteReached();
        setState({ name, value, loading: false });
      },
      (error: unknown) => {
        if (left.signal.aborted) return;
        busy.current = false;
        const failure = failureOf(error);
        noteFailed(failure);
        setState((was) => ({ ...was, failure: worthTelling(failure, was.value !== undefined), loading: false }));
      },
    );
    return () => left.abort();
  }, [name, round]);

  const reload = useCallback(() => setRound((was) => was + 1), []);
  useEffect(() => {
    const refresh = () => document.visibilityState === "visible" && reload();
    document.addEventListener("visibilitychange", refresh);
    window.addEventListener("online", refresh);
    const stop = every > 0 ? poll(every, () => busy.current, reload) : undefined;
    return () => {
      document.removeEventListener("visibilitychange", refresh);
      window.removeEventListener("online", refresh);
      stop?.();
    };
  }, [every, reload]);

  const mine = state.name === name;
  return { value: mine ? state.value : undefined, failure: mine ? state.failure : undefined, loading: !mine || state.loading, reload };
}
