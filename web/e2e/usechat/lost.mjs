// Scenes of pages that are loaded again, opened twice, cut off and looked at by others.
import assert from "node:assert/strict";
import { gated, newId, squeeze } from "../console/steps.mjs";
import { startProxy } from "../lib/proxy.mjs";
import { eventually } from "../lib/report.mjs";
import { button, chatOf, openChat, partly, say, settled, shownText } from "./steps.mjs";

const reload = {
  name: "reload in the middle",
  short: true,
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play(gated());
    const page = await openChat(bed);
    await say(page, "Go on whatever I do.");
    const before = await partly(page);
    await page.reload();
    await eventually("what was shown is shown again", async () => squeeze(await shownText(page)).startsWith(squeeze(before)));
    await shot(page, "half");
    await provider.open("mid");
    const figures = await settled({ page, server, provider });
    await shot(page, "whole");
    return figures;
  },
};

const reloadAndStop = {
  name: "reload and stop",
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play({ plan: { ...gated("never").plan, on_client_gone: "stop" } });
    const page = await openChat(bed);
    await say(page, "You will be stopped by somebody else.");
    await partly(page);
    await page.reload();
    await partly(page);
    assert.equal((await provider.counts()).running, 1, "a reload stops nothing");
    await button(page, "Stop").click();
    await page.getByText("Ended before it was whole.").waitFor();
    await provider.wait("finished=1");
    await shot(page, "");
    const { generations, running } = await provider.counts();
    return { generations, running };
  },
};

const twoTabs = {
  name: "two tabs",
  short: true,
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play(gated());
    const page = await openChat(bed);
    const other = await openChat(bed, chatOf(page));
    await say(page, "Both of us are reading.");
    await partly(page);
    await partly(other);
    await shot(other, "other half");
    await provider.open("mid");
    await settled({ page: other, server, provider });
    const figures = await settled({ page, server, provider });
    await shot(other, "other whole");
    return figures;
  },
};

const offline = {
  name: "offline and back",
  short: true,
  play: async ({ server, provider, shot, line, ...bed }) => {
    await provider.play(gated());
    const page = await openChat(bed);
    await say(page, "Into the tunnel.");
    const before = await partly(page);
    await bed.browser.context.setOffline(true);
    line.cut();
    await provider.open("mid");
    await provider.wait("finished=1");
    assert.ok((await shownText(page)).startsWith(before), "what was shown stays");
    await shot(page, "offline");
    await bed.browser.context.setOffline(false);
    const figures = await settled({ page, server, provider });
    await shot(page, "back");
    return figures;
  },
};

const sentOffline = {
  name: "sent while offline",
  play: async ({ server, provider, shot, ...bed }) => {
    const page = await openChat(bed);
    await bed.browser.context.setOffline(true);
    await say(page, "Sent with no network.");
    await page.getByText("Waiting").waitFor();
    await shot(page, "waiting");
    assert.equal((await provider.counts()).generations, 0);
    await bed.browser.context.setOffline(false);
    return settled({ page, server, provider });
  },
};

const answersLost = {
  name: "the answer is lost three times",
  play: async ({ server, provider, shot, ...bed }) => {
    const proxy = bed.later(await startProxy(bed));
    const page = await openChat({ ...bed, url: proxy.url });
    await page.waitForLoadState("networkidle");
    proxy.faults.lose = 3;
    await say(page, "Did you get this?");
    const figures = await settled({ page, server, provider });
    await shot(page, "");
    assert.deepEqual({ requests: figures.requests, lost: proxy.done.lost }, { requests: 1, lost: 3 });
    return { ...figures, lost: proxy.done.lost };
  },
};

const endedEarly = {
  name: "a proxy ends streams in good order",
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play({ plan: { reply: { deltas: 160, delta_bytes: 12, seed: 3 }, pace_ms: 15 } });
    const { url, done } = bed.later(await startProxy(bed, { endAfter: 1500 }));
    const page = await openChat({ ...bed, url });
    await say(page, "You will be told that this is the end.");
    const figures = await settled({ page, server, provider });
    await shot(page, "");
    assert.ok(done.ended > 1, `streams that were ended: ${done.ended}`);
    return { ...figures, ended: done.ended };
  },
};

const left = {
  name: "left and come back",
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play(gated());
    const page = await openChat(bed);
    const id = chatOf(page);
    await say(page, "Carry on without me.");
    await partly(page);
    await page.close();
    await provider.open("mid");
    await provider.wait("finished=1");
    const back = await openChat(bed, id);
    const figures = await settled({ page: back, server, provider });
    await shot(back, "");
    return figures;
  },
};

const link = {
  name: "another tenant's link",
  short: true,
  play: async ({ server, provider, context, shot, ...bed }) => {
    const page = await openChat(bed);
    await say(page, "A secret.");
    const figures = await settled({ page, server, provider });
    const stranger = await context({ extraHTTPHeaders: { "x-turnd-tenant": "strangers" } });
    const seen = [];
    for (const id of [chatOf(page), newId()]) {
      const other = await openChat({ ...bed, browser: stranger }, id);
      assert.equal(await other.getByRole("article").count(), 0);
      seen.push(await other.locator("main").innerHTML());
      if (id === chatOf(page)) await shot(other, "");
      await other.close();
    }
    assert.equal(seen[0], seen[1], "it looks as one that never was");
    assert.equal((await provider.counts()).generations, figures.generations);
    return figures;
  },
};

/** Takes storage from a page before it is loaded. */
function withoutStorage() {
  for (const area of ["localStorage", "sessionStorage"]) {
    Object.defineProperty(window, area, { get: () => { throw new DOMException("storage is forbidden", "SecurityError"); } });
  }
}

const storage = {
  name: "storage forbidden",
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play(gated());
    await bed.browser.context.addInitScript(withoutStorage);
    const page = await openChat(bed);
    await say(page, "Remember this for me.");
    await partly(page);
    await page.reload();
    await partly(page);
    await provider.open("mid");
    const figures = await settled({ page, server, provider });
    await shot(page, "");
    return figures;
  },
};

export const scenes = [reload, reloadAndStop, left, twoTabs, offline, sentOffline, answersLost, endedEarly, link, storage];
