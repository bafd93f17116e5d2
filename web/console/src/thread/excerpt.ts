/** The most characters of one text that are drawn unasked: a page that lays out millions of them stands still for seconds. */
export const MOST_DRAWN = 100_000;

/** The part of a text that is drawn. */
export interface Excerpt {
  text: string;
  /** Which part of the text it is. */
  of: "all" | "first" | "latest";
}

/**
 * What is drawn of a text: its latest part while it grows, and its first once it has ended. The latest begins at the same place for
 * a while, so that what is drawn already does not move with each word.
 */
export function excerpt(text: string, growing: boolean): Excerpt {
  if (text.length <= MOST_DRAWN) return { text, of: "all" };
  if (!growing) return { text: text.slice(0, whole(text, MOST_DRAWN)), of: "first" };
  const step = MOST_DRAWN / 2;
  return { text: text.slice(whole(text, (Math.ceil(text.length / step) - 2) * step)), of: "latest" };
}

/** The place itself, or the one before if it is inside a pair that makes one character. */
function whole(text: string, at: number): number {
  return /[\udc00-\udfff]/.test(text.charAt(at)) && /[\ud800-\udbff]/.test(text.charAt(at - 1)) ? at - 1 : at;
}
