import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { ReplySnapshot } from "../src/api/turnd";
import { ReplyStatus, type TurnEntry, TurnEntrySchema } from "../src/api/wire";
import { isGone, standingOf } from "../src/thread/standing";

const entry = (status: ReplyStatus): TurnEntry => create(TurnEntrySchema, { turn: { turnId: "t" }, reply: { replyId: "r", status } });
const heard = (of: Partial<ReplySnapshot>) =>
  new Map([["t", { snapshot: { replyId: "r", state: "running", ...of } as ReplySnapshot, failure: undefined }]]);
const abandoned = { end: { kind: "abandoned" } as ReplySnapshot["end"], state: "abandoned" as const };
const failure = (reason: string) => ({ title: "", detail: "", reason, metadata: {} });

describe("what runs", () => {
  it("is what is listened to, and what was loaded as running", () => {
    expect(standingOf(heard({}), [], undefined)).toEqual({ busy: true, turnId: "t" });
    expect(standingOf(new Map(), [entry(ReplyStatus.IN_FLIGHT)], undefined)).toEqual({ busy: true, turnId: "t" });
    expect(standingOf(new Map(), [], { runningReplyId: "r" })).toEqual({ busy: true, turnId: undefined });
    expect(standingOf(new Map(), [entry(ReplyStatus.COMPLETE)], { runningReplyId: "" })).toEqual({ busy: false, turnId: undefined });
  });

  it("is no reply whose end was heard, whatever was loaded before", () => {
    const stale = [entry(ReplyStatus.IN_FLIGHT)];
    expect(standingOf(heard(abandoned), stale, { runningReplyId: "r" })).toEqual({ busy: false, turnId: undefined });
    expect(standingOf(heard(abandoned), stale, { runningReplyId: "next" })).toEqual({ busy: true, turnId: undefined });
  });
});

describe("a conversation", () => {
  it("is gone if it was deleted, or was shown and is nowhere any more", () => {
    expect(isGone([undefined, failure("CONVERSATION_DELETED")], false)).toBe(true);
    expect(isGone([failure("NOT_FOUND"), undefined], true)).toBe(true);
  });

  it("is not gone because it does not exist yet, or can't be reached", () => {
    expect(isGone([failure("NOT_FOUND"), failure("NOT_FOUND")], false)).toBe(false);
    expect(isGone([failure(""), failure("STORE_UNAVAILABLE")], true)).toBe(false);
    expect(isGone([undefined, undefined], true)).toBe(false);
  });
});
