// SPDX-License-Identifier: MIT
// Instructions of one stream by index, fetched in blocks; shared by the list and the timeline.
import * as api from "./api.ts";
import type { Ref } from "../base/epoch.ts";
import { Frame } from "../base/frames.ts";
import { Lru } from "../base/lru.ts";
import type { InsnRow } from "./model.ts";

export const BLOCK = 256;
const BLOCKS = 64;
const IN_FLIGHT = 3;
const RETRY_MS = 3000;
/** Of all streams so many requests begin in one frame: beginning one can take a millisecond of it. */
const BEGIN = 2;
const frame = new Frame();
let begun = 0;

type Loader = (from: number, count: number, signal: AbortSignal) => Promise<InsnRow[]>;

export class InsnCache {
  private readonly blocks = new Lru<number, readonly InsnRow[]>(BLOCKS);
  private readonly flying = new Map<number, AbortController>();
  private readonly failed = new Map<number, number>();
  private wanted: [number, number][] = []; // blocks, first and last, in this frame
  private readonly frame = new Frame(() => this.drop());

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

  /** Abort what nobody wanted in the frame that was drawn. */
  private drop(): void {
    for (const [block, controller] of this.flying) {
      if (this.wanted.some(([first, last]) => block >= first && block <= last)) continue;
      controller.abort();
      this.flying.delete(block);
    }
  }

  /** Ensure that [from, to) is loaded, as far as it is below `end`. Whoever shows it calls this each frame. */
  want(from: number, to: number, end: number): void {
    const first = Math.max(0, Math.floor(from / BLOCK));
    const last = Math.floor((Math.min(to, end) - 1) / BLOCK);
    if (this.frame.begins()) this.wanted = [];
    this.wanted.push([first, last]);
    for (let block = first; block <= last && this.flying.size < IN_FLIGHT; block++) {
      const have = this.blocks.peek(block);
      const full = Math.min(BLOCK, end - block * BLOCK);
      if ((have && have.length >= full) || this.flying.has(block)) continue;
      if (Date.now() - (this.failed.get(block) ?? -Infinity) < RETRY_MS) continue;
      if (frame.begins()) begun = 0;
      if (begun++ >= BEGIN) {
        this.changed();
        return;
      }
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
