import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test, vi } from "vitest";
import { newTurnId, type Reply, type StorageTrouble } from "../src/index.js";
import { type Answer, Bed } from "./bed.js";
import { accepted, completed, conversation, replyA, started, text } from "./events.js";
import { SafeStorage } from "../src/storage.js";
import { MemoryStorage } from "./memory_storage.js";

const hello = text(replyA, "Hel", "lo");
const whole = { events: [accepted(), started(replyA), ...hello, completed(hello)] };
const cut: Answer = { events: [accepted(), started(replyA), ...hello.slice(0, 2)], end: "hang" };
const key = `turnd:${conversation}`;

const until = async (reply: Reply, words: string) => {
  for await (const { text } of reply) if (text === words) break;
};

test("a turn is on record before it is sent, and off it at its end", async () => {
  const storage = new MemoryStorage();
  const bed = new Bed([whole]);
  const reply = bed.turnd({ storage }).send({ conversationId: conversation, text: "hi" });
  expect(bed.turns).toEqual([]);
  expect(JSON.parse(storage.getItem(key) ?? "")).toMatchObject({ turnId: reply.turnId, conversationId: conversation });
  await reply.done;
  expect(storage.length).toBe(0);
});

test("a storage that is full or forbidden is told of, and the turn is sent all the same", async () => {
  const full = new DOMException("no room", "QuotaExceededError");
  const forbidden = new DOMException("not here", "SecurityError");
  for (const [trouble, kind] of [[{ full }, "full"], [{ forbidden }, "forbidden"], [{ full: new Error("?") }, "failed"]] as const) {
    const storage = Object.assign(new MemoryStorage(), trouble);
    const onStorageTrouble = vi.fn<(trouble: StorageTrouble) => void>();
    const bed = new Bed([cut, whole]);
    const turnd = bed.turnd({ storage, onStorageTrouble });
    await until(turnd.send({ conversationId: conversation, text: "hi" }), "Hel");
    expect(onStorageTrouble.mock.calls[0]?.[0].kind).toBe(kind);
    const again = await turnd.resume(conversation);
    expect(await again?.done).toMatchObject({ text: "Hello" });
    expect(new Set(bed.turns.map(({ input }) => input?.turnId)).size).toBe(1);
    expect(turnd.inFlight()).toEqual([]);
  }
});

test("a client leaves the records alone of one whose prefix begins with its own", async () => {
  const storage = new MemoryStorage();
  const bed = new Bed([cut]);
  const ann = bed.turnd({ storage, storagePrefix: "turnd:ann:" });
  await until(ann.send({ conversationId: conversation, text: "hi" }), "Hel");
  const onRecordDropped = vi.fn();
  expect(bed.turnd({ storage, onRecordDropped }).inFlight()).toEqual([]);
  expect(onRecordDropped).not.toHaveBeenCalled();
  expect(ann.inFlight()).toMatchObject([{ conversationId: conversation }]);
});

test("a client forgets its records, sound or not, and those of no other", async () => {
  const storage = new MemoryStorage();
  const bed = new Bed([cut, cut]);
  const ann = bed.turnd({ storage, storagePrefix: "turnd:ann:" });
  const bob = bed.turnd({ storage });
  await until(ann.send({ conversationId: conversation, text: "hi" }), "Hel");
  await until(bob.send({ conversationId: conversation, text: "hi" }), "Hel");
  storage.setItem(`turnd:ann:${newTurnId()}`, "{");
  ann.forgetRecords();
  expect([...storage.entries.keys()]).toEqual([key]);
  expect(ann.inFlight()).toEqual([]);
  expect(bob.inFlight()).toHaveLength(1);
});

test("a reply that is still read writes no record again that was forgotten", async () => {
  const storage = new MemoryStorage();
  const bed = new Bed([cut, whole]);
  const turnd = bed.turnd({ storage, recordEvery: 0 });
  const reply = turnd.send({ conversationId: conversation, text: "hi" });
  await until(reply, "Hel");
  turnd.forgetRecords();
  expect(await reply.done).toMatchObject({ text: "Hello" });
  expect(storage.length).toBe(0);
});

test("a page goes on where it was itself, and not where another tab is", async () => {
  const storage = new MemoryStorage();
  const rest = [accepted(), started(replyA), ...hello];
  const bed = new Bed([cut, { events: rest, end: "hang" }, whole]);
  const here = bed.turnd({ storage });
  await until(here.send({ conversationId: conversation, text: "hi" }), "Hel");
  const there = await bed.turnd({ storage }).resume(conversation);
  if (there !== undefined) await until(there, "Hello");
  const again = await here.resume(conversation, { from: "cursor" });
  expect(await again?.done).toMatchObject({ text: "lo" });
  expect(bed.turns.at(-1)?.cursor).toMatchObject({ replyId: replyA, offset: 4 });
});

test("a page on which the mere mention of the storage fails keeps records in memory, and not without bound", () => {
  const onTrouble = vi.fn();
  const storage = new SafeStorage(() => {
    throw new DOMException("no", "SecurityError");
  }, onTrouble);
  for (let i = 0; i < 100; i++) storage.set(`turnd:${i}`, "x");
  expect(storage.get("turnd:99")).toBe("x");
  expect(storage.keys("turnd:")).toHaveLength(64);
  expect(onTrouble).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ operation: "open", kind: "forbidden" }));
});

test("a full storage does not leave an older turn behind for other tabs", async () => {
  const storage = new MemoryStorage();
  const bed = new Bed([cut, whole]);
  const turnd = bed.turnd({ storage });
  await until(turnd.send({ conversationId: conversation, text: "first" }), "Hel");
  storage.full = new DOMException("no room", "QuotaExceededError");
  const second = turnd.send({ conversationId: conversation, text: "second" });
  expect(storage.length).toBe(0);
  await second.done;
});

test.each([
  ["no JSON", "{"],
  ["no object", "7"],
  ["of another version", JSON.stringify({ version: 9 })],
  ["without an input", JSON.stringify({ version: 1, turnId: "t", conversationId: conversation, input: "%", draft: "", replyId: "", offset: 0, startTime: 1 })],
  ["with a bad offset", JSON.stringify({ version: 1, turnId: "t", conversationId: conversation, input: "", draft: "", replyId: "", offset: -1, startTime: 1 })],
])("a record that is %s is dropped", async (_, stored) => {
  const storage = new MemoryStorage();
  storage.setItem(key, stored);
  const onRecordDropped = vi.fn();
  const turnd = new Bed([]).turnd({ storage, onRecordDropped });
  expect(await turnd.resume(conversation)).toBeUndefined();
  expect(onRecordDropped).toHaveBeenCalledWith({ conversationId: conversation, why: "corrupt" });
  expect(storage.length).toBe(0);
});

test("a record that is stale, or from a future that a corrected clock took back, is dropped", async () => {
  for (const hours of [1.01, -1.01]) {
    const storage = new MemoryStorage();
    const bed = new Bed([cut]);
    await until(bed.turnd({ storage }).send({ conversationId: conversation, text: "hi" }), "Hel");
    bed.now += hours * 3_600_000;
    const onRecordDropped = vi.fn();
    expect(await bed.turnd({ storage, onRecordDropped }).resume(conversation)).toBeUndefined();
    expect(onRecordDropped).toHaveBeenCalledWith({ conversationId: conversation, why: "stale" });
    expect(bed.turns).toHaveLength(1);
  }
});

test("another tab that sends the same draft shares the turn, and one that watches follows it", async () => {
  const storage = new MemoryStorage();
  const bed = new Bed([cut, whole, whole]);
  let changed = (_: string | undefined) => {};
  const surroundings = {
    online: () => true,
    onWake: () => () => {},
    onStorage: (callback: typeof changed) => {
      changed = callback;
      return () => {};
    },
  };
  const watching = bed.turnd({ storage, surroundings });
  const found: Reply[] = [];
  watching.onSentElsewhere(conversation, (reply) => found.push(reply));
  const first = bed.turnd({ storage }).send({ conversationId: conversation, text: "hi", draft: "d1" });
  await until(first, "Hel");
  changed(key);
  changed(key);
  changed("something else");
  expect(await found[0]?.done).toMatchObject({ text: "Hello", turnId: first.turnId });
  expect(found).toHaveLength(1);
  storage.setItem(key, storage.getItem(key) ?? "");
  expect(bed.turns.map(({ input }) => input?.turnId)).toEqual([first.turnId, first.turnId]);
});

test("a page is not told of its own turns, and the record of a reply that takes long is kept", async () => {
  const storage = new MemoryStorage();
  const bed = new Bed([cut]);
  let changed = (_: string | undefined) => {};
  const surroundings = { online: () => true, onWake: () => () => {}, onStorage: (callback: typeof changed) => ((changed = callback), () => {}) };
  const turnd = bed.turnd({ storage, surroundings });
  const found = vi.fn();
  turnd.onSentElsewhere(conversation, found);
  const page = new AbortController();
  const reply = turnd.send({ conversationId: conversation, text: "hi", signal: page.signal });
  for await (const { text } of reply) {
    if (text !== "Hel") continue;
    changed(undefined);
    bed.now += 2 * 3_600_000;
    page.abort();
  }
  expect(found).not.toHaveBeenCalled();
  expect(JSON.parse(storage.getItem(key) ?? "{}")).toMatchObject({ offset: 4 });
});

test("what was said again after its end, or under another draft, is another turn", async () => {
  const bed = new Bed([whole, cut, whole]);
  const turnd = bed.turnd({ storage: new MemoryStorage() });
  const send = (draft: string) => turnd.send({ conversationId: conversation, text: "yes", draft });
  await send("").done;
  const second = send("");
  await until(second, "Hel");
  expect(send("").turnId).toBe(second.turnId);
  const third = send("another");
  await third.done;
  expect(new Set(bed.turns.map(({ input }) => input?.turnId)).size).toBe(3);
});

test("a refusal that is the last word clears the record, and one about who calls keeps it", async () => {
  const storage = new MemoryStorage();
  const bed = new Bed([{ events: [], end: new ConnectError("who?", Code.Unauthenticated) }]);
  await expect(bed.turnd({ storage }).send({ conversationId: conversation, text: "hi" }).done).rejects.toMatchObject({ code: Code.Unauthenticated });
  expect(storage.length).toBe(1);
});
