// Scenes of pages that are left, loaded again, opened twice and cut off.
import assert from "node:assert/strict";
import { startLine } from "../lib/line.mjs";
import { eventually } from "../lib/report.mjs";
import { begin, box, gated, partly, prose, say, settled, squeeze, stored, turnsOf } from "./steps.mjs";

const reload = {
  name: "reload in the middle",
  short: true,
  play: async ({ browser, server, provider, shot }) => {
    await provider.play(gated());
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "Interrupted by a reload");
    await say(page, "Go on whatever I do.");
    const before = await partly(page);
    await page.reload();
    await eventually("what was shown is shown again", async () => squeeze(await prose(page).innerText()).startsWith(squeeze(before).slice(0, 40)));
    await shot(page, "half");
    await provider.open("mid");
    const figures = await settled({ page, server, provider, conversationId });
    assert.equal(await turnsOf(page).count(), 1);
    await shot(page, "whole");
    return figures;
  },
};

const twoTabs = {
  name: "two tabs",
  short: true,
  play: async ({ browser, server, provider, shot }) => {
    await provider.play(gated());
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "Looked at twice");
    const other = await browser.open(page.url());
    await say(page, "Both of us are reading.");
    await partly(page);
    await partly(other);
    await shot(other, "other half");
    await provider.open("mid");
    const figures = await settled({ page, server, provider, conversationId });
    await settled({ page: other, server, provider, conversationId });
    await shot(other, "other whole");
    return figures;
  },
};

const elsewhere = {
  name: "another browser",
  play: async ({ browser, context, server, provider }) => {
    await provider.play(gated());
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "From the phone, too");
    const phone = await (await context()).open(page.url());
    await say(page, "Who else is there?");
    await partly(phone);
    await phone.getByRole("button", { name: "Stop", exact: true }).first().waitFor();
    await provider.open("mid");
    await settled({ page: phone, server, provider, conversationId });
    return settled({ page, server, provider, conversationId });
  },
};

const left = {
  name: "left and come back",
  play: async ({ browser, server, provider }) => {
    await provider.play(gated());
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "While I was away");
    const address = page.url();
    await say(page, "Carry on without me.");
    await partly(page);
    await page.close();
    await provider.open("mid");
    await provider.wait("finished=1");
    await eventually("the reply is complete with nobody there", async () => {
      const [entry] = await stored(server, conversationId);
      return entry.reply.status === "REPLY_STATUS_COMPLETE";
    });
    return settled({ page: await browser.open(address), server, provider, conversationId });
  },
};

const deletedElsewhere = {
  name: "deleted elsewhere while a reply runs",
  short: true,
  play: async ({ browser, server, provider, shot }) => {
    await provider.play(gated("never"));
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "Gone under one's feet");
    await say(page, "Is anybody there?");
    await partly(page);
    await page.getByText("While a reply runs").waitFor();
    await box(page).fill("Words that were not sent.");
    const response = await fetch(`${server.url}/v1/conversations/${conversationId}`, { method: "DELETE" });
    assert.ok(response.ok, `deleting: ${response.status}`);
    await page.getByRole("status").getByText("This conversation was deleted.").waitFor();
    await eventually("nothing can be stopped, chosen or sent", async () => {
      const names = ["Stop", "Regenerate", "Edit", "Rename", "Send again"];
      const counts = await Promise.all(names.map((name) => page.getByRole("button", { name, exact: true }).count()));
      const choices = await page.getByText("While a reply runs").count();
      return counts.concat(choices).every((count) => count === 0) || `${names}: ${counts}, choices: ${choices}`;
    });
    assert.ok(await page.getByRole("button", { name: "Send", exact: true }).isDisabled());
    assert.equal(await box(page).inputValue(), "Words that were not sent.", "what was written can still be copied");
    await shot(page, "");
    const { generations } = await provider.counts();
    assert.equal(generations, 1);
    return { generations };
  },
};

const offline = {
  name: "offline and back",
  short: true,
  play: async ({ browser, server, provider, shot, later }) => {
    await provider.play(gated());
    const line = later(await startLine(server));
    const page = await browser.open(line.url);
    const conversationId = await begin(page, "Through a tunnel");
    await say(page, "Into the tunnel.");
    await partly(page);
    await browser.context.setOffline(true);
    line.cut();
    await page.getByText("Offline. The reply goes on at the server").waitFor();
    await page.getByText("There is no network.").waitFor();
    await shot(page, "offline");
    await provider.open("mid");
    await provider.wait("finished=1");
    await browser.context.setOffline(false);
    const figures = await settled({ page, server, provider, conversationId });
    await eventually("nothing says offline any more", async () => (await page.getByText(/offline|no network/i).count()) === 0);
    await shot(page, "back");
    return figures;
  },
};

const sentOffline = {
  name: "sent while offline",
  play: async ({ browser, server, provider, shot }) => {
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "From the tunnel");
    await box(page).waitFor();
    await browser.context.setOffline(true);
    await say(page, "Sent with no network.");
    await page.getByText("Offline. It goes on once the network is back.").waitFor();
    await shot(page, "waiting");
    assert.equal((await provider.counts()).generations, 0);
    await browser.context.setOffline(false);
    return settled({ page, server, provider, conversationId });
  },
};

const cutLinks = {
  name: "streams cut again and again",
  play: async ({ browser, server, provider, later }) => {
    await provider.play({ plan: { reply: { deltas: 160, delta_bytes: 12, seed: 3 }, pace_ms: 20 } });
    const line = later(await startLine(server));
    const page = await browser.open(line.url);
    const conversationId = await begin(page, "A bad line");
    await say(page, "Say it slowly.");
    for (let cut = 0; cut < 4; cut++) {
      await partly(page, 60 + cut * 250);
      line.cut();
    }
    const figures = await settled({ page, server, provider, conversationId });
    return { ...figures, cuts: 4 };
  },
};

export const scenes = [reload, twoTabs, elsewhere, left, deletedElsewhere, offline, sentOffline, cutLinks];
