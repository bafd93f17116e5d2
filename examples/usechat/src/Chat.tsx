import { type FormEvent, useEffect, useState } from "react";
import { useChat } from "@ai-sdk/react";
import { lastAssistantMessageIsCompleteWithToolCalls } from "ai";
import { loadMessages, type TurndUIMessage, withStop } from "@turnd/client/ai";
import { Message } from "./Message";
import { transport, turnd } from "./turnd";

export function Chat({ id, messages: loaded }: { id: string; messages: TurndUIMessage[] }) {
  const [text, setText] = useState("");
  const [ahead, setAhead] = useState(0);
  const chat = useChat<TurndUIMessage>({
    id,
    messages: loaded,
    transport,
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
    onData: (part) => part.type === "data-turnd-queued" && setAhead(part.data.position),
  });
  const { messages, setMessages, status, error, sendMessage, regenerate, resumeStream, addToolOutput } = chat;
  // The hook's own stop only stops listening, since it runs when the component goes away as well.
  const { stop } = withStop(chat, transport);
  const held = messages.at(-1)?.metadata?.turnd?.end === "held";
  const busy = status === "submitted" || status === "streaming";

  useEffect(
    () =>
      turnd.onSentElsewhere(id, async (reply) => {
        for await (const { replyId } of reply) if (replyId !== "") break;
        await load();
      }),
    [id],
  );

  /** Shows what turnd has by now. To have a held reply made again would not be that. */
  async function load() {
    setMessages(await loadMessages(turnd, id));
    await resumeStream();
  }

  function send(event: FormEvent) {
    event.preventDefault();
    if (busy || text.trim() === "") return;
    setText("");
    void sendMessage({ text });
  }

  return (
    <>
      {messages.map((message) => (
        <Message
          key={message.id}
          message={message}
          answerCall={(tool, toolCallId, output) => void addToolOutput({ tool, toolCallId, output })}
        />
      ))}
      {status === "submitted" && <p role="status">{ahead > 0 ? `In line, ${ahead} before it` : "Waiting"}</p>}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} autoFocus />
        <button disabled={busy}>Send</button>
        <button type="button" disabled={!busy} onClick={() => void stop()}>Stop</button>
        {held ? (
          <button type="button" disabled={busy} onClick={() => void load()}>Look again</button>
        ) : (
          <button type="button" disabled={busy || messages.length === 0} onClick={() => void regenerate()}>
            {error ? "Try again" : "Regenerate"}
          </button>
        )}
      </form>
    </>
  );
}
