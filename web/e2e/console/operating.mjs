// Scenes of those who run the server.
import assert from "node:assert/strict";
import { eventually } from "../lib/report.mjs";
import { startTurnd, turnd } from "../lib/servers.mjs";
import { begin, gated, lastReply, partly, say, settled, whole } from "./steps.mjs";

const cut = { plan: { reply: { deltas: 40, delta_bytes: 12, seed: 9 }, steps: [{ at: "delta:20", do: "reset" }] } };

const held = {
  name: "held replies",
  short: true,
  play: async ({ browser, server, provider, shot }) => {
    await provider.play(cut);
    const page = await browser.open(server.url);
    await begin(page, "A careful model", { model: "careful" });
    await say(page, "Transfer the money.");
    await lastReply(page).getByText("Held.").waitFor();
    await shot(page, "thread");
    const address = page.url();
    await page.getByRole("link", { name: "Held", exact: true }).click();
    await page.getByRole("button", { name: "Complete with text…" }).click();
    await page.getByLabel("How it goes on").fill(" It was transferred, says the bank.");
    await shot(page, "resolve");
    await page.getByRole("button", { name: "Complete it" }).click();
    await page.getByText("Nothing is held.").waitFor();
    await page.goto(address);
    await lastReply(page).getByText("It was transferred, says the bank.").waitFor();

    await begin(page, "Let go", { model: "careful" });
    await say(page, "Once more.");
    await lastReply(page).getByText("Held.").waitFor();
    await lastReply(page).getByRole("button", { name: "Release…" }).click();
    await lastReply(page).getByRole("button", { name: "Release it" }).click();
    await lastReply(page).getByText("Held, then let go by an operator.").waitFor();
    const { generations } = await provider.counts();
    assert.equal(generations, 2);
    return { generations };
  },
};

const ledger = {
  name: "ledger and retries",
  short: true,
  play: async ({ browser, server, provider, shot }) => {
    const busy = { times: 2, plan: { steps: [{ at: "request_read", do: "status", status: 529, error: "overloaded_error" }] } };
    await provider.play(busy);
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "A busy provider");
    await say(page, "Again, and again.");
    const { generations, requests } = await settled({ page, server, provider, conversationId });
    assert.equal(requests, 3);
    await lastReply(page).getByRole("button", { name: "Ledger" }).click();
    await eventually("three calls", async () => (await page.getByLabel("Ledger of this turn").locator("tbody tr").count()) === 3);
    await shot(page, "turn");
    await page.getByRole("link", { name: "Ledger" }).click();
    await page.getByRole("region", { name: "Provider calls" }).waitFor();
    await shot(page, "all");
    await page.getByRole("link", { name: "Retries" }).click();
    await page.getByRole("img", { name: /Retries in tokens/ }).waitFor();
    await page.getByText("Wasted tokens by cause").waitFor();
    await shot(page, "retries");
    await page.getByRole("link", { name: "Workers" }).click();
    await page.getByRole("rowheader", { name: "e2e" }).waitFor();
    await page.getByText("alive").waitFor();
    await shot(page, "workers");
    return { generations, requests };
  },
};

async function create(server, scopes) {
  const words = ["--tenant", "acme", "--subject", "ann", "--scopes", scopes, "--database-url", server.database];
  return (await turnd(["keys", "create", ...words])).trim();
}

async function use(page, server, key) {
  await page.goto(`${server.url}/identity`);
  await page.getByLabel("Key or token").fill(key);
  await page.getByRole("button", { name: "Use it" }).click();
}

const records = (page) => page.evaluate(() => Object.keys(localStorage).filter((name) => name.startsWith("turnd:")));

const forgotten = {
  name: "a key that is forgotten",
  short: true,
  play: async ({ folder, browser, provider, shot }) => {
    const server = await startTurnd(folder, provider, { name: "forgotten", args: ["--auth", "keys"] });
    try {
      const page = await browser.open(server.url);
      const ways = { "Forget it": () => page.getByRole("button", { name: "Forget it" }).click() };
      const other = await create(server, "turns,read");
      ways["Another key"] = () => use(page, server, other);
      for (const [way, leave] of Object.entries(ways)) {
        await provider.play(gated("never"));
        await use(page, server, await create(server, "turns,read"));
        await page.getByText("Choose a conversation").waitFor();
        await begin(page, way);
        await say(page, "For nobody else to read.");
        await partly(page);
        assert.equal((await records(page)).length, 1, "the turn is on record");
        await page.goto(`${server.url}/identity`);
        await leave();
        await eventually(`${way}: no record is left`, async () => (await records(page)).length === 0 || (await records(page)).join());
        await shot(page, way);
      }
      return { generations: (await provider.counts()).generations };
    } finally {
      await server.stop();
    }
  },
};

const keys = {
  name: "keys and scopes",
  short: true,
  play: async ({ folder, browser, provider, shot }) => {
    const server = await startTurnd(folder, provider, { name: "keyed", args: ["--auth", "keys"] });
    try {
      const page = await browser.open(server.url);
      const addresses = [];
      page.on("request", (request) => addresses.push(request.url()));
      await page.getByText("The server wants to know who you are").first().waitFor();
      await shot(page, "asked");
      await use(page, server, "turnd_wrong");
      await page.getByRole("alert").waitFor();
      const key = await create(server, "turns,read");
      await use(page, server, key);
      await page.getByText("Choose a conversation").waitFor();
      await begin(page, "With a key");
      await say(page, "Do you know me?");
      await whole(page);
      await page.getByRole("link", { name: "Workers" }).click();
      await page.getByText("It takes a key with the scope").waitFor();
      await shot(page, "scope");
      const operator = await create(server, "operator");
      await use(page, server, operator);
      await page.getByRole("link", { name: "Workers" }).click();
      await page.getByText("alive").waitFor();
      for (const secret of [key, operator]) {
        assert.ok(!addresses.some((address) => address.includes(secret)), "a key is in an address");
        assert.equal(await page.evaluate((text) => Object.values(localStorage).join().includes(text), secret), false);
      }
      return { generations: (await provider.counts()).generations };
    } finally {
      await server.stop();
    }
  },
};

export const scenes = [held, ledger, keys, forgotten];
