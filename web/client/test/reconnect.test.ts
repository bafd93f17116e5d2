import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test, vi } from "vitest";
import { adviceFor, ErrorReason, type Event, newTurnId, type ReplySnapshot, RetryAdvice, type Surroundings, TurndError, turnIdFor } from "../src/index.js";
import { asUuid } from "../src/turn_id.js";
import { Bed } from "./bed.js";
import { abandoned, accepted, completed, conversation, heartbeat, replyA, replyB, restarted, started, text } from "./events.js";

const hello = text(replyA, "Hel", "lo");
const whole = { events: [accepted(), started(replyA), ...hello, completed(hello)] };

/** A status as turnd gives it. */
function refusal(code: Code, reason: string, retry: string, seconds = 0): ConnectError {
  const error = new ConnectError("refused for a test", code);
  const strings = (...pairs: [number, string][]) => pairs.reduce((w, [field, value]) => w.tag(field, 2).string(value), new BinaryWriter()).finish();
  const info = new BinaryWriter().raw(strings([1, reason], [2, "turnd"])).tag(3, 2).bytes(strings([1, "retry"], [2, retry])).finish();
  const details = [{ type: "google.rpc.ErrorInfo", value: info }];
  if (seconds > 0) {
    const delay = encode(DurationSchema, { seconds: BigInt(seconds) });
    details.push({ type: "google.rpc.RetryInfo", value: new BinaryWriter().tag(1, 2).bytes(delay).finish() });
  }
  const violation = new BinaryWriter().tag(1, 2).bytes(strings([1, "input.content"], [2, "say something"])).finish();
  details.push({ type: "google.rpc.BadRequest", value: violation }, { type: "google.rpc.QuotaFailure", value: violation }, { type: "x.Y", value: violation });
  error.details = details;
  return error;
}

const encode = <D extends DescMessage>(schema: D, init: MessageInitShape<D>) => toBinary(schema, create(schema, init));

test.each([
  ["SAME_ID_NOW", [0]],
  ["SAME_ID_AFTER_WAIT", [0.5 * 250]],
] as const)("advice %s is obeyed by the same turn again", async (advice, waits) => {
  const bed = new Bed([{ events: [], end: refusal(Code.Aborted, "CONFLICT", advice) }, whole]);
  expect(await bed.turnd().send({ conversationId: conversation, text: "hi" }).done).toMatchObject({ text: "Hello" });
  expect(bed.waits).toEqual(waits.filter((wait) => wait > 0));
  expect(new Set(bed.turns.map(({ input }) => input?.turnId)).size).toBe(1);
});

test.each(["NEW_ID", "REGENERATE", "DO_NOT_RETRY"])("advice %s sends nothing again", async (advice) => {
  const bed = new Bed([{ events: [], end: refusal(Code.FailedPrecondition, "WRONG_STATE", advice) }]);
  const failure = bed.turnd().send({ conversationId: conversation, text: "hi" }).done;
  await expect(failure).rejects.toMatchObject({ reason: ErrorReason.WRONG_STATE, advice: RetryAdvice[advice as keyof typeof RetryAdvice] });
  expect(bed.turns).toHaveLength(1);
});

test("the server's delay is kept to in full, with chance on top, and one that is too long is handed on", async () => {
  const busy = (seconds: number) => ({ events: [], end: refusal(Code.Unavailable, "STORE_UNAVAILABLE", "SAME_ID_AFTER_WAIT", seconds) });
  const bed = new Bed([busy(7), busy(61)]);
  const failure = bed.turnd().send({ conversationId: conversation, text: "hi" }).done;
  await expect(failure).rejects.toMatchObject({ retryDelay: 61_000, gaveUp: false });
  expect(bed.waits).toEqual([7_000, 125]);
});

test("tries double their wait up to a bound, and end", async () => {
  const bed = new Bed(Array.from({ length: 10 }, () => ({ events: [], end: new ConnectError("lost", Code.Unavailable) })));
  const onTrying = vi.fn();
  await expect(bed.turnd({ onTrying }).send({ conversationId: conversation, text: "hi" }).done).rejects.toMatchObject({ gaveUp: true });
  expect(bed.waits).toEqual([125, 250, 500, 1000, 2000, 4000, 4000, 4000]);
  expect(onTrying).toHaveBeenCalledTimes(8);
});

test("details are read, whatever else is among them", () => {
  const error = TurndError.from(refusal(Code.ResourceExhausted, "QUOTA_EXCEEDED", "SAME_ID_AFTER_WAIT", 90));
  expect(error).toMatchObject({
    reason: ErrorReason.QUOTA_EXCEEDED, advice: RetryAdvice.SAME_ID_AFTER_WAIT, retryDelay: 90_000, settles: false,
    fieldViolations: [{ field: "input.content", description: "say something" }],
    quotaViolations: [{ subject: "input.content", description: "say something" }],
  });
  expect(TurndError.from(refusal(Code.Aborted, "A_LATER_REASON", "A_LATER_ADVICE"))).toMatchObject({
    reason: ErrorReason.UNSPECIFIED, advice: RetryAdvice.SAME_ID_AFTER_WAIT,
  });
  expect(TurndError.from(new TypeError("fetch failed"))).toMatchObject({ advice: RetryAdvice.SAME_ID_AFTER_WAIT });
});

test("a failure without advice has that of its code", () => {
  const again = [Code.Canceled, Code.Unknown, Code.DeadlineExceeded, Code.Aborted, Code.Internal, Code.Unavailable];
  const codes = Object.values(Code).filter((code) => typeof code === "number");
  expect(codes.filter((code) => adviceFor(code) === RetryAdvice.SAME_ID_AFTER_WAIT)).toEqual(again);
});

/** Surroundings that a test moves. */
class World implements Surroundings {
  isOnline = true;
  private wakes = new Set<(cause: "online" | "visible") => void>();
  online = () => this.isOnline;
  onWake = (callback: (cause: "online" | "visible") => void) => {
    this.wakes.add(callback);
    return () => void this.wakes.delete(callback);
  };
  onStorage = () => () => {};

  get listeners(): number {
    return this.wakes.size;
  }

  wake(cause: "online" | "visible"): void {
    for (const callback of [...this.wakes]) callback(cause);
  }
}

test("nothing is tried without a network, and all at once when it is back", async () => {
  const world = new World();
  world.isOnline = false;
  const bed = new Bed([whole]);
  const reply = bed.turnd({ surroundings: world }).send({ conversationId: conversation, text: "hi" });
  expect(reply.snapshot).toMatchObject({ link: "offline", state: "sending" });
  await Promise.resolve();
  expect(bed.turns).toEqual([]);
  world.isOnline = true;
  world.wake("online");
  expect(await reply.done).toMatchObject({ text: "Hello" });
  expect(world.listeners).toBe(0);
});

test("a link from before the network changed is given up at once", async () => {
  const world = new World();
  const bed = new Bed([{ events: [accepted(), started(replyA), ...hello.slice(0, 2)], end: "hang" }, whole]);
  const reply = bed.turnd({ surroundings: world }).send({ conversationId: conversation, text: "hi" });
  let woken = false;
  for await (const { text } of reply) {
    if (text === "Hel" && !woken) world.wake("online");
    woken ||= text === "Hel";
  }
  expect(reply.snapshot.text).toBe("Hello");
  expect(bed.turns[1]?.cursor?.offset).toBe(4);
});

test("a page that is looked at again gives up a link only if that was silent for more than a heartbeat", async () => {
  const world = new World();
  const bed = new Bed([{ events: [accepted(), started(replyA), ...hello.slice(0, 2)], end: "hang" }, whole]);
  const reply = bed.turnd({ surroundings: world }).send({ conversationId: conversation, text: "hi" });
  let looked = false;
  for await (const { text } of reply) {
    if (text !== "Hel" || looked) continue;
    looked = true;
    world.wake("visible");
    await Promise.resolve();
    expect(reply.snapshot.link).toBe("open");
    bed.now += 20_000;
    world.wake("visible");
  }
  expect(reply.snapshot.text).toBe("Hello");
  expect(bed.turns).toHaveLength(2);
});

test("a signal that aborts leaves, and stops nothing", async () => {
  const page = new AbortController();
  const bed = new Bed([{ events: [accepted(), started(replyA), ...hello.slice(0, 2)], end: "hang" }]);
  const reply = bed.turnd().send({ conversationId: conversation, text: "hi", signal: page.signal });
  for await (const { text } of reply) if (text === "Hel") page.abort();
  await expect(reply.done).rejects.toMatchObject({ name: "AbortError" });
  expect(bed.cancels).toEqual([]);
});

test("a turn that is stopped before it could be sent is not sent", async () => {
  const world = new World();
  world.isOnline = false;
  const bed = new Bed([whole]);
  bed.missing = 2;
  const turnd = bed.turnd({ surroundings: world });
  const reply = turnd.send({ conversationId: conversation, text: "hi" });
  const stopped = reply.stop();
  world.isOnline = true;
  world.wake("online");
  expect(await stopped).toBeUndefined();
  expect(bed.cancels.map(({ target }) => target.value)).toEqual([reply.turnId, reply.turnId]);
  expect([bed.turns, turnd.inFlight()]).toEqual([[], []]);
});

test("a turn that is stopped before its answer came, and had arrived, is stopped and its end is read", async () => {
  const end = abandoned([], 6, RetryAdvice.REGENERATE);
  const bed = new Bed([{ events: [], end: "hang" }, { events: [accepted(), { ...end, replyId: replyA }] }]);
  bed.missing = 1;
  bed.runningReplyId = replyA;
  const reply = bed.turnd().send({ conversationId: conversation, text: "hi" });
  await vi.waitFor(() => expect(bed.turns).toHaveLength(1));
  expect(await reply.stop()).toMatchObject({ replyId: replyA });
  expect(await reply.done).toMatchObject({ state: "abandoned" });
  expect(bed.turns[1]?.input?.turnId).toBe(bed.turns[0]?.input?.turnId);
});

test("heartbeats are progress and no news", async () => {
  const beat = { events: [accepted(), started(replyA), heartbeat(replyA)] };
  const bed = new Bed([beat, beat, beat, whole]);
  const events = vi.fn();
  const reply = bed.turnd({ maxReconnects: 1 }).send({ conversationId: conversation, text: "hi", onEvent: ({ kind }) => events(kind.case) });
  await reply.done;
  expect(events.mock.calls.flat()).toEqual(["accepted", "started", "blockStarted", "delta", "delta", "blockCompleted", "completed"]);
});

test("another attempt is made only when it is asked for, and only where that is the advice", async () => {
  const lost = { events: [accepted(), started(replyA), ...hello, abandoned(hello, 1, RetryAdvice.SAME_ID_AFTER_WAIT, 2)] };
  const other = text(replyB, "Hi");
  const stopped = { events: [accepted(), restarted(replyA, replyB), started(replyB, 2), ...other, abandoned(other, 6, RetryAdvice.REGENERATE)] };
  const bed = new Bed([lost, stopped]);
  const turnd = bed.turnd();
  const reply = turnd.send({ conversationId: conversation, text: "hi" });
  expect((await reply.done).end).toMatchObject({ kind: "abandoned", retryDelay: 2000 });
  expect(turnd.inFlight()).toEqual([]);
  expect(await reply.again().done).toMatchObject({ state: "abandoned", text: "Hi" });
  expect(bed.waits).toEqual([2000]);
  expect(() => reply.again()).toThrow(TurndError);
  expect(new Set(bed.turns.map(({ input }) => input?.turnId)).size).toBe(1);
});

test("another attempt can be asked for at any moment after the end", async () => {
  const part = hello.slice(0, 2);
  const lost = { events: [accepted(), started(replyA), ...part, abandoned(part, 1, RetryAdvice.SAME_ID_AFTER_WAIT, 2)] };
  const other = text(replyB, "Hi");
  const next = { events: [accepted(), restarted(replyA, replyB), started(replyB, 2), ...other, completed(other)] };
  for (let moments = 0; moments < 12; moments++) {
    const bed = new Bed([lost, next]);
    const whole = await new Promise<ReplySnapshot>((resolve, reject) => {
      const again = async () => {
        for (let i = 0; i < moments; i++) await Promise.resolve();
        reply.again().done.then(resolve, reject);
      };
      const onEvent = ({ kind }: Event) => void (kind.case === "abandoned" && again());
      const reply = bed.turnd().send({ conversationId: conversation, text: "hi", onEvent });
    });
    expect(whole, `${moments} moments after it`).toMatchObject({ state: "completed", text: "Hi" });
    expect(bed.waits).toEqual([2000]);
  }
});

test("ids are the Go client's own", () => {
  expect(turnIdFor("slack:Ev1")).toBe("2d0e8793-f939-53bb-8f84-7930f04be0d7");
  expect(turnIdFor("ai-sdk:message:msg-ö-1")).toBe("3a27a00b-8735-5883-8e97-b0b411d8e026");
  expect(newTurnId(1_800_000_000_000)).toMatch(/^01a3185c-5000-7[0-9a-f]{3}-[89ab]/);
  expect(asUuid("0190B6A0-0000-7000-8000-0000000000A0")).toBe("0190b6a0-0000-7000-8000-0000000000a0");
  expect(asUuid("msg_1")).toBeUndefined();
  expect(() => new Bed([]).turnd().send({ turnId: "msg_1", text: "hi" })).toThrow(/turnIdFor/);
});
