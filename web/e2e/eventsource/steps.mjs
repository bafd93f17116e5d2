// What a person does on the page with an EventSource, and what the page asks for.
import assert from "node:assert/strict";
import { squeeze, stored, textOf } from "../console/steps.mjs";
import { eventually } from "../lib/report.mjs";

/** Opens a conversation, a new one without an id, and notes each connection of an EventSource. */
export async function openPage({ browser, url }, id = "") {
  const page = await browser.open("about:blank");
  await page.addInitScript(() => {
    window.opened = 0;
    window.EventSource = class extends EventSource {
      constructor(...args) {
        super(...args);
        window.opened++;
      }
    };
  });
  const asked = [];
  page.on("request", (request) => {
    if (request.resourceType() === "eventsource") asked.push(request);
  });
  await page.goto(`${url}/${id && `#${id}`}`);
  await page.waitForFunction(() => location.hash.length > 1);
  await page.waitForLoadState("networkidle");
  return { page, asked };
}

/** The id that the last connection went on from. */
export async function wentOnFrom(asked) {
  return (await asked.at(-1).allHeaders())["last-event-id"];
}

export const conversationOf = (page) => new URL(page.url()).hash.slice(1);
export const box = (page) => page.getByLabel("Message");
export const button = (page, name) => page.getByRole("button", { name, exact: true });
export const turnsOf = (page) => page.getByRole("article");
export const shownText = (page) => turnsOf(page).last().locator(".text").innerText();

export async function say(page, text) {
  await box(page).fill(text);
  await box(page).press("Enter");
}

/** Waits until some of a reply is shown. */
export async function partly(page, least = 40) {
  await eventually("some of the reply is shown", async () => {
    const { length } = await shownText(page);
    return length >= least || `shown=${length}`;
  });
  return shownText(page);
}

/** Checks that what is shown is what is stored, once, and that the model was asked as often as it should be. */
export async function settled({ page, server, provider, generations = 1, turns = 1 }) {
  await turnsOf(page).first().waitFor();
  await eventually("the reply is over", () => button(page, "Stop").isDisabled());
  const entries = await stored(server, conversationOf(page));
  assert.equal(entries.length, turns, "turns that are stored");
  assert.equal(entries[0].reply.status, "REPLY_STATUS_COMPLETE");
  const text = textOf(entries[0].reply);
  assert.ok(text.length > 0);
  assert.equal(squeeze(await shownText(page)), squeeze(text), "what is shown is what is stored");
  assert.equal(await turnsOf(page).count(), turns, "turns that are shown");
  const counts = await provider.counts();
  assert.equal(counts.generations, generations, "generations by the provider's count");
  return { generations: counts.generations, requests: counts.requests, bytes: Buffer.byteLength(text) };
}
