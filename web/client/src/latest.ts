/** How many are kept. */
const most = 64;

/** Remembers the latest of many names. */
export class Latest implements Iterable<string> {
  private readonly names = new Set<string>();

  add(name: string): void {
    this.names.delete(name);
    this.names.add(name);
    const [oldest] = this.names;
    if (this.names.size > most && oldest !== undefined) this.names.delete(oldest);
  }

  has(name: string): boolean {
    return this.names.has(name);
  }

  [Symbol.iterator](): IterableIterator<string> {
    return this.names.values();
  }
}
