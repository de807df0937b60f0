// SPDX-License-Identifier: MIT
// Totals of the whole trace, counted by the server; requested when the trace is opened and as it
// grows. Also the executed addresses that no program image contains.
import * as api from "./api.ts";
import type { Ref } from "../base/epoch.ts";
import { byUse, missingFrom, readMissing, type Missing, type MissingFile } from "./missing.ts";
import { ofLinux, type Stats, type Trace } from "./model.ts";
import { pace } from "../base/pace.ts";

/** A growing trace is counted again at this interval. */
const AGAIN_MS = 5000;
/** Maximum number of addresses checked for missing images. */
const MOST = 5000;

/** Kinds of events that are gone to one by one, and listed. */
export const EVENTS = "exception,event,software,gap,note";

/** Kinds of items in the list of events, as counted by the server. */
export const EVENT_GROUP = EVENTS.split(",").filter((k) => k !== "gap")
  .concat("return", "mode", "context", "trace-on");

export class Overview {
  stats: Stats | undefined;
  error = "";
  missing: readonly Missing[] | undefined; // undefined: not known (yet)
  files: readonly MissingFile[] = []; // mapped files that are missing
  readonly astray = new Map<string, { pc: string; places: number }>(); // by stream: the first address without an image
  more = false; // there are addresses that were not examined
  private asked = -Infinity;
  private revision = -1;
  private generation = -1;
  private readonly controller = new AbortController();
  private tell: () => void = () => {};
  /** Resolved once it was counted, or could not be. */
  readonly first = new Promise<void>((done) => { this.tell = done; });

  constructor(private readonly trace: Ref, private readonly counted: (stats: Stats) => void) {}

  stop(): void {
    this.controller.abort();
  }

  /** It was counted, and nothing executed has a name. */
  get nameless(): boolean {
    return this.stats !== undefined && this.stats.insns > 0 && this.stats.functions.every((f) => f.pc === "0x0");
  }

  /** Call each frame. Returns for how many ms to wait; 0: it is being counted, or is known. */
  want(trace: Trace): number {
    const anew = trace.generation !== this.generation;
    if (!anew && trace.revision === this.revision) return 0;
    const rest = anew ? 0 : Math.max(pace.wait, this.asked + AGAIN_MS - performance.now());
    if (rest > 0) return rest;
    this.asked = performance.now();
    this.revision = trace.revision;
    this.generation = trace.generation;
    if (anew) this.missing = undefined;
    void this.load(trace);
    return 0;
  }

  /** Sources of formatter frames from which no trace came: a core that was off, or a wrong trace ID. */
  silent(trace: Trace): Stats["silent"] {
    return trace.decodedBytes === 0 ? [] : this.stats?.silent.filter(({ name }) => !trace.streams.some((x) => x.name === name)) ?? [];
  }

  private async load(trace: Trace): Promise<void> {
    const { signal } = this.controller;
    try {
      const stats = await api.traceStats(this.trace.id, signal);
      this.stats = stats;
      this.tell();
      this.error = "";
      this.counted(stats);
      const count = (title: string, name: string): number =>
        stats.groups.find((g) => g.title === title)?.rows.find((r) => r.name === name)?.count ?? 0;
      if (count("Gaps", "no-image") + count("Events", "branch") + count("Events", "unknown") === 0) {
        this.missing = [];
        this.files = [];
        return;
      }
      // The setup of a Linux trace names files; that of a trace that could not be followed may too.
      const [found, images] = await Promise.all([
        api.find(this.trace, { event: "branch,unknown" }, { limit: MOST }, undefined, signal),
        ofLinux(trace) || stats.insns === 0 ? api.json(`${api.tracePath(this.trace.id)}/images`, signal) : [],
      ]);
      this.files = byUse(readMissing(images), found.hits);
      this.missing = missingFrom(found.hits, this.files);
      this.astray.clear();
      const places = new Set<string>();
      for (const { stream, pc } of found.hits) {
        const first = this.astray.get(stream) ?? { pc, places: 0 };
        if (!places.has(stream + pc)) first.places++;
        places.add(stream + pc);
        this.astray.set(stream, first);
      }
      this.more = found.more;
      this.counted(stats);
    } catch (error) {
      if (!signal.aborted) this.error = (error as Error).message;
      this.tell();
    }
  }
}
