// Scenes of how it looks and how it is used: on a phone, in the dark, by keyboard alone.
import assert from "node:assert/strict";
import { sideways } from "../lib/browser.mjs";
import { eventually } from "../lib/report.mjs";
import { begin, box, lastReply, prose, say, settled, squeeze, stored, textOf, whole } from "./steps.mjs";

const long = `Averyveryverylongwordwithoutanyplacetobreakit${"o".repeat(120)} and\n\n\`\`\`\n${"a line of code that is long ".repeat(8)}\n\`\`\`\n\nand so on.`;

const phone = {
  name: "phone",
  short: true,
  context: { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
  play: async ({ browser, server, provider, shot }) => {
    await provider.play({ times: 1, plan: { blocks: [{ text: long }] } });
    const page = await browser.open(server.url);
    const narrow = async (where) => {
      const found = await sideways(page);
      assert.equal(found.page, found.window, `${where} is wider than the phone: ${JSON.stringify(found.wide)}`);
      assert.deepEqual(found.wide, [], where);
    };
    await narrow("the list");
    await shot(page, "list");
    const conversationId = await begin(page, "On the way, with a title that is longer than a phone is wide");
    await say(page, `https://example.com/${"path/".repeat(40)}`);
    await whole(page);
    await narrow("a thread");
    await lastReply(page).getByRole("button", { name: "Ledger" }).click();
    await page.getByRole("region", { name: "Provider calls" }).waitFor();
    await narrow("a thread with a ledger");
    await shot(page, "thread");
    await page.getByRole("button", { name: "Rename" }).click();
    await narrow("a dialog");
    await shot(page, "dialog");
    await page.keyboard.press("Escape");
    for (const path of ["operator/held", "operator/ledger", "operator/retries", "operator/workers", "identity"]) {
      await page.goto(`${server.url}/${path}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.waitForLoadState("networkidle");
      await narrow(path);
      await shot(page, path.replace("/", " "));
    }
    assert.ok(conversationId);
    return { generations: (await provider.counts()).generations };
  },
};

const huge = {
  name: "a very long reply",
  play: async ({ browser, server, provider, shot }) => {
    await provider.play({ plan: { reply: { deltas: 400, delta_bytes: 1_000, seed: 5 }, steps: [{ at: "delta:200", do: "wait", gate: "mid" }] } });
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "All there is to say");
    await say(page, "Leave nothing out.");
    await lastReply(page).getByText(/^The latest of [12]\d\d,\d{3} characters/).waitFor();
    const drawn = () => prose(page).evaluate((element) => element.textContent.length);
    assert.ok((await drawn()) <= 100_000, "no more is drawn while it grows");
    await provider.open("mid");
    await whole(page);
    await lastReply(page).getByRole("button", { name: "Show all" }).waitFor();
    assert.equal(await drawn(), 100_000);
    await shot(page, "");
    await lastReply(page).getByRole("button", { name: "Show all" }).click();
    await eventually("all is drawn", async () => (await drawn()) > 390_000 || drawn());
    const [entry] = await stored(server, conversationId);
    assert.equal(squeeze(await prose(page).evaluate((element) => element.textContent)), squeeze(textOf(entry.reply)));
    return { generations: (await provider.counts()).generations, characters: await drawn() };
  },
};

const dark = {
  name: "dark",
  context: { colorScheme: "dark" },
  play: async ({ browser, server, provider, shot }) => {
    await provider.play({
      plan: { blocks: [{ thinking: "It is late.", signature: "s" }, { text: "Good night.\n\n```sh\nturnd serve --demo\n```\n\nSleep well." }] },
    });
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "After dark");
    await say(page, "Turn off the light.");
    await whole(page);
    const paper = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    assert.ok(paper.match(/\d+/g).every((part) => Number(part) < 60), `the paper is ${paper}`);
    await shot(page, "thread");
    await page.goto(`${server.url}/operator/retries`);
    await page.getByRole("img", { name: /Retries in tokens/ }).waitFor();
    await shot(page, "retries");
    assert.ok(conversationId);
    return { generations: (await provider.counts()).generations };
  },
};

const keyboard = {
  name: "keyboard alone",
  short: true,
  play: async ({ browser, server, provider, shot }) => {
    const page = await browser.open(server.url);
    const keys = page.keyboard;
    await page.getByRole("button", { name: "New" }).waitFor();
    await keys.press("Tab");
    await eventually("the first stop is the way past the bar", async () => (await focused(page)).text === "Skip to the content");
    for (let stop = 0; stop < 9; stop++) {
      await keys.press("Tab");
      const { outline, text } = await focused(page);
      assert.ok(outline, `the focus on ${text} can't be seen`);
    }
    await page.evaluate(() => document.activeElement.blur());
    await keys.press("n");
    await page.getByRole("dialog").waitFor();
    await keys.type("By keyboard");
    await keys.press("Enter");
    await page.getByRole("heading", { level: 1, name: "By keyboard" }).waitFor();
    const conversationId = new URL(page.url()).pathname.split("/")[2];
    await keys.press("c");
    await keys.type("No mouse here.");
    await keys.press("Shift+Enter");
    await keys.type("Two lines.");
    await keys.press("Enter");
    await settled({ page, server, provider, conversationId });
    assert.equal(await box(page).evaluate((e) => e === document.activeElement), true, "one may go on writing");
    await keys.press("Escape");
    await keys.press("r");
    await lastReply(page).getByLabel("2 of 2").waitFor();
    const figures = await settled({ page, server, provider, conversationId, generations: 2 });
    await keys.press("[");
    await lastReply(page).getByLabel("1 of 2").waitFor();
    await keys.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    await shot(page, "help");
    await keys.press("Escape");
    await keys.press("g");
    await keys.press("w");
    await page.getByRole("heading", { level: 1, name: "Workers" }).waitFor();
    await keys.press("g");
    await keys.press("c");
    await page.locator(".list li").first().waitFor();
    await keys.press("j");
    await page.getByRole("heading", { level: 1, name: "By keyboard" }).waitFor();
    await shot(page, "thread");
    return figures;
  },
};

const aloud = {
  name: "read aloud",
  play: async ({ browser, server, provider }) => {
    const page = await browser.open(server.url);
    const conversationId = await begin(page, "For the ear");
    await page.evaluate(() => {
      window.heard = [];
      const status = document.querySelector(".unseen[role=status]");
      new MutationObserver(() => window.heard.push(status.textContent)).observe(status, { childList: true, characterData: true, subtree: true });
    });
    await say(page, "Read it to me.");
    const figures = await settled({ page, server, provider, conversationId });
    await eventually("the end is told", async () => {
      const heard = await page.evaluate(() => window.heard);
      return /The reply is complete\.$/.test(heard.at(-1) ?? "") || heard;
    });
    return figures;
  },
};

/** What has the focus, and whether that can be seen. */
function focused(page) {
  return page.evaluate(() => {
    const element = document.activeElement;
    const style = getComputedStyle(element);
    return { text: element.textContent.trim() || element.getAttribute("aria-label"), outline: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 };
  });
}

export const scenes = [phone, huge, dark, keyboard, aloud];
