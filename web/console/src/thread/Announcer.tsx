import { useEffect, useRef, useState } from "react";
import type { ReplySnapshot } from "../api/turnd";

const PAUSE_MS = 1_500;
/** The most characters that are read out at once; who is further behind than that hears the latest. */
const MOST_READ = 10_000;

interface Progress {
  /** Which reply is read. */
  of: string;
  /** How much of its text was read. */
  length: number;
  /** When something was read last. */
  at: number;
  ended: boolean;
}

/** Reads a growing reply out to those who listen to the page: whole sentences, and not more often than can be said. */
export function Announcer({ snapshot }: { snapshot: ReplySnapshot | undefined }) {
  const [said, setSaid] = useState("");
  const progress = useRef<Progress>({ of: "", length: 0, at: 0, ended: true });
  useEffect(() => {
    if (!snapshot) return;
    const of = `${snapshot.turnId || snapshot.replyId} ${snapshot.restarts} ${snapshot.generation > 1 ? snapshot.replyId : ""}`;
    const was = progress.current;
    if (was.of !== of) {
      progress.current = { of, length: 0, at: Date.now(), ended: !!snapshot.end };
      if (!snapshot.end) setSaid(snapshot.restarts > 0 ? "The reply begins anew." : "The reply is on its way.");
      return;
    }
    if (was.ended) return;
    const from = Math.max(was.length, snapshot.text.length - MOST_READ);
    const rest = snapshot.text.slice(from);
    if (snapshot.end) {
      progress.current = { ...was, ended: true };
      return setSaid(`${rest} The reply is ${snapshot.end.kind === "completed" ? "complete" : snapshot.end.kind}.`);
    }
    const sentences = /^[\s\S]*[.!?:\n](?=\s|$)/.exec(rest)?.[0];
    if (!sentences?.trim() || Date.now() - was.at < PAUSE_MS) return;
    progress.current = { ...was, length: from + sentences.length, at: Date.now() };
    setSaid(sentences);
  }, [snapshot]);
  return (
    <div className="unseen" role="status" aria-live="polite" aria-atomic="true">
      {said}
    </div>
  );
}
