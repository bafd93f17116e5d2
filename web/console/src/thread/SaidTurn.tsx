import { create } from "@bufbuild/protobuf";
import { useState } from "react";
import { BlockSchema, OnBusy, type Block, type UserTurn } from "../api/wire";
import { newTurnId } from "../../../client/src/index.js";
import { Failed } from "../app/Failed";
import { useAction } from "../app/useAction";
import type { Actions } from "./actions";
import { plainText } from "./shown";
import { Siblings } from "./Siblings";
import { UserBlocks } from "./UserBlocks";

interface Props {
  turn: UserTurn;
  siblings: readonly string[];
  /** Whether the conversation was deleted. */
  gone: boolean;
  actions: Actions;
}

/** What the user said. Editing it makes a sibling, and changes nothing of the turn itself. */
export function SaidTurn({ turn, siblings, gone, actions }: Props) {
  const [editing, setEditing] = useState(false);
  const at = siblings.indexOf(turn.turnId);
  const step = useAction(async (by: 1 | -1) => {
    const next = siblings[at + by];
    if (next) await actions.goTo(next);
  });
  const text = plainText(turn.content);
  if (editing) return <Edit turn={turn} text={text} actions={actions} onClose={() => setEditing(false)} />;
  return (
    <>
      <div className="said">
        <UserBlocks content={turn.content} />
      </div>
      <div className="under of-said">
        <Siblings what="version of this turn" at={at} of={siblings.length} onStep={(by) => void step.run(by)} />
        {text && !gone && (
          <button type="button" className="small" onClick={() => setEditing(true)}>
            Edit
          </button>
        )}
      </div>
      <Failed failure={step.failure} />
    </>
  );
}

function Edit({ turn, text, actions, onClose }: { turn: UserTurn; text: string; actions: Actions; onClose: () => void }) {
  const [draft] = useState(newTurnId);
  const [edited, setEdited] = useState(text);
  const send = () => {
    if (!edited.trim()) return;
    actions.send({ draft, content: withText(turn.content, edited), onBusy: OnBusy.INTERRUPT, parent: turn.parentId || "root" });
    onClose();
  };
  return (
    <div className="said editing">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <textarea
          autoFocus
          rows={Math.min(12, edited.split("\n").length + 1)}
          value={edited}
          onChange={(event) => setEdited(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") onClose();
            if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
            event.preventDefault();
            send();
          }}
          aria-label="The turn, edited"
          dir="auto"
        />
        <div className="row end">
          <button type="button" onClick={onClose}>
            Leave
          </button>
          <button type="submit" className="primary" disabled={!edited.trim()}>
            Send as another version
          </button>
        </div>
      </form>
    </div>
  );
}

/** The content with other words: the rest of it stays, and the words come first. */
function withText(content: readonly Block[], text: string): Block[] {
  const words = create(BlockSchema, { kind: { case: "text", value: { text } } });
  return [words, ...content.filter((block) => block.kind.case !== "text")];
}
