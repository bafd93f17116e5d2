// Storage may be full or forbidden; then what would be kept lives as long as the page.
const inPage = new Map<string, string>();

function area(kind: "session" | "local"): Storage | undefined {
  try {
    return kind === "session" ? window.sessionStorage : window.localStorage;
  } catch {
    return undefined;
  }
}

export function recall(kind: "session" | "local", name: string): string | undefined {
  try {
    return area(kind)?.getItem(name) ?? inPage.get(name);
  } catch {
    return inPage.get(name);
  }
}

/** Keeps a text, or forgets it if undefined. Tells whether it outlives the page. */
export function remember(kind: "session" | "local", name: string, text: string | undefined): boolean {
  if (text === undefined) inPage.delete(name);
  else inPage.set(name, text);
  try {
    const storage = area(kind);
    if (!storage) return false;
    if (text === undefined) storage.removeItem(name);
    else storage.setItem(name, text);
    return true;
  } catch {
    return false;
  }
}
