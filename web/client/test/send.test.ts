import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { DeliveryResult, DeliverySource } from "../src/index.js";
import { Bed } from "./bed.js";
import { accepted, completed, conversation, heartbeat, replyA, replyB, restarted, started, text } from "./events.js";

const hello = text(replyA, "Hel", "lo ", "wörld");

test("a turn is sent and its reply is read", async () => {
  const bed = new Bed([{ events: [accepted(), started(replyA), ...hello, completed(hello)] }]);
  const reply = bed.turnd().send({ conversationId: conversation, text: "hi" });
  const last = await reply.done;
  expect(last).toMatchObject({ state: "completed", text: "Hello wörld", replyId: replyA, generation: 1, link: "idle" });
  expect(bed.turns).toHaveLength(1);
});

test("a stream that ends without a terminal event is followed from the cursor (case C34)", async () => {
  const bed = new Bed([
    { events: [accepted(), started(replyA), ...hello.slice(0, 3)] },
    { events: [accepted(DeliveryResult.ATTACHED), started(replyA), heartbeat(replyA), ...hello], end: new ConnectError("gone", Code.Unavailable) },
    { events: [accepted(DeliveryResult.REPLAYED), started(replyA), completed(hello)] },
  ]);
  const reply = bed.turnd().send({ conversationId: conversation, text: "hi" });
  const seen: string[] = [];
  for await (const { text } of reply) seen.push(text);
  expect(seen.at(-1)).toBe("Hello wörld");
  expect(bed.turns.map(({ cursor }) => cursor?.offset)).toEqual([undefined, 7, 14]);
  expect(new Set(bed.turns.map(({ input }) => input?.turnId)).size).toBe(1);
  expect(bed.turns.map(({ input }) => input?.source)).toEqual([
    DeliverySource.UNSPECIFIED, DeliverySource.CLIENT_RETRY, DeliverySource.CLIENT_RETRY,
  ]);
  expect(reply.snapshot.delivery).toBe(DeliveryResult.NEW);
});

test("a restart drops what was shown", async () => {
  const other = text(replyB, "Good ", "day");
  const bed = new Bed([
    { events: [accepted(), started(replyA), ...hello.slice(0, 3)] },
    { events: [accepted(), restarted(replyA, replyB), started(replyB, 2), ...other, completed(other)] },
  ]);
  const last = await bed.turnd().send({ conversationId: conversation, text: "hi" }).done;
  expect(last).toMatchObject({ text: "Good day", replyId: replyB, attempt: 2, restarts: 1 });
});

test("leaving stops nothing, and iterating again goes on where it was", async () => {
  const bed = new Bed([
    { events: [accepted(), started(replyA), ...hello.slice(0, 2)], end: "hang" },
    { events: [accepted(), started(replyA), ...hello.slice(2), completed(hello)] },
  ]);
  const reply = bed.turnd().send({ conversationId: conversation, text: "hi" });
  for await (const { text } of reply) if (text === "Hel") break;
  for await (const _ of reply) void _;
  expect(reply.snapshot).toMatchObject({ text: "Hello wörld", state: "completed" });
  expect(bed.turns[1]?.cursor?.offset).toBe(4);
});

test("two sends of one composed message are one turn", async () => {
  const bed = new Bed([{ events: [accepted(), started(replyA), ...hello, completed(hello)] }]);
  const turnd = bed.turnd();
  const first = turnd.send({ text: "hi" });
  expect(turnd.send({ text: "hi" })).toBe(first);
  await first.done;
  expect(bed.turns).toHaveLength(1);
  expect(turnd.inFlight()).toEqual([]);
});
