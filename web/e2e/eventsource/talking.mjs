// Scenes of sending and stopping.
import assert from "node:assert/strict";
import { gated, stored } from "../console/steps.mjs";
import { box, button, conversationOf, openPage, partly, say, settled, shownText, turnsOf } from "./steps.mjs";

const send = {
  name: "send",
  short: true,
  play: async ({ server, provider, shot, ...bed }) => {
    const { page, asked } = await openPage(bed);
    await say(page, "How does a turn stay one turn?");
    await partly(page);
    const figures = await settled({ page, server, provider });
    await shot(page, "");
    assert.equal(asked.length, 1, "one connection");
    await say(page, "And the next?");
    await turnsOf(page).nth(1).waitFor();
    await partly(page);
    return settled({ page, server, provider, generations: figures.generations + 1, turns: 2 });
  },
};

const doubleClick = {
  name: "double click",
  short: true,
  play: async ({ server, provider, shot, ...bed }) => {
    const { page } = await openPage(bed);
    await box(page).fill("Only once, please.");
    await button(page, "Send").dblclick();
    await partly(page);
    const figures = await settled({ page, server, provider });
    await shot(page, "");
    return figures;
  },
};

const stop = {
  name: "stop",
  short: true,
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play({ plan: { ...gated("never").plan, on_client_gone: "stop" } });
    const { page } = await openPage(bed);
    await say(page, "Tell me everything.");
    const before = await partly(page);
    await button(page, "Stop").click();
    await page.getByText("Stopped.").waitFor();
    await provider.wait("finished=1");
    const [{ reply }] = await stored(server, conversationOf(page));
    assert.equal(reply.abandonReason, "ABANDON_REASON_CANCELLED");
    assert.ok((await shownText(page)).startsWith(before), "what was written stays");
    await shot(page, "");
    await page.reload();
    await page.getByText("Stopped.").waitFor();
    const { generations, running } = await provider.counts();
    assert.deepEqual({ generations, running }, { generations: 1, running: 0 });
    return { generations, running };
  },
};

const markup = {
  name: "markup is text",
  play: async ({ server, provider, shot, ...bed }) => {
    const hostile = `<script>window.taken = 1</script><img src=x onerror="window.taken = 2"> <b>bold</b>`;
    await provider.play({ plan: { blocks: [{ text: hostile }] } });
    const { page } = await openPage(bed);
    await say(page, hostile);
    await partly(page);
    const figures = await settled({ page, server, provider });
    const taken = await page.evaluate(() => window.taken ?? document.querySelectorAll("main img, main script, main b").length);
    assert.equal(taken, 0);
    await shot(page, "");
    return { ...figures, taken };
  },
};

export const scenes = [send, doubleClick, stop, markup];
