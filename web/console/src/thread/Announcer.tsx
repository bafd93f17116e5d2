import { useEffect, useRef, useState } from "react";
import type { ReplySnapshot } from "../api/turnd";

const PAUSE_MS = 1_500;

/** Reads a growing reply out to those who listen to the page: whole sentences, and not more often than can be said. */
export function Announcer({ snapshot }: { snapshot: ReplySnapshot | undefined }) {
  const [said, setSaid] = useState("");
  const progress = useRef({ replyId: "", length: 0, at: 0, ended: true });
  useEffect(() => {
    if (!snapshot) return;
    const was = progress.current;
    if (was.replyId !== snapshot.replyId) {
      if (snapshot.end || !snapshot.replyId) return;
      progress.current = { replyId: snapshot.replyId, length: 0, at: Date.now(), ended: false };
      return setSaid("The reply begins.");
    }
    if (was.ended) return;
    const rest = snapshot.text.slice(was.length);
    if (snapshot.end) {
      progress.current = { ...was, ended: true };
      return setSaid(`${rest} The reply is ${snapshot.end.kind === "completed" ? "complete" : snapshot.end.kind}.`);
    }
    const sentences = /^[\s\S]*[.!?:\n](?=\s|$)/.exec(rest)?.[0];
    if (!sentences?.trim() || Date.now() - was.at < PAUSE_MS) return;
    progress.current = { ...was, length: was.length + sentences.length, at: Date.now() };
    setSaid(sentences);
  }, [snapshot]);
  return (
    <div className="unseen" role="status" aria-live="polite" aria-atomic="true">
      {said}
    </div>
  );
}
