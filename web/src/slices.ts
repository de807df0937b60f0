// SPDX-License-Identifier: MIT
// Exact call-stack slices of open lanes, for views short enough to have few of them.
import * as api from "./api.ts";
import type { Slice } from "./model.ts";
import { span, type Axis, type View } from "./scale.ts";

/** Wider views show the outline of the depth instead. */
const MOST_UNITS = 262144;
/** A view that moves is not asked for at every frame. */
const PAUSE_MS = 120;
/** After a failure the outline stands in for so long. */
const FAILED_MS = 3000;
/** What was in view, and what comes next when following. */
const KEEP = 2;

interface Held {
  readonly axis: Axis;
  readonly from: number;
  readonly to: number;
  readonly slices: readonly Slice[] | undefined; // undefined: too many, or the server failed
  readonly revision: number;
}

interface Wish {
  readonly streams: readonly string[];
  readonly view: View;
  readonly revision: number;
}

export class SliceCache {
  private readonly held = new Map<string, Held[]>();
  private readonly flying = new Map<string, AbortController>();
  private wish: Wish | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly trace: string, private readonly changed: () => void) {}

  /** The slices that cover the view, if they are here. */
  get(stream: string, view: View): readonly Slice[] | undefined {
    return this.find(stream, view)?.slices;
  }

  /** Is there nothing to wait for: they are here, or will not come? */
  known(stream: string, view: View): boolean {
    return span(view) > MOST_UNITS || this.find(stream, view) !== undefined;
  }

  private find(stream: string, view: View): Held | undefined {
    if (span(view) > MOST_UNITS) return undefined;
    return this.held.get(stream)?.find((h) =>
      h.axis === view.axis && h.from <= view.from && h.to >= view.to);
  }

  /** Say each frame what is in view, or will be. `open`: it may have grown with the trace. */
  want(streams: readonly string[], view: View, revision: number, open: boolean): void {
    const missing = span(view) > MOST_UNITS ? [] : streams.filter((s) => {
      const held = this.find(s, view);
      return !held || (open && held.revision !== revision);
    });
    this.wish = missing.length > 0 ? { streams: missing, view, revision } : undefined;
    if (!this.wish || this.timer !== undefined) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      const wish = this.wish;
      for (const stream of wish?.streams ?? []) void this.fetch(stream, wish!.view, wish!.revision);
    }, PAUSE_MS);
  }

  clear(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.wish = undefined;
    for (const controller of this.flying.values()) controller.abort();
    this.flying.clear();
    this.held.clear();
  }

  private async fetch(stream: string, view: View, revision: number): Promise<void> {
    this.flying.get(stream)?.abort();
    const controller = new AbortController();
    this.flying.set(stream, controller);
    // A view's width on each side, so that short pans find them here.
    const pad = span(view);
    let range: readonly [number, number] = [view.from - pad, view.to + pad];
    try {
      let got = await this.load(stream, view.axis, range, controller.signal);
      if (got.truncated) {
        range = [view.from, view.to];
        got = await this.load(stream, view.axis, range, controller.signal);
      }
      // Too many for the server to list: an outline is more honest than a part of them.
      this.keep(stream, view.axis, range, got.truncated ? undefined : got.slices, revision);
    } catch {
      if (controller.signal.aborted) return;
      this.keep(stream, view.axis, range, undefined, revision);
      setTimeout(() => {
        this.held.set(stream, (this.held.get(stream) ?? []).filter((h) => h.slices));
        this.changed();
      }, FAILED_MS);
    } finally {
      if (this.flying.get(stream) === controller) this.flying.delete(stream);
    }
    this.changed();
  }

  private load(
    stream: string, axis: Axis, [from, to]: readonly [number, number], signal: AbortSignal,
  ): Promise<{ slices: Slice[]; truncated: boolean }> {
    return api.slices(this.trace, stream, axis, Math.max(0, Math.floor(from)),
      Math.max(1, Math.ceil(to)), signal);
  }

  private keep(
    stream: string, axis: Axis, [from, to]: readonly [number, number],
    slices: readonly Slice[] | undefined, revision: number,
  ): void {
    const before = (this.held.get(stream) ?? []).slice(0, KEEP - 1);
    this.held.set(stream, [{ axis, from, to, slices, revision }, ...before]);
  }
}
