import type { FormEvent } from "react";
import type { DynamicToolUIPart, ToolUIPart } from "ai";

export type AnswerCall = (tool: string, toolCallId: string, output: string) => void;

/** A call of a tool that the page's user plays. A page with real tools answers in useChat's onToolCall. */
export function ToolCall({ name, part, answerCall }: { name: string; part: ToolUIPart | DynamicToolUIPart; answerCall: AnswerCall }) {
  function answer(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    answerCall(name, part.toolCallId, String(new FormData(event.currentTarget).get("output")));
  }

  return (
    <section className="tool" aria-label={`Call of ${name}`}>
      <code>{name} {JSON.stringify(part.input)}</code>
      {part.state === "input-available" && (
        <form onSubmit={answer}>
          <input name="output" aria-label={`Output of ${name}`} required />
          <button>Answer</button>
        </form>
      )}
      {part.state === "output-available" && <output>{typeof part.output === "string" ? part.output : JSON.stringify(part.output)}</output>}
      {part.state === "output-error" && <p role="note">{part.errorText}</p>}
    </section>
  );
}
