import { useCallback, useEffect, useRef, useState } from "react";
import { turnd } from "../api/turnd";
import { failureOf, type Failure } from "../api/failure";
import type { Conversation } from "../api/wire";
import { onChange } from "../app/changes";
import { poll } from "../app/polling";
import { noteFailed, noteReached, worthTelling } from "../app/reach";

const PAGE = 50;
const REFRESH_MS = 10_000;

export interface Pages {
  list: Conversation[];
  more: boolean;
  loading: boolean;
  failure: Failure | undefined;
  loadMore: () => void;
}

interface State {
  list: Conversation[];
  token: string;
  loading: boolean;
  failure: Failure | undefined;
}

/** Conversations with some labels, as many pages of them as were asked for, kept fresh. */
export function usePages(labels: Readonly<Record<string, string>>): Pages {
  const name = JSON.stringify(labels);
  const [pages, setPages] = useState(1);
  const [state, setState] = useState<State>({ list: [], token: "", loading: true, failure: undefined });
  const wanted = useRef(labels);
  wanted.current = labels;

  useEffect(() => setPages(1), [name]);
  useEffect(() => {
    let left = new AbortController();
    let busy = false;
    const refresh = async () => {
      left.abort();
      busy = true;
      const mine = (left = new AbortController());
      setState((was) => ({ ...was, loading: true }));
      try {
        const found = await loadPages(wanted.current, pages, mine.signal);
        if (mine.signal.aborted) return;
        busy = false;
        noteReached();
        setState({ ...found, loading: false, failure: undefined });
      } catch (error) {
        if (mine.signal.aborted) return;
        busy = false;
        const failure = failureOf(error);
        noteFailed(failure);
        setState((was) => ({ ...was, loading: false, failure: worthTelling(failure, was.list.length > 0) }));
      }
    };
    const seen = () => document.visibilityState === "visible" && void refresh();
    void refresh();
    const stop = poll(REFRESH_MS, () => busy, () => void refresh());
    document.addEventListener("visibilitychange", seen);
    window.addEventListener("online", seen);
    const forget = onChange(seen);
    return () => {
      left.abort();
      forget();
      stop();
      document.removeEventListener("visibilitychange", seen);
      window.removeEventListener("online", seen);
    };
  }, [name, pages]);

  const loadMore = useCallback(() => setPages((was) => was + 1), []);
  return { list: state.list, more: state.token !== "", loading: state.loading, failure: state.failure, loadMore };
}

async function loadPages(labels: Readonly<Record<string, string>>, pages: number, signal: AbortSignal) {
  const list: Conversation[] = [];
  let token = "";
  for (let page = 0; page < pages; page++) {
    const answer = await turnd().conversations.listConversations({ pageSize: PAGE, pageToken: token, labels }, { signal });
    list.push(...answer.conversations);
    token = answer.nextPageToken;
    if (!token) break;
  }
  return { list, token };
}
