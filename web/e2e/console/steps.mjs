// What a person does in the console, step by step.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { eventually } from "../lib/report.mjs";

/** Begins a conversation by the dialog and returns its id. */
export async function begin(page, title, { model } = {}) {
  await page.getByRole("button", { name: "New" }).click();
  const dialog = page.getByRole("dialog", { name: "New conversation" });
  await dialog.getByLabel("Title").fill(title);
  if (model) await dialog.getByLabel("Model", { exact: true }).fill(model);
  await dialog.getByRole("button", { name: "Begin" }).click();
  await page.getByRole("heading", { level: 1, name: title }).waitFor();
  return new URL(page.url()).pathname.split("/")[2];
}

/** Writes a turn and sends it. */
export async function say(page, text) {
  await box(page).fill(text);
  await box(page).press("Enter");
}

export const box = (page) => page.getByLabel("Your turn");
export const turnsOf = (page) => page.getByRole("article");
export const lastReply = (page) => turnsOf(page).last().getByRole("group", { name: "Reply", exact: true });
export const prose = (page) => lastReply(page).locator(".prose");

/** Waits until the last reply is over and shown from what is stored. */
export async function whole(page) {
  await eventually("the reply is whole", async () => {
    const busy = await lastReply(page).getAttribute("aria-busy");
    const growing = await page.locator(".growing").count();
    return busy === "false" && growing === 0 ? true : `busy=${busy} growing=${growing}`;
  });
}

/** What the server has of the last turn, by its REST. */
export async function stored(server, conversationId, headers = {}) {
  const listed = await rest(server, `conversations/${conversationId}/turns`, headers);
  return listed.entries ?? [];
}

export async function rest(server, path, headers = {}) {
  const response = await fetch(`${server.url}/v1/${path}`, { headers });
  const body = await response.json();
  assert.ok(response.ok, JSON.stringify(body));
  return body;
}

export function textOf(reply) {
  return (reply.content ?? []).map((block) => block.text?.text ?? "").join("");
}

/** Checks that what is shown is what is stored, and that the model was asked as often as it should be. */
export async function settled({ page, server, provider, conversationId, generations = 1, turns = 1 }) {
  await whole(page);
  const entries = await stored(server, conversationId);
  assert.equal(entries.length, turns, "turns that are stored");
  const text = textOf(entries[0].reply);
  assert.ok(text.length > 0);
  await eventually("what is shown is what is stored", async () => squeeze(await prose(page).innerText()) === squeeze(text));
  const counts = await provider.counts();
  assert.equal(counts.generations, generations, "generations by the provider's count");
  return { generations: counts.generations, requests: counts.requests, bytes: Buffer.byteLength(text) };
}

export const squeeze = (text) => text.replace(/\s+/g, " ").trim();

/** A plan of words that stops half way until its gate is opened. */
export const gated = (gate = "mid", deltas = 60) => ({
  plan: { reply: { deltas, delta_bytes: 12, seed: 7 }, pace_ms: 2, steps: [{ at: `delta:${deltas / 2}`, do: "wait", gate }] },
});

/** Waits until some of a reply is shown. */
export async function partly(page, least = 40) {
  await eventually("some of the reply is shown", async () => {
    const shown = (await prose(page).allInnerTexts()).join("").length;
    return shown >= least || `shown=${shown}`;
  });
  return prose(page).innerText();
}

export const newId = () => randomUUID();
