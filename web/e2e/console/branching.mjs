// Scenes of versions of a turn, of tool calls and of what else a reply can hold.
import assert from "node:assert/strict";
import { eventually } from "../lib/report.mjs";
import { begin, gated, lastReply, newId, partly, say, settled, stored, turnsOf, whole } from "./steps.mjs";

const edit = {
  name: "edit and go back",
  play: async ({ browser, server, provider, shot }) => {
    await provider.play(
      { match: { text: "tea" }, plan: { blocks: [{ text: "About tea." }] } },
      { match: { text: "coffee" }, plan: { blocks: [{ text: "About coffee." }] } },
    );
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "Two versions");
    await say(page, "Tell me of tea");
    await settled({ page, server, provider, conversationId });
    await turnsOf(page).first().getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("The turn, edited").fill("Tell me of coffee");
    await page.getByRole("button", { name: "Send as another version" }).click();
    await lastReply(page).getByText("About coffee.").waitFor();
    await whole(page);
    await page.getByLabel("2 of 2").waitFor();
    await shot(page, "second");
    await page.getByRole("button", { name: "Previous: version of this turn" }).click();
    await lastReply(page).getByText("About tea.").waitFor();
    await page.getByLabel("1 of 2").waitFor();
    assert.equal(await turnsOf(page).count(), 1, "one branch is shown");
    await say(page, "More of tea");
    const { generations } = await settled({ page, server, provider, conversationId, generations: 3, turns: 2 });
    await shot(page, "first");
    return { generations };
  },
};

const tools = {
  name: "tool calls",
  short: true,
  play: async ({ browser, server, provider, shot }) => {
    const call = (id, name, input) => ({ tool_use: { id, name, input } });
    await provider.play(
      {
        times: 1,
        plan: {
          blocks: [{ text: "Let me look." }, call("t1", "weather", '{"city":"Oslo","days":3}'), call("t2", "clock", '{"zone":"Europe/Oslo"}')],
          stop_reason: "tool_use",
        },
      },
      { plan: { blocks: [{ text: "It will rain at three." }] } },
    );
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "With tools");
    await say(page, "Will it rain?");
    await page.getByRole("form", { name: "Answer the tool calls" }).waitFor();
    await shot(page, "asked");
    await page.getByLabel("Result of weather").fill('{"rain": "15:00"}');
    await page.getByLabel("Result of clock").fill("no such zone");
    await page.getByLabel("The tool failed").last().check();
    await page.getByRole("button", { name: "Send the results" }).click();
    await lastReply(page).getByText("It will rain at three.").waitFor();
    await whole(page);
    const [answered] = await stored(server, conversationId);
    assert.deepEqual(answered.turn.content.map((b) => [b.toolResult.toolUseId, !!b.toolResult.isError]), [["t1", false], ["t2", true]]);
    await shot(page, "answered");
    const { generations } = await provider.counts();
    assert.equal(generations, 2);
    return { generations };
  },
};

const kinds = {
  name: "thinking and code",
  play: async ({ browser, server, provider, shot }) => {
    const text = 'It is a loop:\n\n```go\nfor range 3 {\n\tfmt.Println("again")\n}\n```\n\nThat prints it **three** times.';
    await provider.play({ plan: { blocks: [{ thinking: "A loop would do. Three times.", signature: "sig" }, { text }] } });
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "Thoughts and code");
    await say(page, "Show me a loop.");
    await whole(page);
    const thinking = lastReply(page).locator("details");
    assert.equal(await thinking.getAttribute("open"), null, "thinking is closed");
    await thinking.locator("summary").click();
    await lastReply(page).getByText("A loop would do.").waitFor();
    assert.equal(await lastReply(page).locator("pre code").innerText(), 'for range 3 {\n\tfmt.Println("again")\n}');
    await shot(page, "");
    const [entry] = await stored(server, conversationId);
    assert.equal(entry.reply.content.length, 2);
    return { generations: (await provider.counts()).generations };
  },
};

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const images = {
  name: "images",
  play: async ({ browser, server, provider, shot }) => {
    const elsewhere = "https://images.example.invalid/cat.png";
    const input = {
      turnId: newId(),
      content: [
        { text: { text: "What is in these?" } },
        { image: { mediaType: "image/png", data: pixel } },
        { image: { mediaType: "image/png", url: elsewhere } },
        { document: { mediaType: "text/plain", title: "notes.txt", data: Buffer.from("a note").toString("base64") } },
      ],
    };
    const response = await fetch(`${server.url}/v1/turns`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(input) });
    const submitted = await response.json();
    assert.ok(response.ok, JSON.stringify(submitted));
    const page = await browser.context.newPage();
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(`${server.url}/c/${submitted.turn.conversationId}`);
    await whole(page);
    const shown = page.locator("main img");
    assert.equal(await shown.count(), 1, "only what the turn has in itself");
    await eventually("the image is there", () => shown.evaluate((image) => image.naturalWidth === 1));
    await page.getByRole("link", { name: elsewhere }).waitFor();
    await page.getByRole("link", { name: "notes.txt" }).waitFor();
    assert.deepEqual(asked.filter((url) => !url.startsWith(server.url) && !url.startsWith("blob:")), [], "asked of others");
    await shot(page, "");
    return { generations: (await provider.counts()).generations };
  },
};

const refused = {
  name: "failed and tried again",
  play: async ({ browser, server, provider, shot }) => {
    const cut = { plan: { reply: { deltas: 40, delta_bytes: 12, seed: 5 }, steps: [{ at: "delta:20", do: "reset" }] } };
    await provider.play({ ...cut, times: 1 }, { plan: { blocks: [{ text: "Now it worked." }] } });
    const page = await browser.open(server.url);
    await begin(page, "Cut by the provider");
    await say(page, "Try.");
    await lastReply(page).getByText("Nobody knows what came of the request.").waitFor();
    await shot(page, "abandoned");
    await lastReply(page).getByRole("button", { name: "Send again" }).click();
    await lastReply(page).getByText("Now it worked.").waitFor();
    await whole(page);
    await lastReply(page).getByLabel("2 of 2").waitFor();
    await shot(page, "again");
    return { generations: (await provider.counts()).generations };
  },
};

const deleted = {
  name: "rename and delete",
  play: async ({ browser, server, provider }) => {
    await provider.play(gated());
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "A working title");
    await say(page, "Soon forgotten.");
    await partly(page);
    await page.getByRole("button", { name: "Rename" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Title").fill("A better title");
    await dialog.getByLabel("Labels").fill("team=red\nkind=trial");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { level: 1, name: "A better title" }).waitFor();
    await page.getByLabel("Filter conversations").fill("team=red better");
    await eventually("one is found", async () => (await page.locator(".list li").count()) === 1);
    await page.getByLabel("Filter conversations").fill("team=blue");
    await page.getByText("None matches.").waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("Choose a conversation").waitFor();
    const gone = await fetch(`${server.url}/v1/conversations/${conversationId}`);
    assert.equal(gone.status, 400);
    return { generations: (await provider.counts()).generations };
  },
};

export const scenes = [edit, tools, kinds, images, refused, deleted];
