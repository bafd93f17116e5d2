import { expect, test } from "vitest";
import { BlockKind, type Event, ReplyLog, TurndError } from "../src/index.js";
import { cutUtf8, utf8Length } from "../src/utf8.js";
import { abandoned, block, completed, lengthOf, replyA, replyB, restarted, started, text } from "./events.js";

/** Chance by a seed, so that a failure can be had again. */
function chanceOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const runes = ["a", "ö", "漢", "👋", "\u0000", " ", "}", "\u{10ffff}", "\u0301"];
const kinds = [BlockKind.TEXT, BlockKind.THINKING, BlockKind.TOOL_USE, BlockKind.REFUSAL];

type Chance = ReturnType<typeof chanceOf>;

function randomText(chance: Chance): string[] {
  return Array.from({ length: chance(12) }, () => runes[chance(runes.length)] ?? "");
}

/** The log of a random reply, cut in a random way. */
function cutLog(blocks: { kind: BlockKind; text: string[] }[], chance: Chance): Event[] {
  let log: Event[] = [];
  blocks.forEach(({ kind, text }, i) => {
    const pieces: string[] = [];
    for (const rune of text) {
      if (pieces.length > 0 && chance(2) === 0) pieces.push((pieces.pop() ?? "") + rune);
      else pieces.push(rune);
    }
    log = [...log, ...block(replyA, lengthOf(log), i, kind, pieces, kind === BlockKind.TOOL_USE ? "tool" : "")];
  });
  return log;
}

test("a reply is the same however its events are cut, repeated and overlapping (case C30)", () => {
  for (let seed = 1; seed <= 400; seed++) {
    const chance = chanceOf(seed);
    const blocks = Array.from({ length: 1 + chance(4) }, () => ({ kind: kinds[chance(4)] ?? BlockKind.TEXT, text: randomText(chance) }));
    const log = new ReplyLog();
    let handed = 0;
    while (log.end === undefined) {
      const cut = cutLog(blocks, chance);
      const begin = chance(cut.length);
      const first = cut.findLastIndex((event, i) => i <= begin && event.offset <= log.offset);
      const events = [started(replyA), ...cut.slice(Math.max(0, first), first + 1 + chance(cut.length)), completed(cut)];
      const known = () => lengthOf(cut) === log.offset;
      for (const event of events) {
        if (event.kind.case === "completed" && !known()) break;
        const fresh = log.apply(event);
        if (fresh !== undefined && fresh.nextOffset > fresh.offset) {
          expect(fresh.offset, `seed ${seed}`).toBe(handed);
          handed = fresh.nextOffset;
        }
      }
    }
    const got = log.snapshot().map(({ kind, text, done }) => ({ kind, text, done }));
    expect(got, `seed ${seed}`).toEqual(blocks.map(({ kind, text }) => ({ kind, text: text.join(""), done: true })));
  }
});

test("an event that leaves a gap, or is another reply's, changes nothing", () => {
  const log = new ReplyLog();
  const hello = text(replyA, "Hel", "lo");
  for (const event of [started(replyA), ...hello.slice(0, 2)]) log.apply(event);
  for (const wrong of [hello[3], started(replyB), ...text(replyB, "x")]) {
    expect(() => wrong && log.apply(wrong)).toThrow(TurndError);
  }
  expect(log.text).toBe("Hel");
  expect(log.cursor).toMatchObject({ replyId: replyA, offset: 4 });
});

test("a delta whose offsets do not fit its text, or that is known into a rune, is not taken", () => {
  const log = new ReplyLog(replyA, 2);
  const [begin, delta] = text(replyA, "ö");
  if (begin === undefined || delta === undefined) throw new Error("no events");
  expect(() => log.apply(delta)).toThrow(/inside a rune/);
  expect(() => new ReplyLog(replyA, 1).apply({ ...delta, nextOffset: 9 })).toThrow(/has 2 bytes/);
});

test("late events of a reply that was replaced mean nothing", () => {
  const log = new ReplyLog();
  const old = text(replyA, "old");
  const fresh = text(replyB, "new");
  for (const event of [...old, restarted(replyA, replyB), ...fresh, ...old, completed(old), restarted(replyA, replyB)]) log.apply(event);
  expect(log.text).toBe("new");
  expect(log.end).toBeUndefined();
});

test("a reply that was abandoned can go on, and one that is complete can't", () => {
  const log = new ReplyLog();
  const hello = text(replyA, "Hel", "lo");
  for (const event of [...hello.slice(0, 2), abandoned(hello.slice(0, 2), 1, 1)]) log.apply(event);
  expect(log.end?.kind.case).toBe("abandoned");
  for (const event of [started(replyA, 1), ...hello, completed(hello)]) log.apply(event);
  expect(log.end?.kind.case).toBe("completed");
  expect(log.apply(abandoned(hello, 1, 1))).toBeUndefined();
});

test("a continued reply keeps what was shown only where the new log takes over there", () => {
  const whole = new ReplyLog();
  for (const event of [...text(replyA, "Hello "), restarted(replyA, replyB, 0, true), ...text(replyB, "there")]) whole.apply(event);
  expect(whole.text).toBe("Hello there");
  const elsewhere = new ReplyLog();
  for (const event of text(replyA, "Hello ")) elsewhere.apply(event);
  expect(elsewhere.apply(restarted(replyA, replyB, 3, true))?.kind.value).toMatchObject({ continues: false });
  expect(elsewhere.text).toBe("");
});

test("bytes are counted as UTF-8 has them", () => {
  for (const words of ["", "abc", "naïve", "漢字", "👋🏽", "a\u0000b", "\u{10ffff}"]) {
    expect(utf8Length(words)).toBe(new TextEncoder().encode(words).length);
  }
  expect(cutUtf8("a👋b", 5)).toBe("b");
  expect(cutUtf8("a👋b", 3)).toBeUndefined();
  expect(cutUtf8("ab", 3)).toBeUndefined();
});
