// run.mjs [PLAY...] [--only=WORDS]: plays scenes in a real browser against the built service. Without a name it plays all that
// there are; SHORT=1 leaves those that are marked short.
//
// A play is a folder with scenes.mjs, which exports `scenes`: a name, whether it is short, options of the browser's context, and
// `play`. That gets the folder of this run, the provider, the service, a browser with storage of its own (`open`, `shot`), a
// function for another one (`context`), one that takes a screenshot (`shot`), and one for what has to be stopped after the scene
// (`later`); it returns figures, of which the provider's count is one. Anything it throws fails the scene.
import { fileURLToPath } from "node:url";
import { openContext, startBrowser } from "./lib/browser.mjs";
import { playAll } from "./lib/report.mjs";
import { startProvider, startTurnd, withFolder } from "./lib/servers.mjs";

const plays = ["console", "usechat", "eventsource"];

const args = process.argv.slice(2);
const wanted = args.filter((arg) => !arg.startsWith("--"));
const only = args.find((arg) => arg.startsWith("--only="))?.slice("--only=".length);
const short = !!process.env.SHORT;

const scenes = [];
for (const play of wanted.length > 0 ? wanted : plays) {
  const module = await import(`./${play}/scenes.mjs`);
  scenes.push(...module.scenes.map((scene) => ({ ...scene, of: play, name: `${play} ${scene.name}` })));
}
const chosen = scenes.filter((scene) => (only ? scene.name.includes(only) : !short || scene.short));

const well = await withFolder(async (folder) => {
  const running = [];
  const run = (started) => {
    running.unshift(started);
    return started;
  };
  try {
    const provider = run(await startProvider(folder));
    const server = run(await startTurnd(folder, provider));
    const browser = run(await startBrowser(process.env.SHOTS ?? fileURLToPath(new URL("../../bin/e2e", import.meta.url))));
    return await playAll("e2e", chosen, async (scene, use) => {
      await provider.play();
      const contexts = [];
      const taken = [];
      const ends = [];
      const later = (started) => {
        ends.push(() => started.stop());
        return started;
      };
      const context = async (options) => {
        const made = await openContext(browser, options);
        contexts.push(made);
        return made;
      };
      const first = await context(scene.context);
      const shot = async (page, name) => taken.push(await first.shot(page, `${scene.name} ${name}`.trim().replaceAll(" ", "-")));
      try {
        const said = await use({ folder, provider, server, browser: first, context, shot, taken, later });
        const faults = contexts.flatMap((c) => c.faults);
        if (faults.length > 0) throw new Error(faults.join("; "));
        return said;
      } catch (error) {
        for (const page of first.context.pages()) await shot(page, "failed").catch(() => {});
        throw error;
      } finally {
        for (const c of contexts) await c.close();
        for (const end of ends.reverse()) await end();
      }
    });
  } finally {
    for (const { stop } of running) await stop();
  }
});
process.exitCode = well ? 0 : 1;
