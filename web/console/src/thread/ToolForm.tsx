import { create } from "@bufbuild/protobuf";
import { useState } from "react";
import { BlockSchema, type Block } from "../api/wire";
import { newTurnId } from "../../../client/src/index.js";
import { Failed } from "../app/Failed";
import { useAction } from "../app/useAction";
import type { ShownBlock } from "./shown";

interface Answer {
  text: string;
  failed: boolean;
}

/** Answers the tool calls of a reply. All of them go into one turn. */
export function ToolForm({ calls, onSend }: { calls: readonly ShownBlock[]; onSend: (id: string, content: Block[]) => Promise<void> }) {
  const [id] = useState(newTurnId);
  const [answers, setAnswers] = useState<Readonly<Record<string, Answer>>>({});
  const answerOf = (call: ShownBlock): Answer => answers[call.toolUseId] ?? { text: "", failed: false };
  const change = (call: ShownBlock, next: Partial<Answer>) => setAnswers({ ...answers, [call.toolUseId]: { ...answerOf(call), ...next } });
  const { run, busy, failure } = useAction(() => onSend(id, calls.map((call) => resultOf(call.toolUseId, answerOf(call)))));
  return (
    <form
      className="tool-form"
      aria-label="Answer the tool calls"
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
    >
      {calls.map((call) => (
        <fieldset key={call.toolUseId}>
          <legend>
            Result of <code>{call.toolName}</code>
          </legend>
          <textarea
            rows={2}
            value={answerOf(call).text}
            onChange={(event) => change(call, { text: event.target.value })}
            aria-label={`Result of ${call.toolName}`}
            spellCheck={false}
          />
          <label className="check">
            <input type="checkbox" checked={answerOf(call).failed} onChange={(event) => change(call, { failed: event.target.checked })} /> The
            tool failed
          </label>
        </fieldset>
      ))}
      <Failed failure={failure} />
      <div className="row end">
        <button type="submit" className="primary" disabled={busy || !calls.every((call) => answerOf(call).text.trim())}>
          Send {calls.length > 1 ? "the results" : "the result"}
        </button>
      </div>
    </form>
  );
}

function resultOf(toolUseId: string, answer: Answer): Block {
  return create(BlockSchema, {
    kind: {
      case: "toolResult",
      value: { toolUseId, isError: answer.failed, content: [create(BlockSchema, { kind: { case: "text", value: { text: answer.text } } })] },
    },
  });
}
