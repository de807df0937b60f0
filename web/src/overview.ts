// SPDX-License-Identifier: MIT
// What the whole trace consists of: counted by the server, asked for when the trace is opened and as it
// grows; and the addresses that were run though no program image holds them.
import * as api from "./api.ts";
import type { Ref } from "./epoch.ts";
import { EVENTS } from "./find.ts";
import { byUse, missingFrom, readMissing, type Missing, type MissingFile } from "./missing.ts";
import { ofLinux, type Stats, type Trace } from "./model.ts";
import { pace } from "./pace.ts";

/** While a trace grows it is counted again so often. */
const AGAIN_MS = 5000;
/** Addresses that are looked at for missing images. */
const MOST = 5000;

/** Kinds of items in the list of events, as they are counted. */
export const EVENT_GROUP = EVENTS.split(",").filter((k) => k !== "gap")
  .concat("return", "mode", "context", "trace-on");

export class Overview {
  stats: Stats | undefined;
  error = "";
  missing: readonly Missing[] | undefined; // undefined: not known (yet)
  files: readonly MissingFile[] = []; // that were mapped, and are not there
  readonly astray = new Map<string, { pc: string; places: number }>(); // by stream: where it first went without an image
  more = false; // addresses that were not looked at
  private asked = -Infinity;
  private revision = -1;
  private generation = -1;
  private readonly controller = new AbortController();
  private tell: () => void = () => {};
  /** Once it was counted, or could not be. */
  readonly first = new Promise<void>((done) => { this.tell = done; });

  constructor(private readonly trace: Ref, private readonly counted: (stats: Stats) => void) {}

  stop(): void {
    this.controller.abort();
  }

  /** It was counted, and nothing that ran has a name. */
  get nameless(): boolean {
    return this.stats !== undefined && this.stats.insns > 0 && this.stats.functions.every((f) => f.pc === "0x0");
  }

  /** Say each frame what there is to be counted. For so many ms it is left alone; 0: it is counted, or is known. */
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
      // The setup of a trace of Linux names files; that of one of which nothing could be followed may, too.
      const [found, images] = await Promise.all([
        api.find(this.trace, { event: "branch,unknown" }, { limit: MOST }, signal),
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
