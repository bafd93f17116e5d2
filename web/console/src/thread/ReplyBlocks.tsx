import { useMemo } from "react";
import { BlockKind } from "../api/wire";
import { many } from "../words/amounts";
import { Bounded } from "./Bounded";
import { MOST_DRAWN } from "./excerpt";
import { Prose } from "./Prose";
import type { ShownBlock } from "./shown";

export function ReplyBlocks({ blocks, running }: { blocks: readonly ShownBlock[]; running: boolean }) {
  return (
    <>
      {blocks.map((block, at) => (
        <ReplyBlock key={at} block={block} growing={running && at === blocks.length - 1 && !block.done} />
      ))}
    </>
  );
}

function ReplyBlock({ block, growing }: { block: ShownBlock; growing: boolean }) {
  switch (block.kind) {
    case BlockKind.THINKING:
      return <Thinking block={block} growing={growing} />;
    case BlockKind.TOOL_USE:
      return <ToolUse block={block} growing={growing} />;
    case BlockKind.REFUSAL:
      return (
        <div className="refusal">
          <strong>The model declined</strong>
          <Prose text={block.text} growing={growing} />
        </div>
      );
    case BlockKind.OPAQUE:
      return <p className="hint">A piece that only its vendor can read{block.text && `, ${block.text}`}.</p>;
    default:
      return <Prose text={block.text} growing={growing} />;
  }
}

function Thinking({ block, growing }: { block: ShownBlock; growing: boolean }) {
  if (block.done && !block.text) return <p className="hint thinking">Thought, and the provider keeps it sealed.</p>;
  return (
    <details className="thinking">
      <summary>
        {growing ? "Thinking…" : "Thinking"} <span className="hint">{lengthOf(block.text)}</span>
      </summary>
      <Prose text={block.text} growing={growing} />
    </details>
  );
}

function lengthOf(text: string): string {
  if (text.length > MOST_DRAWN) return many(text.length, "character");
  return many(text.split(/\s+/).filter(Boolean).length, "word");
}

function ToolUse({ block, growing }: { block: ShownBlock; growing: boolean }) {
  const input = useMemo(() => (growing ? block.text : pretty(block.text)), [block.text, growing]);
  return (
    <section className="tool" aria-label={`Tool call ${block.toolName}`}>
      <header>
        <span className="tool-mark">calls</span> <code>{block.toolName}</code> <span className="hint">{block.toolUseId}</span>
      </header>
      <Bounded text={input} growing={growing}>
        {(drawn) => (
          <pre tabIndex={0} className={growing ? "growing" : undefined}>
            <code>{drawn}</code>
          </pre>
        )}
      </Bounded>
    </section>
  );
}

/** JSON set out for reading; what is none, or would lose digits, stays as it is. */
export function pretty(json: string): string {
  if (json.length > 100_000 || /\d{16}/.test(json)) return json;
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
