// Plays scenes one after the other, prints a line for each, and ends in the line of the target.
import { relative } from "node:path";

const sceneTime = 90_000;

/** Plays the scenes and returns whether all went well. Each gets what `stage` makes for it. */
export async function playAll(name, scenes, stage) {
  const started = Date.now();
  const failed = [];
  let shots = 0;
  for (const scene of scenes) {
    const began = Date.now();
    try {
      const said = await within(sceneTime, stage(scene, async (bed) => ({ figures: await scene.play(bed), shots: bed.taken })));
      shots += said.shots.length;
      const figures = Object.entries(said.figures ?? {}).map(([key, value]) => `${key}=${value}`);
      const taken = said.shots.map((path) => relative(process.cwd(), path));
      console.log(`ok    ${scene.name.padEnd(34)} ${figures.join(" ")} ${taken.join(" ")} ${Date.now() - began} ms`);
    } catch (error) {
      failed.push(scene.name);
      console.log(`FAIL  ${scene.name.padEnd(34)} ${error.stack ?? error}`);
    }
  }
  const seconds = Math.round((Date.now() - started) / 1000);
  if (failed.length > 0) console.log(`FAIL ${name} ${failed.length} of ${scenes.length} scenes failed: ${failed.join(", ")}`);
  else console.log(`PASS ${name} scenes=${scenes.length} ${partsOf(scenes)} screenshots=${shots} seconds=${seconds}`);
  return failed.length === 0;
}

/** How many scenes are of which play. */
function partsOf(scenes) {
  const counts = new Map();
  for (const { of } of scenes) counts.set(of, (counts.get(of) ?? 0) + 1);
  return [...counts].map(([of, count]) => `${of}=${count}`).join(" ");
}

function within(time, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took more than ${time / 1000} s`)), time);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Waits for something to be as it should, and says what it was instead. */
export async function eventually(what, look, time = 15_000) {
  let last;
  for (const deadline = Date.now() + time; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
    try {
      last = await look();
      if (last === true) return;
    } catch (error) {
      last = error.message;
    }
    if (Date.now() > deadline) throw new Error(`${what}: ${JSON.stringify(last)}`);
  }
}
