/** What records are kept in: `localStorage`, `sessionStorage`, or anything that is used like them. */
export type RecordStorage = Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">;

/** What went wrong with a storage. */
export interface StorageTrouble {
  /** `full`: no room is left. `forbidden`: the browser or the user does not allow it. `failed`: anything else. */
  readonly kind: "full" | "forbidden" | "failed";
  readonly operation: "open" | "read" | "write" | "remove";
  readonly cause: unknown;
}

/** How many entries are kept in memory in place of a storage. */
const maxInMemory = 64;

/**
 * A storage that never throws. What the browser's own does not take is kept in memory, so that a turn is sent all the same
 * and only a reload of the page loses it; the trouble is told each time.
 */
export class SafeStorage {
  private readonly memory = new Map<string, string>();
  private opened: RecordStorage | undefined | "not yet" = "not yet";

  /** `open` may throw: in some browsers the mere mention of `localStorage` does. */
  constructor(
    private readonly open: () => RecordStorage | undefined,
    private readonly onTrouble: (trouble: StorageTrouble) => void = () => {},
  ) {}

  get(key: string): string | undefined {
    return this.memory.get(key) ?? this.attempt("read", (storage) => storage.getItem(key)) ?? undefined;
  }

  set(key: string, value: string): void {
    this.memory.delete(key);
    const stored = this.attempt("write", (storage) => {
      storage.setItem(key, value);
      return true;
    });
    if (stored === true) return;
    this.attempt("remove", (storage) => storage.removeItem(key));
    if (this.memory.size >= maxInMemory) {
      const [oldest] = this.memory.keys();
      if (oldest !== undefined) this.memory.delete(oldest);
    }
    this.memory.set(key, value);
  }

  remove(key: string): void {
    this.memory.delete(key);
    this.attempt("remove", (storage) => storage.removeItem(key));
  }

  /** The keys that begin so. */
  keys(prefix: string): string[] {
    const found = new Set(this.memory.keys());
    const length = this.attempt("read", (storage) => storage.length) ?? 0;
    for (let i = 0; i < length; i++) {
      const key = this.attempt("read", (storage) => storage.key(i));
      if (typeof key === "string") found.add(key);
    }
    return [...found].filter((key) => key.startsWith(prefix));
  }

  private attempt<T>(operation: StorageTrouble["operation"], use: (storage: RecordStorage) => T): T | undefined {
    const storage = this.storage();
    if (storage === undefined) return undefined;
    try {
      return use(storage);
    } catch (cause) {
      this.tell({ kind: kindOf(cause), operation, cause });
      return undefined;
    }
  }

  private storage(): RecordStorage | undefined {
    if (this.opened !== "not yet") return this.opened;
    try {
      this.opened = this.open();
    } catch (cause) {
      this.opened = undefined;
      this.tell({ kind: kindOf(cause), operation: "open", cause });
    }
    return this.opened;
  }

  private tell(trouble: StorageTrouble): void {
    try {
      this.onTrouble(trouble);
    } catch {
      return;
    }
  }
}

function kindOf(cause: unknown): StorageTrouble["kind"] {
  const name = typeof cause === "object" && cause !== null && "name" in cause ? cause.name : "";
  if (name === "QuotaExceededError" || name === "NS_ERROR_DOM_QUOTA_REACHED") return "full";
  return name === "SecurityError" || name === "NotAllowedError" ? "forbidden" : "failed";
}
