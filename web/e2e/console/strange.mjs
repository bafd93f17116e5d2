// Scenes of what should not be: hostile text, links of others, storage that is forbidden or full.
import assert from "node:assert/strict";
import { begin, lastReply, newId, partly, gated, say, settled, whole } from "./steps.mjs";

const hostile = `<script>window.taken = 1</script><img src=x onerror="window.taken = 2"><a href="javascript:window.taken=3">link</a> <b>bold</b> {{7*7}} \${7*7}`;

const markup = {
  name: "markup is text",
  short: true,
  play: async ({ browser, server, provider, shot }) => {
    await provider.play({ plan: { blocks: [{ thinking: hostile, signature: "s" }, { text: hostile }, { tool_use: { id: "<i>t</i>", name: "f", input: JSON.stringify({ html: hostile }) } }], stop_reason: "tool_use" } });
    const page = await browser.open(server.url);
    await begin(page, "<img src=x onerror=alert(1)>");
    await say(page, hostile);
    await whole(page);
    await lastReply(page).locator("summary").click();
    const shown = await page.getByRole("article").innerText();
    assert.equal(shown.split("<script>window.taken = 1</script>").length - 1, 4, "in the turn, the thinking, the text and the tool's input");
    const found = await page.evaluate(() => ({
      taken: window.taken ?? 0,
      made: document.querySelectorAll("main img, main script, main b:not(.figures b), main a[href^='javascript']").length,
      title: document.title,
    }));
    assert.deepEqual(found, { taken: 0, made: 0, title: "<img src=x onerror=alert(1)> · turnd" });
    await shot(page, "");
    return { generations: (await provider.counts()).generations, taken: found.taken };
  },
};

const link = {
  name: "another tenant's link",
  short: true,
  play: async ({ browser, context, server, provider, shot }) => {
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "Ours alone");
    await say(page, "A secret.");
    const figures = await settled({ page, server, provider, conversationId });
    const other = await context();
    const stranger = await other.open(`${server.url}/identity`);
    await stranger.getByText("Without a key").click();
    await stranger.getByLabel("Tenant").fill("strangers");
    await stranger.getByRole("button", { name: "Use it" }).click();
    await stranger.getByText("Choose a conversation").waitFor();
    const seen = [];
    for (const id of [conversationId, newId()]) {
      await stranger.goto(`${server.url}/c/${id}`);
      await stranger.getByText("There is no such thing here").first().waitFor();
      seen.push((await stranger.locator("main").innerText()).replaceAll(id, "ID").replaceAll(id.slice(-8), "ID"));
      if (id === conversationId) await shot(stranger, "");
    }
    assert.equal(seen[0], seen[1], "it looks as one that never was");
    assert.ok(!/secret|Ours/.test(seen[0]));
    assert.equal((await provider.counts()).generations, figures.generations);
    return figures;
  },
};

/** Takes storage from a page before it is loaded. */
function withoutStorage(how) {
  const fail = (name) => () => {
    throw new DOMException(`storage is ${name}`, name);
  };
  if (how === "forbidden") {
    for (const area of ["localStorage", "sessionStorage"]) Object.defineProperty(window, area, { get: fail("SecurityError") });
  } else Storage.prototype.setItem = fail("QuotaExceededError");
}

const storage = (how, short) => ({
  name: `storage ${how}`,
  short,
  play: async ({ browser, server, provider, shot }) => {
    await provider.play(gated());
    await browser.context.addInitScript(withoutStorage, how);
    const page = await browser.open(server.url);
    const conversationId = await begin(page, `Nothing is kept, ${how}`);
    await say(page, "Remember this for me.");
    await partly(page);
    await page.reload();
    await partly(page);
    await provider.open("mid");
    const figures = await settled({ page, server, provider, conversationId });
    await shot(page, "");
    return figures;
  },
});

const addresses = {
  name: "odd addresses",
  play: async ({ browser, server }) => {
    const page = await browser.open(`${server.url}/c/not-an-id`);
    await page.getByRole("alert").first().waitFor();
    await page.goto(`${server.url}/c/%E0%A4%A`);
    await page.goto(`${server.url}/operator/ledger?conversation=${encodeURIComponent("<b>x</b>")}&turn=%00`);
    await page.getByRole("alert").first().waitFor();
    for (const path of ["/v1/nothing", "/turns.v1.TurnService/Nothing", "/nothing", "/assets/nothing.js"]) {
      const response = await fetch(server.url + path);
      assert.ok(response.status >= 400, `${path}: ${response.status}`);
      assert.ok(!(await response.text()).includes('id="console"'), path);
    }
    return { addresses: 7 };
  },
};

export const scenes = [markup, link, storage("forbidden", true), storage("full", false), addresses];
