// SPDX-License-Identifier: MIT
// Instructions of one stream by index, fetched in blocks; shared by the list and the timeline.
import * as api from "./api.ts";
import type { Ref } from "./epoch.ts";
import { Lru } from "./lru.ts";
import type { InsnRow } from "./model.ts";

export const BLOCK = 256;
const BLOCKS = 64;
const IN_FLIGHT = 3;
const RETRY_MS = 3000;

type Loader = (from: number, count: number, signal: AbortSignal) => Promise<InsnRow[]>;

export class InsnCache {
  private readonly blocks = new Lru<number, readonly InsnRow[]>(BLOCKS);
  private readonly flying = new Map<number, AbortController>();
  private readonly failed = new Map<number, number>();

  constructor(
    readonly trace: Ref,
    readonly stream: string,
    private readonly changed: () => void,
    private readonly load: Loader = (from, count, signal) =>
      api.insns(trace, stream, from, count, signal),
  ) {}

  get(insn: number): InsnRow | undefined {
    const block = Math.floor(insn / BLOCK);
    return this.blocks.get(block)?.[insn - block * BLOCK];
  }

  /** Ensure that [from, to) is loaded, as far as it is below `end`. */
  want(from: number, to: number, end: number): void {
    const first = Math.max(0, Math.floor(from / BLOCK));
    const last = Math.floor((Math.min(to, end) - 1) / BLOCK);
    for (const [block, controller] of this.flying) {
      if (block < first || block > last) {
        controller.abort();
        this.flying.delete(block);
      }
    }
    for (let block = first; block <= last && this.flying.size < IN_FLIGHT; block++) {
      const have = this.blocks.peek(block);
      const full = Math.min(BLOCK, end - block * BLOCK);
      if ((have && have.length >= full) || this.flying.has(block)) continue;
      if (Date.now() - (this.failed.get(block) ?? -Infinity) < RETRY_MS) continue;
      void this.fetch(block);
    }
  }

  get busy(): boolean {
    return this.flying.size > 0;
  }

  clear(): void {
    for (const controller of this.flying.values()) controller.abort();
    this.flying.clear();
    this.blocks.clear();
    this.failed.clear();
  }

  private async fetch(block: number): Promise<void> {
    const controller = new AbortController();
    this.flying.set(block, controller);
    try {
      const rows = await this.load(block * BLOCK, BLOCK, controller.signal);
      if (controller.signal.aborted) return;
      this.blocks.set(block, rows);
      this.failed.delete(block);
      // A block truncated by the live edge is requested again when the edge has moved.
      if (rows.length < BLOCK) this.failed.set(block, Date.now());
    } catch {
      if (controller.signal.aborted) return;
      this.failed.set(block, Date.now());
    } finally {
      if (this.flying.get(block) === controller) {
        this.flying.delete(block);
        this.changed();
      }
    }
  }
}
