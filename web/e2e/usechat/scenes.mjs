// Scenes of the page with useChat.
import { startLine } from "../lib/line.mjs";
import { startUseChat } from "../lib/pages.mjs";
import { scenes as lost } from "./lost.mjs";
import { scenes as parts } from "./parts.mjs";
import { scenes as talking } from "./talking.mjs";

/** Each scene gets the page at an address of its own, on a line that can be cut. */
const onPage = ({ play, ...scene }) => ({
  ...scene,
  play: async (bed) => {
    const page = bed.later(await startUseChat(bed.server));
    const line = bed.later(await startLine(page));
    return play({ ...bed, line, url: line.url });
  },
});

export const scenes = [...talking, ...lost, ...parts].map(onPage);
