import { useState, type ReactNode } from "react";
import { many } from "../words/amounts";
import { excerpt } from "./excerpt";

interface Props {
  text: string;
  growing: boolean;
  children: (drawn: string) => ReactNode;
}

/** Draws no more of a text than a page can bear, and the rest of it for whoever asks once it no longer grows. */
export function Bounded({ text, growing, children }: Props) {
  const [all, setAll] = useState(false);
  const part = excerpt(text, growing);
  if (part.of === "all" || (all && !growing)) return children(text);
  const figures = `${part.of === "first" ? "The first" : "The latest"} of ${many(text.length, "character")}.`;
  if (part.of === "latest") {
    return (
      <>
        <p className="hint">{figures} The rest can be shown once it has ended.</p>
        {children(part.text)}
      </>
    );
  }
  return (
    <>
      {children(part.text)}
      <p className="hint">
        {figures}{" "}
        <button type="button" className="small" onClick={() => setAll(true)}>
          Show all
        </button>
      </p>
    </>
  );
}
