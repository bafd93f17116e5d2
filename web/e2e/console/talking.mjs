// Scenes of sending, stopping and asking again.
import assert from "node:assert/strict";
import { eventually } from "../lib/report.mjs";
import { begin, box, gated, lastReply, partly, prose, say, settled, stored, turnsOf, whole } from "./steps.mjs";

const send = {
  name: "send",
  short: true,
  play: async ({ browser, server, provider, shot }) => {
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "A first turn");
    await say(page, "How does a turn stay one turn?");
    const figures = await settled({ page, server, provider, conversationId });
    assert.equal(await box(page).inputValue(), "", "the box is empty again");
    await shot(page, "");
    return figures;
  },
};

const doubleClick = {
  name: "double click",
  short: true,
  play: async ({ browser, server, provider, shot }) => {
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "A heavy hand");
    await box(page).fill("Only once, please.");
    await page.getByRole("button", { name: "Send" }).dblclick();
    const figures = await settled({ page, server, provider, conversationId });
    assert.equal(await turnsOf(page).count(), 1);
    await shot(page, "");
    return figures;
  },
};

const stop = {
  name: "stop",
  short: true,
  play: async ({ browser, server, provider, shot }) => {
    await provider.play({ plan: { ...gated("never").plan, on_client_gone: "stop" } });
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "Enough said");
    await say(page, "Tell me everything.");
    const before = await partly(page);
    await page.getByRole("button", { name: "Stop", exact: true }).first().click();
    await lastReply(page).getByText("Stopped.").waitFor();
    await provider.wait("finished=1");
    assert.ok((await prose(page).innerText()).length >= before.length, "what was written stays");
    const [entry] = await stored(server, conversationId);
    assert.equal(entry.reply.abandonReason, "ABANDON_REASON_CANCELLED");
    await shot(page, "");
    const { generations, running } = await provider.counts();
    assert.deepEqual({ generations, running }, { generations: 1, running: 0 });
    return { generations, running };
  },
};

const regenerate = {
  name: "regenerate",
  short: true,
  play: async ({ browser, server, provider, shot }) => {
    await provider.play({ times: 1, plan: { blocks: [{ text: "The first answer." }] } }, { plan: { blocks: [{ text: "The second answer." }] } });
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "Again");
    await say(page, "Answer me.");
    await settled({ page, server, provider, conversationId });
    await page.getByRole("button", { name: "Regenerate" }).dblclick();
    await lastReply(page).getByText("The second answer.").waitFor();
    const figures = await settled({ page, server, provider, conversationId, generations: 2 });
    await lastReply(page).getByLabel("2 of 2").waitFor();
    await shot(page, "second");

    await lastReply(page).getByRole("button", { name: "Previous" }).click();
    await lastReply(page).getByText("The first answer.").waitFor();
    await lastReply(page).getByRole("button", { name: "Use this reply" }).click();
    await eventually("the first reply is live again", async () => {
      const [entry] = await stored(server, conversationId);
      return entry.reply.attempt === 1 && entry.reply.status === "REPLY_STATUS_COMPLETE";
    });
    await eventually("it needs no choosing any more", async () => (await lastReply(page).getByRole("button", { name: "Use this reply" }).count()) === 0);
    await lastReply(page).getByText("The first answer.").waitFor();
    await shot(page, "first");
    assert.equal((await provider.counts()).generations, 2, "selecting costs nothing");
    return figures;
  },
};

const inLine = {
  name: "in line",
  play: async ({ browser, server, provider, shot }) => {
    await provider.play({ ...gated(), times: 1 });
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "One after the other");
    await say(page, "The first.");
    await partly(page);
    await say(page, "The second.");
    await page.getByText("In line: it is next.").waitFor();
    await shot(page, "waiting");
    await provider.open("mid");
    await provider.wait("finished=2");
    return settled({ page, server, provider, conversationId, generations: 2, turns: 2 });
  },
};

const interrupted = {
  name: "stop and send",
  play: async ({ browser, server, provider, shot }) => {
    await provider.play({ times: 1, plan: { ...gated("never").plan, on_client_gone: "stop" } });
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "On second thought");
    await say(page, "Something long.");
    await partly(page);
    await page.getByLabel("While a reply runs").selectOption({ label: "stop it first" });
    await say(page, "Something short.");
    await provider.wait("finished=2");
    const figures = await settled({ page, server, provider, conversationId, generations: 2, turns: 2 });
    await turnsOf(page).first().getByText("Stopped.").waitFor();
    await whole(page);
    await shot(page, "");
    return figures;
  },
};

export const scenes = [send, doubleClick, stop, regenerate, inLine, interrupted];
