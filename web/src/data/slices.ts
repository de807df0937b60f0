// SPDX-License-Identifier: MIT
// Call-stack slices of open lanes. The server leaves out slices too narrow to be visible, so the
// answer for a wide range can only be used for a part of it until the user zooms in much closer.
import * as api from "./api.ts";
import type { Ref } from "../base/epoch.ts";
import { Later } from "../base/later.ts";
import type { Slice } from "./model.ts";
import { pace } from "../base/pace.ts";
import { span, type Axis, type View } from "../base/scale.ts";

/** No request per frame while the view moves. */
const PAUSE_MS = 120;
/** A growing view is requested less often the longer its answers are: this time per slice. */
const GROWING_MS = 0.18;
/** After a failure the outline of the depth is shown for this time. */
const FAILED_MS = 3000;
/** Previous view, and the next one when following. */
const KEEP = 2;
/** Slices omitted from a wide answer are noticeable when the view is narrower by this factor. */
const CLOSER = 2;

interface Held {
  readonly axis: Axis;
  readonly from: number;
  readonly to: number;
  readonly slices: readonly Slice[] | undefined; // undefined: the server failed
  readonly narrowest: number; // narrowest span of the view for which it has enough slices; 0: any
  readonly revision: number;
}

interface Wish {
  readonly streams: readonly string[];
  readonly view: View;
  readonly revision: number;
}

export interface Shown {
  readonly slices: readonly Slice[];
  readonly complete: boolean; // none was too narrow to be listed
  readonly to: number; // end of the loaded range, where longer slices are cut off
}

export class SliceCache {
  private readonly held = new Map<string, Held[]>();
  private flying: { readonly wish: Wish; readonly controller: AbortController } | undefined;
  private wish: Wish | undefined;
  private readonly later = new Later(() => {
    if (this.wish && !this.coming(this.wish)) void this.fetch(this.wish);
  });
  private length = 0; // number of slices in the last answer
  private askedAt = -Infinity;

  constructor(private readonly trace: Ref, private readonly changed: () => void) {}

  /** The best data for the view; a wider answer is used while a closer request is pending. */
  get(stream: string, view: View): Shown | undefined {
    const best = this.covering(stream, view).filter((h) => h.slices)
      .sort((a, b) => a.narrowest - b.narrowest)[0];
    return best?.slices && { slices: best.slices, complete: best.narrowest === 0, to: best.to };
  }

  /** Is there nothing to wait for: loaded, or not available? */
  known(stream: string, view: View): boolean {
    return this.find(stream, view) !== undefined;
  }

  private covering(stream: string, view: View): Held[] {
    return (this.held.get(stream) ?? []).filter((h) =>
      h.axis === view.axis && h.from <= view.from && h.to >= view.to);
  }

  private find(stream: string, view: View): Held | undefined {
    return this.covering(stream, view).find((h) => span(view) >= h.narrowest);
  }

  /** Call each frame with what is in view, or will be. `open`: it may have grown with the trace. */
  want(streams: readonly string[], view: View, revision: number, open: boolean): void {
    const missing = streams.filter((s) => {
      const held = this.find(s, view);
      return !held || (open && held.revision !== revision);
    });
    this.wish = missing.length > 0 ? { streams: missing, view, revision } : undefined;
    // Wait for a suitable pending request: a new request per frame would never finish.
    if (!this.wish || this.coming(this.wish)) return;
    const grew = missing.every((s) => this.known(s, view));
    this.later.within(grew ? Math.max(PAUSE_MS, pace.wait, this.askedAt + GROWING_MS * this.length - performance.now()) : PAUSE_MS);
  }

  private coming({ streams, view }: Wish): boolean {
    const on = this.flying?.wish;
    if (on?.view.axis !== view.axis) return false;
    const pad = span(on.view);
    return on.view.from - pad <= view.from && on.view.to + pad >= view.to
      && span(view) >= pad / CLOSER && streams.every((s) => on.streams.includes(s));
  }

  get busy(): boolean {
    return this.later.pending || this.flying !== undefined;
  }

  clear(): void {
    this.later.cancel();
    this.wish = undefined;
    this.flying?.controller.abort();
    this.flying = undefined;
    this.held.clear();
  }

  private async fetch(wish: Wish): Promise<void> {
    const { streams, view, revision } = wish;
    this.askedAt = performance.now();
    this.flying?.controller.abort();
    const controller = new AbortController();
    this.flying = { wish, controller };
    // A view's width on each side, so that short pans find data.
    const pad = span(view);
    const { axis } = view;
    const range = { axis, from: view.from - pad, to: view.to + pad, revision };
    try {
      const got = await api.slices(this.trace, streams, axis, range.from, range.to, api.limited(controller.signal));
      this.length = [...got.values()].reduce((n, told) => n + told.slices.length, 0);
      for (const stream of streams) {
        const told = got.get(stream);
        this.keep(stream, {
          ...range, slices: told?.slices, narrowest: told?.truncated === true ? span(view) / CLOSER : 0,
        });
      }
    } catch {
      if (controller.signal.aborted) return;
      for (const stream of streams) this.keep(stream, { ...range, slices: undefined, narrowest: 0 });
      setTimeout(() => {
        for (const [stream, held] of this.held) this.held.set(stream, held.filter((h) => h.slices));
        this.changed();
      }, FAILED_MS);
    } finally {
      if (this.flying?.controller === controller) this.flying = undefined;
    }
    this.changed();
  }

  private keep(stream: string, held: Held): void {
    this.held.set(stream, [held, ...(this.held.get(stream) ?? []).slice(0, KEEP - 1)]);
  }
}
