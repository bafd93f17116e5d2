import { memo } from "react";
import { Bounded } from "./Bounded";

interface Piece {
  code: boolean;
  text: string;
  language: string;
}

/** Cuts a text at its code fences. A fence that is still open counts as code to the end. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let lines: string[] = [];
  let fence = "";
  let language = "";
  const close = (code: boolean) => {
    const joined = lines.join("\n");
    if (code || joined.trim()) found.push({ code, text: code ? joined : joined.replace(/^\n+|\n+$/g, ""), language });
    lines = [];
    language = "";
  };
  for (const line of text.split("\n")) {
    const opening = /^ {0,3}(`{3,})([^`]*)$/.exec(line);
    if (!fence && opening) {
      close(false);
      fence = opening[1] ?? "";
      language = (opening[2] ?? "").trim().slice(0, 32);
    } else if (fence && opening && (opening[1] ?? "").length >= fence.length && !(opening[2] ?? "").trim()) {
      close(true);
      fence = "";
    } else lines.push(line);
  }
  close(fence !== "");
  return found;
}

/** What was written, as text: nothing in it is taken for markup, but code between fences is set apart. */
export const Prose = memo(function Prose({ text, growing = false }: { text: string; growing?: boolean }) {
  return (
    <Bounded text={text} growing={growing}>
      {(drawn) => <Pieces text={drawn} growing={growing} />}
    </Bounded>
  );
});

function Pieces({ text, growing }: { text: string; growing: boolean }) {
  return (
    <div className={growing ? "prose growing" : "prose"} dir="auto">
      {pieces(text).map((piece, at) =>
        piece.code ? (
          <pre key={at} tabIndex={0} dir="ltr" data-language={piece.language || undefined}>
            <code>{piece.text}</code>
          </pre>
        ) : (
          <p key={at}>{piece.text}</p>
        ),
      )}
    </div>
  );
}
