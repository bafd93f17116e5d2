// Scenes of sending, stopping and asking again.
import assert from "node:assert/strict";
import { gated, stored } from "../console/steps.mjs";
import { box, button, chatOf, openChat, partly, replies, say, settled, shownText } from "./steps.mjs";

const send = {
  name: "send",
  short: true,
  play: async ({ server, provider, shot, ...bed }) => {
    const page = await openChat(bed);
    await say(page, "How does a turn stay one turn?");
    const figures = await settled({ page, server, provider });
    await shot(page, "");
    return figures;
  },
};

const doubleClick = {
  name: "double click",
  short: true,
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play(gated());
    const page = await openChat(bed);
    await box(page).fill("Only once, please.");
    await button(page, "Send").dblclick();
    await partly(page);
    await provider.open("mid");
    const figures = await settled({ page, server, provider });
    await shot(page, "");
    return figures;
  },
};

const stop = {
  name: "stop",
  short: true,
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play({ times: 1, plan: { ...gated("never").plan, on_client_gone: "stop" } }, { plan: { blocks: [{ text: "Said in full." }] } });
    const page = await openChat(bed);
    await say(page, "Tell me everything.");
    const before = await partly(page);
    await button(page, "Stop").click();
    await page.getByText("Ended before it was whole.").waitFor();
    await provider.wait("finished=1");
    assert.ok((await shownText(page)).startsWith(before), "what was written stays");
    const [entry] = await stored(server, chatOf(page));
    assert.equal(entry.reply.abandonReason, "ABANDON_REASON_CANCELLED");
    await shot(page, "stopped");
    assert.equal((await provider.counts()).generations, 1);
    await button(page, "Regenerate").click();
    await replies(page).last().getByText("Said in full.").waitFor();
    const figures = await settled({ page, server, provider, generations: 2 });
    await shot(page, "again");
    return figures;
  },
};

const regenerate = {
  name: "regenerate",
  short: true,
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play({ times: 1, plan: { blocks: [{ text: "The first answer." }] } }, { plan: { blocks: [{ text: "The second answer." }] } });
    const page = await openChat(bed);
    await say(page, "Answer me.");
    await settled({ page, server, provider });
    await button(page, "Regenerate").dblclick();
    await replies(page).last().getByText("The second answer.").waitFor();
    const figures = await settled({ page, server, provider, generations: 2 });
    await shot(page, "");
    await page.reload();
    await settled({ page, server, provider, generations: 2 });
    return figures;
  },
};

export const scenes = [send, doubleClick, stop, regenerate];
