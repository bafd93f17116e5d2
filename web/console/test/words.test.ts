import { describe, expect, it } from "vitest";
import { parseFilter, parseLabels } from "../src/conversations/names";
import { parse, paths } from "../src/app/router";
import { excerpt, MOST_DRAWN } from "../src/thread/excerpt";
import { pretty } from "../src/thread/ReplyBlocks";
import { pieces } from "../src/thread/Prose";
import { percent } from "../src/words/amounts";
import { span } from "../src/words/times";

const id = "0d7a6a6e-58a5-4d2c-a5c5-0d1a64d0a001";

describe("addresses", () => {
  it("leads back to the page that it was made for", () => {
    expect(parse(paths.conversation(id, "x y"))).toEqual({ page: "conversation", conversationId: id, at: "x y" });
    expect(parse(paths.ledger(id, "t&u"))).toEqual({ page: "ledger", conversationId: id, turnId: "t&u" });
    expect(parse(paths.retries("7d"))).toEqual({ page: "retries", range: "7d" });
    for (const page of ["conversations", "held", "workers", "identity"] as const) expect(parse(paths[page]())).toEqual({ page });
  });

  it("knows none but its own", () => {
    for (const path of ["/c", "/c/", "/c/x/y", "/operator", "/operator/x", "/operator/held/x", "/identity/x", "/x"]) {
      expect(parse(path).page, path).toBe("missing");
    }
    expect(parse("/c/%E0%A4%A")).toEqual({ page: "conversation", conversationId: "%E0%A4%A", at: "" });
  });
});

describe("what was written", () => {
  it("is cut at code fences and nowhere else", () => {
    expect(pieces("a\n\n```go\nx := 1\n```\nb")).toEqual([
      { code: false, text: "a", language: "" },
      { code: true, text: "x := 1", language: "go" },
      { code: false, text: "b", language: "" },
    ]);
    expect(pieces("````\n```\ninside\n```\n````")).toEqual([{ code: true, text: "```\ninside\n```", language: "" }]);
    expect(pieces("inline ``` is none")).toEqual([{ code: false, text: "inline ``` is none", language: "" }]);
    expect(pieces("")).toEqual([]);
  });

  it("is code to its end while a fence is open, as in a reply that grows", () => {
    expect(pieces("so:\n```\nx")).toEqual([
      { code: false, text: "so:", language: "" },
      { code: true, text: "x", language: "" },
    ]);
  });

  it("is set out if it is JSON, unless that would change a number", () => {
    expect(pretty('{"a":1}')).toBe('{\n  "a": 1\n}');
    expect(pretty('{"a":12345678901234567890}')).toBe('{"a":12345678901234567890}');
    expect(pretty('{"a":')).toBe('{"a":');
  });
});

describe("what is drawn of a text", () => {
  it("is all of it up to a bound, and its first part beyond", () => {
    const most = "a".repeat(MOST_DRAWN);
    expect(excerpt(most, false)).toEqual({ text: most, of: "all" });
    expect(excerpt(most, true)).toEqual({ text: most, of: "all" });
    expect(excerpt(`${most}b`, false)).toEqual({ text: most, of: "first" });
  });

  it("is its latest part while it grows, from a place that seldom moves", () => {
    const begins = new Set<number>();
    for (let length = MOST_DRAWN + 1; length <= 2 * MOST_DRAWN; length += 997) {
      const { text, of } = excerpt("a".repeat(length - 1) + "z", true);
      expect([of, text.at(-1), text.length <= MOST_DRAWN, text.length >= MOST_DRAWN / 2]).toEqual(["latest", "z", true, true]);
      begins.add(length - text.length);
    }
    expect([...begins]).toEqual([MOST_DRAWN / 2, MOST_DRAWN]);
  });

  it("never begins or ends inside a character", () => {
    const odd = `a${"\u{1f600}".repeat(MOST_DRAWN)}`;
    expect(() => encodeURIComponent(excerpt(odd, false).text)).not.toThrow();
    expect(() => encodeURIComponent(excerpt(odd, true).text)).not.toThrow();
  });
});

describe("what was typed", () => {
  it("finds by words and labels", () => {
    expect(parseFilter("Tea team=red  =x")).toEqual({ words: ["tea", "=x"], labels: { team: "red" } });
  });

  it("is labels, one on a line", () => {
    expect(parseLabels("a=1\n b = x=y \n\nflag")).toEqual({ a: "1", b: "x=y", flag: "" });
  });
});

describe("figures", () => {
  it("are short", () => {
    expect([0, 999, 1500, 61_000, 3_600_000, 90_000_000].map(span)).toEqual(["0 ms", "999 ms", "1.5 s", "1 min 1 s", "1 h", "1 d 1 h"]);
    expect([0, 0.004, 0.05, 0.077, 0.5].map(percent)).toEqual(["0 %", "0.4 %", "5 %", "7.7 %", "50 %"]);
  });
});
