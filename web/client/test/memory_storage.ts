import type { RecordStorage } from "../src/index.js";

/** A storage as browsers have it, which can be made full or forbidden. */
export class MemoryStorage implements RecordStorage {
  readonly entries = new Map<string, string>();
  /** The error of each access. */
  forbidden: Error | undefined;
  /** The error of each write. */
  full: Error | undefined;

  get length(): number {
    if (this.forbidden !== undefined) throw this.forbidden;
    return this.entries.size;
  }

  key(index: number): string | null {
    return [...this.entries.keys()][index] ?? null;
  }

  getItem(key: string): string | null {
    if (this.forbidden !== undefined) throw this.forbidden;
    return this.entries.get(key) ?? null;
  }

  setItem(key: string, value: string): void {
    const fault = this.forbidden ?? this.full;
    if (fault !== undefined) throw fault;
    this.entries.set(key, value);
  }

  removeItem(key: string): void {
    if (this.forbidden !== undefined) throw this.forbidden;
    this.entries.delete(key);
  }
}
