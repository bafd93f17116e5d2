/** The end of an id, which tells it from others: the beginnings of ids made in the same minute are alike. */
export function shortId(id: string): string {
  return id.slice(-8);
}
