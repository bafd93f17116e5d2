// Scenes of pages that are loaded again and cut off, and of servers that are started again.
import assert from "node:assert/strict";
import { gated, newId, squeeze } from "../console/steps.mjs";
import { startProxy } from "../lib/proxy.mjs";
import { eventually } from "../lib/report.mjs";
import { startTurnd } from "../lib/servers.mjs";
import { conversationOf, openPage, partly, say, settled, shownText, turnsOf, wentOnFrom } from "./steps.mjs";

const reload = {
  name: "reload in the middle",
  short: true,
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play(gated());
    const { page } = await openPage(bed);
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

const twoTabs = {
  name: "two tabs",
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play(gated());
    const { page } = await openPage(bed);
    await say(page, "Both of us are reading.");
    await partly(page);
    const { page: other } = await openPage(bed, conversationOf(page));
    await partly(other);
    await provider.open("mid");
    await settled({ page, server, provider });
    const figures = await settled({ page: other, server, provider });
    await shot(other, "");
    return figures;
  },
};

const offline = {
  name: "offline and back",
  short: true,
  play: async ({ server, provider, shot, line, ...bed }) => {
    await provider.play(gated());
    const { page, asked } = await openPage(bed);
    await say(page, "Into the tunnel.");
    await partly(page);
    await bed.browser.context.setOffline(true);
    line.cut();
    await page.getByText("Connecting again").waitFor();
    await shot(page, "offline");
    await provider.open("mid");
    await provider.wait("finished=1");
    await bed.browser.context.setOffline(false);
    const figures = await settled({ page, server, provider });
    assert.match(await wentOnFrom(asked), /^[0-9a-f-]{36}:\d+$/, "the last connection went on from its id");
    await shot(page, "back");
    return { ...figures, connections: asked.length };
  },
};

const sentOffline = {
  name: "sent while offline",
  play: async ({ server, provider, shot, ...bed }) => {
    const { page } = await openPage(bed);
    await bed.browser.context.setOffline(true);
    await say(page, "Sent with no network.");
    await page.getByText("turnd can't be reached. Trying again.").waitFor();
    await shot(page, "waiting");
    assert.equal((await provider.counts()).generations, 0);
    await bed.browser.context.setOffline(false);
    await partly(page);
    return settled({ page, server, provider });
  },
};

const restart = (name, stop, short) => ({
  name,
  short,
  play: async ({ provider, shot, folder, serve, later, ...bed }) => {
    await provider.play(gated());
    const options = { name: name.replaceAll(" ", "-"), model: "background", args: ["--lease", "2s", "--sweep", "200ms"] };
    const server = later(await startTurnd(folder, provider, options));
    const { url } = await serve(server);
    const { page, asked } = await openPage({ ...bed, url });
    await say(page, "Go on whatever is done to you.");
    const before = await partly(page);
    await stop(server);
    await page.getByText("Connecting again").waitFor();
    await shot(page, "down");
    const { host } = new URL(server.url);
    const again = later(await startTurnd(folder, provider, { ...options, args: [...options.args, "--listen", host] }));
    await provider.open("mid");
    await eventually("the text has grown", async () => (await shownText(page)).length > before.length);
    const figures = await settled({ page, server: again, provider });
    const opened = await page.evaluate(() => window.opened);
    assert.equal(opened, 1, "it was the EventSource itself that connected again");
    assert.match(await wentOnFrom(asked), /^[0-9a-f-]{36}:\d+$/, "the last connection went on from its id");
    await shot(page, "whole");
    return { ...figures, connections: asked.length };
  },
});

const answersLost = {
  name: "the answer is lost three times",
  play: async ({ server, provider, shot, ...bed }) => {
    const proxy = bed.later(await startProxy(bed, { lose: 3 }));
    const { page } = await openPage({ ...bed, url: proxy.url });
    await say(page, "Did you get this?");
    await partly(page);
    const figures = await settled({ page, server, provider });
    await shot(page, "");
    assert.deepEqual({ requests: figures.requests, lost: proxy.done.lost }, { requests: 1, lost: 3 });
    return { ...figures, lost: proxy.done.lost };
  },
};

const endedEarly = {
  name: "a proxy ends streams in good order",
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play({ plan: { reply: { deltas: 160, delta_bytes: 12, seed: 3 }, pace_ms: 20 } });
    const { url, done } = bed.later(await startProxy(bed, { endAfter: 10_000 }));
    const { page, asked } = await openPage({ ...bed, url });
    await say(page, "You will be told that this is the end.");
    await partly(page);
    const figures = await settled({ page, server, provider });
    await shot(page, "");
    assert.ok(done.ended > 1, `streams that were ended: ${done.ended}`);
    assert.match(await wentOnFrom(asked), /^[0-9a-f-]{36}:\d+$/, "the last connection went on from its id");
    return { ...figures, ended: done.ended };
  },
};

const left = {
  name: "left and come back",
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play(gated());
    const { page } = await openPage(bed);
    const id = conversationOf(page);
    await say(page, "Carry on without me.");
    await partly(page);
    await page.close();
    await provider.open("mid");
    await provider.wait("finished=1");
    const { page: back } = await openPage(bed, id);
    const figures = await settled({ page: back, server, provider });
    await shot(back, "");
    return figures;
  },
};

const link = {
  name: "another tenant's link",
  play: async ({ server, provider, context, shot, ...bed }) => {
    const { page } = await openPage(bed);
    await say(page, "A secret.");
    await partly(page);
    const figures = await settled({ page, server, provider });
    const stranger = await context({ extraHTTPHeaders: { "x-turnd-tenant": "strangers" } });
    const seen = [];
    for (const id of [conversationOf(page), newId()]) {
      const { page: other } = await openPage({ ...bed, browser: stranger }, id);
      assert.equal(await turnsOf(other).count(), 0);
      seen.push(await other.locator("body").innerText());
      if (seen.length === 1) await shot(other, "");
    }
    assert.equal(seen[0], seen[1], "it looks as one that never was");
    assert.equal((await provider.counts()).generations, figures.generations);
    return figures;
  },
};

const stopped = restart("server restarted in the middle", (server) => server.stop(), true);
const killed = restart("server killed in the middle", (server) => server.kill(), false);

export const scenes = [reload, left, twoTabs, offline, sentOffline, answersLost, endedEarly, stopped, killed, link];
