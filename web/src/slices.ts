// SPDX-License-Identifier: MIT
// Exact call-stack slices of open lanes, asked for when the view has come to rest on a range
// short enough to have few of them.
import * as api from "./api.ts";
import type { Slice } from "./model.ts";
import { span, type Axis, type View } from "./scale.ts";

/** Wider views show the outline of the depth instead. */
const MOST_UNITS = 262144;
const REST_MS = 120;

interface Held {
  readonly axis: Axis;
  readonly from: number;
  readonly to: number;
  readonly slices: readonly Slice[];
  readonly revision: number;
}

export class SliceCache {
  private readonly held = new Map<string, Held>();
  private readonly flying = new Map<string, AbortController>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly trace: string, private readonly changed: () => void) {}

  /** The slices that cover the view, if they are here. */
  get(stream: string, view: View): readonly Slice[] | undefined {
    const held = this.held.get(stream);
    if (!held || held.axis !== view.axis || span(view) > MOST_UNITS) return undefined;
    return held.from <= view.from && held.to >= view.to ? held.slices : undefined;
  }

  /** Say each frame what is in view; once that has rested, what is missing is fetched. */
  want(streams: readonly string[], view: View, revision: number, open: boolean): void {
    clearTimeout(this.timer);
    if (span(view) > MOST_UNITS) return;
    const missing = streams.filter((s) => !this.get(s, view)
      || (open && this.held.get(s)?.revision !== revision));
    if (missing.length === 0) return;
    this.timer = setTimeout(() => {
      for (const stream of missing) void this.fetch(stream, view, revision);
    }, REST_MS);
  }

  clear(): void {
    clearTimeout(this.timer);
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
    const from = Math.max(0, Math.floor(view.from - pad));
    const to = Math.ceil(view.to + pad);
    try {
      let got = await api.slices(this.trace, stream, view.axis, from, to, controller.signal);
      let range = [from, to];
      if (got.truncated) {
        range = [Math.max(0, Math.floor(view.from)), Math.ceil(view.to)];
        got = await api.slices(this.trace, stream, view.axis, range[0]!, range[1]!, controller.signal);
      }
      if (controller.signal.aborted) return;
      // Too many for the server to list: an outline is more honest than a part of them.
      const slices = got.truncated ? undefined : got.slices;
      if (slices) {
        this.held.set(stream, {
          axis: view.axis, from: range[0] === 0 ? -Infinity : range[0]!, to: range[1]!, slices,
          revision,
        });
        this.changed();
      }
    } catch {
      // The outline of the depth stays; the next rest tries again.
    } finally {
      if (this.flying.get(stream) === controller) this.flying.delete(stream);
    }
  }
}
