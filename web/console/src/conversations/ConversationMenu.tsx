import { useState } from "react";
import { turnd } from "../api/turnd";
import type { Conversation } from "../api/wire";
import { changed } from "../app/changes";
import { Dialog } from "../app/Dialog";
import { Failed } from "../app/Failed";
import { navigate, paths } from "../app/router";
import { useAction } from "../app/useAction";
import { nameOf } from "./names";
import { fieldsOf, SettingsFields, settingsOf } from "./Settings";

/** What can be done with a whole conversation: rename and set up, or delete. */
export function ConversationMenu({ conversation }: { conversation: Conversation }) {
  const [open, setOpen] = useState<"settings" | "delete" | "">("");
  const close = () => setOpen("");
  return (
    <>
      <button type="button" className="small" onClick={() => setOpen("settings")}>
        Rename
      </button>
      <button type="button" className="small danger" onClick={() => setOpen("delete")}>
        Delete
      </button>
      {open === "settings" && <EditConversation conversation={conversation} onClose={close} />}
      {open === "delete" && <DeleteConversation conversation={conversation} onClose={close} />}
    </>
  );
}

function EditConversation({ conversation, onClose }: { conversation: Conversation; onClose: () => void }) {
  const [seen] = useState(conversation);
  const [settings, setSettings] = useState(() => settingsOf(seen));
  const { run, busy, failure } = useAction(async () => {
    await turnd().conversations.updateConversation({
      conversation: { conversationId: seen.conversationId, ...fieldsOf(settings, seen.defaults) },
      updateMask: { paths: ["title", "labels", "defaults"] },
      expectedVersion: seen.version,
    });
    changed(seen.conversationId);
    onClose();
  });
  return (
    <Dialog title="Title and settings" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <SettingsFields settings={settings} onChange={setSettings} />
        <p className="hint">Turns that exist keep the settings that they were made with.</p>
        <Failed failure={failure} />
        <div className="row end">
          <button type="button" onClick={onClose}>
            Leave
          </button>
          <button type="submit" className="primary" disabled={busy}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function DeleteConversation({ conversation, onClose }: { conversation: Conversation; onClose: () => void }) {
  const { run, busy, failure } = useAction(async () => {
    await turnd().conversations.deleteConversation({ conversationId: conversation.conversationId });
    changed(conversation.conversationId);
    onClose();
    navigate(paths.conversations());
  });
  return (
    <Dialog title="Delete this conversation?" onClose={onClose}>
      <p>
        <strong dir="auto">{nameOf(conversation)}</strong> is erased with all its turns, and a running reply is stopped. It can't be undone.
      </p>
      <Failed failure={failure} />
      <div className="row end">
        <button type="button" data-first onClick={onClose}>
          Keep it
        </button>
        <button type="button" className="danger" disabled={busy} onClick={() => void run()}>
          Delete
        </button>
      </div>
    </Dialog>
  );
}
