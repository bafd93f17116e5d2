// The scenes of the console, in the order in which they are played.
import { scenes as talking } from "./talking.mjs";
import { scenes as lost } from "./lost.mjs";
import { scenes as strange } from "./strange.mjs";
import { scenes as branching } from "./branching.mjs";
import { scenes as operating } from "./operating.mjs";
import { scenes as looking } from "./looking.mjs";

export const scenes = [...talking, ...lost, ...branching, ...strange, ...operating, ...looking];
