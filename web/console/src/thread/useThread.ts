import { useCallback, useEffect, useRef, useState } from "react";
import { failureOf, type Failure } from "../api/failure";
import { turnd } from "../api/turnd";
import type { TurnEntry } from "../api/wire";
import { noteFailed, noteReached, worthTelling } from "../app/reach";

const PAGE = 50;

export interface Thread {
  /** The turns on the way to the leaf, the earliest first. */
  entries: TurnEntry[];
  earlier: boolean;
  loading: boolean;
  /** Whether anything was loaded yet. */
  ready: boolean;
  failure: Failure | undefined;
  loadEarlier: () => void;
  reload: () => void;
}

interface State {
  of: string;
  entries: TurnEntry[];
  earlier: boolean;
  ready: boolean;
  loading: boolean;
  failure: Failure | undefined;
}

/** The turns of a conversation down to a leaf: the current one, or another that is looked at. */
export function useThread(conversationId: string, leafId: string): Thread {
  const of = `${conversationId} ${leafId}`;
  const empty: State = { of, entries: [], earlier: false, ready: false, loading: true, failure: undefined };
  const [state, setState] = useState(empty);
  const [pages, setPages] = useState(1);
  const [round, setRound] = useState(0);
  const was = useRef(of);

  useEffect(() => {
    const left = new AbortController();
    const wanted = was.current === of ? pages : 1;
    was.current = of;
    setState((now) => ({ ...now, loading: true }));
    loadPages(conversationId, leafId, wanted, left.signal).then(
      (found) => {
        if (left.signal.aborted) return;
        noteReached();
        setState({ of, ...found, ready: true, loading: false, failure: undefined });
      },
      (error: unknown) => {
        if (left.signal.aborted) return;
        const failure = failureOf(error);
        noteFailed(failure);
        setState((now) => {
          const was = now.of === of ? now : empty;
          return { ...was, loading: false, failure: worthTelling(failure, was.ready) };
        });
      },
    );
    return () => left.abort();
  }, [of, pages, round]);

  return {
    ...state,
    loadEarlier: useCallback(() => setPages((n) => n + 1), []),
    reload: useCallback(() => setRound((n) => n + 1), []),
  };
}

async function loadPages(conversationId: string, leafId: string, pages: number, signal: AbortSignal) {
  const latestFirst: TurnEntry[] = [];
  let token = "";
  for (let page = 0; page < pages; page++) {
    const answer = await turnd().turns.listTurns({ conversationId, leafId, pageSize: PAGE, pageToken: token }, { signal });
    latestFirst.push(...answer.entries);
    token = answer.nextPageToken;
    if (!token) break;
  }
  return { entries: latestFirst.reverse(), earlier: token !== "" };
}
