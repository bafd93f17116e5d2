// Scenes of what a reply can hold beside text.
import assert from "node:assert/strict";
import { rest, stored, textOf } from "../console/steps.mjs";
import { startTurnd } from "../lib/servers.mjs";
import { startUseChat } from "../lib/pages.mjs";
import { atRest, button, chatOf, openChat, replies, say, settled } from "./steps.mjs";

const hostile = `<script>window.taken = 1</script><img src=x onerror="window.taken = 2"> <b>bold</b>`;

const kinds = {
  name: "thinking and tools",
  short: true,
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play(
      {
        times: 1,
        plan: {
          blocks: [{ thinking: "It depends on the weather.", signature: "s" }, { text: "Let me look. " }, { tool_use: { id: "t1", name: "weather", input: '{"city":"Oslo"}' } }],
          stop_reason: "tool_use",
        },
      },
      { plan: { blocks: [{ text: "It will rain at three." }] } },
    );
    const page = await openChat(bed);
    await say(page, "Will it rain?");
    await page.getByText("Thinking").click();
    await page.getByText("It depends on the weather.").waitFor();
    await page.getByLabel("Output of weather").fill("rain at 15:00");
    await shot(page, "asked");
    await page.reload();
    await page.getByLabel("Output of weather").fill("rain at 15:00");
    await button(page, "Answer").click();
    await replies(page).last().getByText("It will rain at three.").waitFor();
    await atRest(page);
    assert.equal(await replies(page).count(), 1, "the reply goes on in the message of the call");
    const [answered] = await stored(server, chatOf(page));
    assert.equal(answered.turn.content[0].toolResult.toolUseId, "t1");
    await shot(page, "answered");
    const { generations } = await provider.counts();
    assert.equal(generations, 2);
    return { generations };
  },
};

const markup = {
  name: "markup is text",
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play({ plan: { blocks: [{ thinking: hostile, signature: "s" }, { text: hostile }] } });
    const page = await openChat(bed);
    await say(page, hostile);
    const figures = await settled({ page, server, provider });
    await page.getByText("Thinking").click();
    const taken = await page.evaluate(() => window.taken ?? document.querySelectorAll("main img, main script, main b").length);
    assert.equal(taken, 0);
    await shot(page, "");
    return { ...figures, taken };
  },
};

const cut = { reply: { deltas: 40, delta_bytes: 12, seed: 5 }, steps: [{ at: "delta:20", do: "reset" }] };

const tryAgain = {
  name: "failed and tried again",
  play: async ({ server, provider, shot, ...bed }) => {
    await provider.play({ times: 1, plan: cut }, { plan: { blocks: [{ text: "Now it worked." }] } });
    const page = await openChat(bed);
    await say(page, "Try.");
    await page.getByRole("alert").waitFor();
    await shot(page, "failed");
    await button(page, "Try again").click();
    await replies(page).last().getByText("Now it worked.").waitFor();
    const figures = await settled({ page, server, provider, generations: 2 });
    await shot(page, "again");
    return figures;
  },
};

/** A page in front of a service that treats what is unclear in one way. */
async function withPolicy({ later, folder, provider }, policy) {
  const server = later(await startTurnd(folder, provider, { name: policy, args: ["--on-ambiguous", policy] }));
  const { url } = later(await startUseChat(server));
  return { server, url };
}

const restarted = {
  name: "another attempt takes over",
  play: async ({ provider, shot, ...bed }) => {
    await provider.play({ times: 1, plan: cut }, { plan: { blocks: [{ text: "From the beginning, and to the end." }] } });
    const { server, url } = await withPolicy({ ...bed, provider }, "retry");
    const page = await openChat({ ...bed, url });
    await say(page, "Whatever it costs.");
    await page.getByText("Another attempt took over here.").waitFor();
    const figures = await settled({ page, server, provider, generations: 2 });
    await shot(page, "");
    return figures;
  },
};

const held = {
  name: "held",
  short: true,
  play: async ({ provider, shot, ...bed }) => {
    await provider.play({ plan: cut });
    const { server, url } = await withPolicy({ ...bed, provider }, "hold");
    const page = await openChat({ ...bed, url });
    await say(page, "Only if you are sure.");
    const note = page.getByText("Nobody knows yet what came of this reply.");
    await note.waitFor();
    await atRest(page);
    await shot(page, "");
    await button(page, "Look again").click();
    await atRest(page);
    await note.waitFor();
    await page.reload();
    await note.waitFor();
    await atRest(page);
    await settle(server, chatOf(page), " It was done.");
    await button(page, "Look again").click();
    await replies(page).last().getByText(/It was done\.$/).waitFor();
    const figures = await settled({ page, server, provider });
    await shot(page, "settled");
    return figures;
  },
};

/** Completes the held reply as an operator does. */
async function settle(server, conversation, more) {
  const [{ reply }] = await stored(server, conversation);
  const { replies } = await rest(server, "operator/held-replies");
  assert.equal(replies.length, 1);
  const [{ conversationId, replyId, epoch }] = replies;
  const response = await fetch(`${server.url}/v1/operator/conversations/${conversationId}/replies/${replyId}:complete`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ expectedEpoch: epoch, content: [{ text: { text: textOf(reply) + more } }] }),
  });
  assert.ok(response.ok, await response.text());
}

export const scenes = [kinds, markup, tryAgain, restarted, held];
