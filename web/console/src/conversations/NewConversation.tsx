import { useState } from "react";
import { turnd } from "../api/turnd";
import { changed } from "../app/changes";
import { Dialog } from "../app/Dialog";
import { Failed } from "../app/Failed";
import { navigate, paths } from "../app/router";
import { useAction } from "../app/useAction";
import { newTurnId } from "../../../client/src/index.js";
import { EMPTY, fieldsOf, SettingsFields } from "./Settings";

export function NewConversation({ onClose }: { onClose: () => void }) {
  const [settings, setSettings] = useState(EMPTY);
  // One id for the whole form: a second press, or one after a lost answer, makes no second conversation.
  const [conversationId] = useState(newTurnId);
  const { run, busy, failure } = useAction(async () => {
    await turnd().conversations.createConversation({ conversation: { conversationId, ...fieldsOf(settings) } });
    changed(conversationId);
    onClose();
    navigate(paths.conversation(conversationId));
  });
  return (
    <Dialog title="New conversation" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <SettingsFields settings={settings} onChange={setSettings} />
        <Failed failure={failure} />
        <div className="row end">
          <button type="button" onClick={onClose}>
            Leave
          </button>
          <button type="submit" className="primary" disabled={busy}>
            Begin
          </button>
        </div>
      </form>
    </Dialog>
  );
}
