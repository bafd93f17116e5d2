// Scenes of the page with a bare EventSource.
import { startLine } from "../lib/line.mjs";
import { startEventSource } from "../lib/pages.mjs";
import { scenes as lost } from "./lost.mjs";
import { scenes as talking } from "./talking.mjs";

/** Each scene gets the page at an address of its own, on a line that can be cut. */
const onPage = ({ play, ...scene }) => ({
  ...scene,
  play: async (bed) => {
    const serve = async (server) => {
      const line = bed.later(await startLine(bed.later(await startEventSource(server))));
      return { line, url: line.url };
    };
    return play({ ...bed, serve, ...(await serve(bed.server)) });
  },
});

export const scenes = [...talking, ...lost].map(onPage);
