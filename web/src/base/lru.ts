// SPDX-License-Identifier: MIT
// A map that holds at most `capacity` entries and drops the least recently used one.

export class Lru<K, V> {
  private readonly map = new Map<K, V>();
  private latest: { readonly key: K; readonly value: V } | undefined; // last used: asked for again most often

  constructor(
    readonly capacity: number,
    private readonly onDrop: (key: K, value: V) => void = () => {},
  ) {}

  get size(): number {
    return this.map.size;
  }

  /** Get the value; counts as a use. */
  get(key: K): V | undefined {
    if (this.latest?.key === key) return this.latest.value;
    const value = this.map.get(key);
    if (value !== undefined) {
      this.map.delete(key);
      this.map.set(key, value);
      this.latest = { key, value };
    }
    return value;
  }

  /** Get the value without counting as a use. */
  peek(key: K): V | undefined {
    return this.map.get(key);
  }

  has(key: K): boolean {
    return this.map.has(key);
  }

  set(key: K, value: V): void {
    this.latest = { key, value };
    this.map.delete(key);
    this.map.set(key, value);
    while (this.map.size > this.capacity) {
      const [oldest, dropped] = this.map.entries().next().value as [K, V];
      this.map.delete(oldest);
      this.onDrop(oldest, dropped);
    }
  }

  delete(key: K): boolean {
    this.latest = undefined;
    return this.map.delete(key);
  }

  clear(): void {
    this.latest = undefined;
    this.map.clear();
  }

  values(): IterableIterator<V> {
    return this.map.values();
  }

  keys(): IterableIterator<K> {
    return this.map.keys();
  }
}
