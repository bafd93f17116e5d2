import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { turnd, type LiveSource } from "../api/turnd";
import { ReplyStatus, type Block, type TurnEntry } from "../api/wire";
import { LiveReplies, type Live } from "./live";

export interface LiveThread {
  live: ReadonlyMap<string, Live>;
  /** What was said in turns that were sent from this browser, until the server's own word for it is loaded. */
  said: ReadonlyMap<string, readonly Block[]>;
  listen: (turnId: string, source: LiveSource, content?: readonly Block[]) => void;
  forget: (turnId: string) => void;
}

/**
 * The replies of a conversation that are on their way: of turns sent here, of turns that were in flight when the page was
 * loaded, of turns that other tabs send, and of whatever else the server says is running.
 */
export function useLive(conversationId: string, entries: readonly TurnEntry[], onNews: () => void): LiveThread {
  const [replies] = useState(() => new LiveReplies());
  const [said, setSaid] = useState<ReadonlyMap<string, readonly Block[]>>(new Map());
  const live = useSyncExternalStore(replies.subscribe, replies.current);
  const news = useRef(onNews);
  news.current = onNews;

  const listen = useCallback(
    (turnId: string, source: LiveSource, content?: readonly Block[]) => {
      if (content) setSaid((was) => new Map(was).set(turnId, content));
      void replies.listen(turnId, source, () => news.current());
    },
    [replies],
  );

  useEffect(() => {
    let here = true;
    const client = turnd();
    const recorded = () => client.inFlight().find((record) => record.conversationId === conversationId);
    const record = recorded();
    if (record) {
      void client.resume(conversationId).then((reply) => {
        if (here && reply) listen(record.turnId, reply, record.input.content);
      });
    }
    const forget = client.onSentElsewhere(conversationId, (reply) => listen(reply.turnId, reply, recorded()?.input.content));
    return () => {
      here = false;
      forget();
      replies.leave();
    };
  }, [conversationId, listen, replies]);

  useEffect(() => {
    for (const { turn, reply } of entries) {
      if (!turn || reply?.status !== ReplyStatus.IN_FLIGHT) continue;
      const known = replies.current().get(turn.turnId);
      const followed = known && (known.snapshot.replyId === reply.replyId || !known.snapshot.end);
      if (!followed) listen(turn.turnId, turnd().follow({ conversationId, replyId: reply.replyId }));
    }
  }, [conversationId, entries, listen, replies]);

  return { live, said, listen, forget: useCallback((turnId: string) => replies.forget(turnId), [replies]) };
}
