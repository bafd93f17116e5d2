import { useCallback, useRef, useState } from "react";
import { failureOf, type Failure } from "../api/failure";

export interface Action<A extends unknown[]> {
  run: (...args: A) => Promise<boolean>;
  busy: boolean;
  failure: Failure | undefined;
  clear: () => void;
}

/** An action of the user that asks the server. While it runs, another press does nothing. */
export function useAction<A extends unknown[]>(act: (...args: A) => Promise<void>): Action<A> {
  const running = useRef(false);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const run = async (...args: A) => {
    if (running.current) return false;
    running.current = true;
    setBusy(true);
    setFailure(undefined);
    try {
      await act(...args);
      return true;
    } catch (error) {
      setFailure(failureOf(error));
      return false;
    } finally {
      running.current = false;
      setBusy(false);
    }
  };
  return { run, busy, failure, clear: useCallback(() => setFailure(undefined), []) };
}
