// What a person does on the page with useChat, step by step.
import assert from "node:assert/strict";
import { eventually } from "../lib/report.mjs";
import { squeeze, stored, textOf } from "../console/steps.mjs";

/** Opens a new chat and returns its page. */
export async function openChat({ browser, url }, id = "") {
  const page = await browser.open(`${url}/${id && `#${id}`}`);
  await page.getByLabel("Message").waitFor();
  return page;
}

export const chatOf = (page) => new URL(page.url()).hash.slice(1);
export const box = (page) => page.getByLabel("Message");
export const button = (page, name) => page.getByRole("button", { name, exact: true });
export const said = (page) => page.getByRole("article", { name: "user", exact: true });
export const replies = (page) => page.getByRole("article", { name: "assistant", exact: true });

/** Writes a message and sends it. */
export async function say(page, text) {
  await box(page).fill(text);
  await box(page).press("Enter");
}

/** What the last reply shows as text. */
export async function shownText(page) {
  return (await replies(page).last().locator(".text").allInnerTexts()).join("");
}

/** Waits until some of a reply is shown. */
export async function partly(page, least = 40) {
  await eventually("some of the reply is shown", async () => {
    const { length } = await shownText(page);
    return length >= least || `shown=${length}`;
  });
  return shownText(page);
}

/** Waits until nothing runs. */
export async function atRest(page) {
  await eventually("the page is at rest", async () => (await button(page, "Stop").isDisabled()) && (await button(page, "Send").isEnabled()));
}

/** Checks that what is shown is what is stored, once, and that the model was asked as often as it should be. */
export async function settled({ page, server, provider, generations = 1, turns = 1 }) {
  await page.getByRole("article").first().waitFor();
  await atRest(page);
  const entries = await stored(server, chatOf(page));
  assert.equal(entries.length, turns, "turns that are stored");
  assert.equal(entries[0].reply.status, "REPLY_STATUS_COMPLETE");
  const text = textOf(entries[0].reply);
  assert.ok(text.length > 0);
  await eventually("what is shown is what is stored", async () => squeeze(await shownText(page)) === squeeze(text));
  assert.equal(await said(page).count(), turns, "messages that are shown");
  assert.equal(await replies(page).count(), turns, "replies that are shown");
  const counts = await provider.counts();
  assert.equal(counts.generations, generations, "generations by the provider's count");
  return { generations: counts.generations, requests: counts.requests, bytes: Buffer.byteLength(text) };
}
