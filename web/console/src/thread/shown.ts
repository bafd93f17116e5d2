import { BlockKind, type Block } from "../api/wire";

/** A block as it is shown, whether it was stored or is still being written. */
export interface ShownBlock {
  readonly kind: BlockKind;
  readonly text: string;
  readonly toolUseId: string;
  readonly toolName: string;
  readonly done: boolean;
}

/** The blocks of a stored reply. What only user turns have is left out. */
export function shownBlocks(content: readonly Block[]): ShownBlock[] {
  return content.flatMap((block) => {
    const shown = shownBlock(block);
    return shown ? [{ toolUseId: "", toolName: "", done: true, ...shown }] : [];
  });
}

function shownBlock({ kind }: Block): (Pick<ShownBlock, "kind" | "text"> & Partial<ShownBlock>) | undefined {
  switch (kind.case) {
    case "text":
      return { kind: BlockKind.TEXT, text: kind.value.text };
    case "thinking":
      return { kind: BlockKind.THINKING, text: kind.value.text };
    case "toolUse":
      return { kind: BlockKind.TOOL_USE, text: kind.value.inputJson, toolUseId: kind.value.toolUseId, toolName: kind.value.name };
    case "refusal":
      return { kind: BlockKind.REFUSAL, text: kind.value.text };
    case "opaque":
      return { kind: BlockKind.OPAQUE, text: [kind.value.provider, kind.value.type].filter(Boolean).join(": ") };
    default:
      return undefined;
  }
}

/** What was said in a turn, without anything but its words. */
export function plainText(content: readonly Block[]): string {
  return content.flatMap((block) => (block.kind.case === "text" ? [block.kind.value.text] : [])).join("\n\n");
}
