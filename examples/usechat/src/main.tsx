import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { loadMessages } from "@turnd/client/ai";
import { Chat } from "./Chat";
import { turnd } from "./turnd";
import "./style.css";

// The address names the chat, so that a reload, another tab and a link show the same one.
const id = location.hash.slice(1) || crypto.randomUUID();
history.replaceState(null, "", `#${id}`);
addEventListener("hashchange", () => location.reload());

const root = createRoot(document.getElementById("page")!);
try {
  const messages = await loadMessages(turnd, id);
  root.render(<StrictMode><Chat id={id} messages={messages} /></StrictMode>);
} catch (error) {
  root.render(<p role="alert">The chat could not be loaded: {error instanceof Error ? error.message : String(error)}</p>);
}
