import { useEffect, useRef, useState } from "react";
import { OnBusy } from "../api/wire";
import { Failed } from "../app/Failed";
import { newTurnId } from "../../../client/src/index.js";
import { Link, paths } from "../app/router";
import { useShortcuts } from "../app/shortcuts";
import { useAction } from "../app/useAction";

export interface Draft {
  /** Names the message, so that sending it twice is sending it once. */
  id: string;
  text: string;
  onBusy: OnBusy;
}

interface Props {
  running: boolean;
  /** Whether the conversation was deleted, so that nothing can be sent. What is written can still be copied. */
  gone: boolean;
  /** Words to begin with, when they change: those of a turn that was not taken. */
  given: string;
  onSend: (draft: Draft) => Promise<void>;
  onStop: (() => void) | undefined;
}

/** Where a turn is written. */
export function Composer({ running, gone, given, onSend, onStop }: Props) {
  const [text, setText] = useState("");
  const [id, setId] = useState(newTurnId);
  const [onBusy, setOnBusy] = useState(OnBusy.ENQUEUE);
  const box = useRef<HTMLTextAreaElement>(null);
  const { run, busy, failure } = useAction(async () => {
    await onSend({ id, text, onBusy });
    setText("");
    setId(newTurnId());
  });
  useShortcuts({ c: () => box.current?.focus() });
  useEffect(() => grow(box.current), [text]);
  useEffect(() => setText((was) => was || given), [given]);

  const send = () => {
    if (text.trim() && !gone) void run();
  };
  return (
    <form
      className={running ? "composer busy" : "composer"}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <Failed failure={failure} />
      {gone && (
        <p className="notice" role="status">
          <span>This conversation was deleted. Nothing more can be said in it.</span>
          <Link to={paths.conversations()}>All conversations</Link>
        </p>
      )}
      <textarea
        ref={box}
        rows={1}
        value={text}
        readOnly={gone}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") event.currentTarget.blur();
          if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          send();
        }}
        placeholder="Write a turn"
        aria-label="Your turn"
        dir="auto"
      />
      <div className="composer-acts">
        {running && (
          <label className="inline">
            <span className="hint">While a reply runs</span>
            <select value={onBusy} onChange={(event) => setOnBusy(Number(event.target.value))}>
              <option value={OnBusy.ENQUEUE}>wait in line</option>
              <option value={OnBusy.INTERRUPT}>stop it first</option>
              <option value={OnBusy.REJECT}>refuse</option>
            </select>
          </label>
        )}
        {running && onStop && (
          <button type="button" onClick={onStop}>
            Stop
          </button>
        )}
        <button type="submit" className="primary" disabled={busy || gone || !text.trim()}>
          {running && onBusy === OnBusy.INTERRUPT ? "Stop and send" : "Send"}
        </button>
      </div>
    </form>
  );
}

// The box is as high as what is written in it, within what the style allows.
function grow(box: HTMLTextAreaElement | null): void {
  if (!box) return;
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}
