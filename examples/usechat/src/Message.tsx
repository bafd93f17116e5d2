import { getToolName, isToolUIPart } from "ai";
import type { TurndUIMessage } from "@turnd/client/ai";
import { type AnswerCall, ToolCall } from "./ToolCall";

type Part = TurndUIMessage["parts"][number];

export function Message({ message, answerCall }: { message: TurndUIMessage; answerCall: AnswerCall }) {
  const end = message.metadata?.turnd?.end;
  return (
    <article className={message.role} aria-label={message.role}>
      {message.parts.map((part, i) => <MessagePart key={i} part={part} answerCall={answerCall} />)}
      {end === "abandoned" && <p role="note">Ended before it was whole.</p>}
      {end === "held" && <p role="note">Nobody knows yet what came of this reply.</p>}
    </article>
  );
}

function MessagePart({ part, answerCall }: { part: Part; answerCall: AnswerCall }) {
  if (isToolUIPart(part)) return <ToolCall name={getToolName(part)} part={part} answerCall={answerCall} />;
  switch (part.type) {
    case "text":
      return <p className="text">{part.text}</p>;
    case "reasoning":
      return <details><summary>Thinking</summary>{part.text}</details>;
    case "data-turnd-held":
      return <p role="note">Look again in {Math.ceil(part.data.retryDelay / 1000)} s.</p>;
    case "data-turnd-restarted":
      return <p role="note">Another attempt took over here.</p>;
    default:
      return null;
  }
}
