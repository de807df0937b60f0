// SPDX-License-Identifier: MIT
// Data that lanes show in addition to tiles. It is fetched for all lanes that need it at once, for
// the view and one view width on each side, and kept until the view leaves that range or is zoomed
// in much closer.
import type * as Json from "../../gen/answers.ts";
import * as api from "./api.ts";
import { epochOn, since, type Ref } from "../base/epoch.ts";
import { bytes, modeText } from "../base/format.ts";
import { Frame } from "../base/frames.ts";
import { Later } from "../base/later.ts";
import { pace } from "../base/pace.ts";
import { span, type View } from "../base/scale.ts";

/** No request per frame while the view moves. */
const PAUSE_MS = 120;
const FAILED_MS = 3000;
/** An answer for a wide view is too coarse for one that is narrower by this factor. */
const CLOSER = 2;

interface Wish {
  readonly streams: readonly string[];
  readonly view: View;
  readonly revision: number;
}

interface Held<T> {
  readonly view: View; // that it was requested for
  readonly from: number;
  readonly to: number;
  readonly revision: number;
  readonly data: T | undefined; // undefined: the server failed
}

export type Reader<T> = (told: unknown, epoch: bigint) => T;

export class LaneData<T> {
  private readonly held = new Map<string, Held<T>>();
  private flying: { readonly wish: Wish; readonly controller: AbortController } | undefined;
  private wish: Wish | undefined;
  private readonly frame = new Frame();
  private readonly later = new Later(() => {
    if (this.wish && !this.coming(this.wish)) void this.fetch(this.wish);
  });

  constructor(
    private readonly trace: Ref, private readonly kind: string, private readonly arguments_: () => string,
    private readonly read: Reader<T>, private readonly changed: () => void,
    /** Minimum units on each side: what begins there may extend into the view. */
    private readonly reach = 0,
  ) {}

  /** The best data for the view; coarser data is used while a finer request is pending. */
  get(stream: string, view: View): T | undefined {
    const held = this.held.get(stream);
    return held && held.view.axis === view.axis && held.from < view.to && held.to > view.from ? held.data : undefined;
  }

  /**
   * Call each frame with what is in view. Whoever shows it calls: what is wanted in one frame adds up. `open`: it may
   * have grown with the trace.
   */
  want(streams: readonly string[], view: View, revision: number, open: boolean): void {
    const before = this.frame.begins() ? [] : this.wish?.streams ?? [];
    const missing = [...new Set([...before, ...streams.filter((s) => !this.fits(this.held.get(s), view, revision, open))])];
    this.wish = missing.length > 0 ? { streams: missing, view, revision } : undefined;
    if (!this.wish || this.coming(this.wish)) return;
    const grew = missing.every((s) => this.fits(this.held.get(s), view, revision, false));
    this.later.within(grew ? Math.max(PAUSE_MS, pace.wait) : PAUSE_MS);
  }

  /** Is a request pending? */
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

  private fits(held: Held<T> | undefined, view: View, revision: number, open: boolean): boolean {
    return held !== undefined && held.view.axis === view.axis && held.from <= view.from && held.to >= view.to
      && span(view) * CLOSER >= span(held.view) && span(view) <= span(held.view) * CLOSER * 1.5
      && (!open || held.revision === revision);
  }

  private coming({ streams, view }: Wish): boolean {
    const on = this.flying?.wish;
    if (on?.view.axis !== view.axis) return false;
    const pad = this.pad(on.view);
    return on.view.from - pad <= view.from && on.view.to + pad >= view.to
      && span(view) * CLOSER >= span(on.view) && streams.every((s) => on.streams.includes(s));
  }

  private pad(view: View): number {
    return Math.max(span(view), this.reach);
  }

  private async fetch(wish: Wish): Promise<void> {
    const { streams, view, revision } = wish;
    this.flying?.controller.abort();
    const controller = new AbortController();
    this.flying = { wish, controller };
    const pad = this.pad(view);
    const [from, to] = [Math.max(0, view.from - pad), view.to + pad];
    const epoch = epochOn(this.trace, view.axis);
    const keep = (stream: string, data: T | undefined): void => {
      this.held.set(stream, { view, from: view.from - pad, to, revision, data });
    };
    try {
      const told = await api.ofStreams(this.trace, this.kind, streams, view.axis, from, to, this.arguments_(), api.limited(controller.signal));
      for (const stream of streams) {
        const one = told[stream];
        keep(stream, one === undefined ? undefined : this.read(one, epoch));
      }
    } catch {
      if (controller.signal.aborted) return;
      for (const stream of streams) keep(stream, undefined);
      setTimeout(() => {
        for (const [stream, held] of this.held) if (!held.data) this.held.delete(stream);
        this.changed();
      }, FAILED_MS);
    } finally {
      if (this.flying?.controller === controller) this.flying = undefined;
    }
    this.changed();
  }
}

// ---- log ---------------------------------------------------------------------------------------

export interface LogEntry {
  readonly at: number; // position
  readonly last: number;
  readonly time: number | undefined;
  readonly source: string;
  readonly channel: string;
  readonly text: string; // of a value with its size: "0x12ab (2 B)"
  readonly isText: boolean;
}

export interface Log {
  readonly entries: readonly LogEntry[];
  readonly more: boolean;
}

const rows = <T>(value: readonly T[] | undefined): readonly T[] => (Array.isArray(value) ? value as readonly T[] : []);
const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** A number in the form that the setup gives its port, or the payload. */
function valueText(e: Json.LogEntry): string {
  const size = text(e.value).startsWith("0x") ? Number(e.size ?? 0) : 0;
  return size > 0 ? `${text(e.value)} (${bytes(size)})` : text(e.value);
}

/** What a DWT reports, in the words of the page: "write ticks = 0x1, SysTick_Handler". */
export function hardwareText(told: string): string {
  const sample = /^pc ([0-9a-f]+)(?: <(.+)>)?$/.exec(told);
  if (sample) return `at ${sample[2] ?? `0x${sample[1]!.replace(/^0+(?=.)/, "")}`}`;
  const data = /^data (\w+) \d+ (\S+) (\S+) (\S+) (.*?)(?: <(.+)>)?$/.exec(told);
  if (!data) return told;
  const [, access, , value, pc, name, fn] = data as unknown as string[];
  const known = name!.includes(" = ") || value === "-" ? name! : `${name} = 0x${value!.replace(/^0+(?=.)/, "")}`;
  const place = fn ?? (/^0*-?$/.test(pc!) ? "" : `0x${pc!.replace(/^0+/, "")}`);
  return `${access} ${known}${place && `, ${place}`}`;
}

/** `epoch` is that of times, on either axis. Text is only what a program wrote as such. */
export function readLog(told: unknown, epoch: bigint): Log {
  const o = told as Json.LogReply;
  return {
    more: o.more === true,
    entries: rows(o.entries).map((e) => ({
      at: Number(e.at), last: Number(e.last), time: e.time === undefined ? undefined : since(epoch, e.time),
      source: text(e.source), channel: text(e.channel),
      text: e.text === undefined ? valueText(e) : e.source === "dwt" ? hardwareText(text(e.text)) : text(e.text),
      isText: e.text !== undefined && e.source !== "dwt",
    })),
  };
}

/** "uart", "itm 3". */
export function sourceName(e: LogEntry): string {
  return e.channel === "" ? e.source : `${e.source} ${e.channel}`;
}

// ---- states ------------------------------------------------------------------------------------

export interface StateRun {
  readonly from: number;
  readonly to: number;
  readonly mode: string;
  readonly context: string; // "0x100", or a Linux number in decimal; "" if not known
  readonly name: string; // display name, "" if there is none
  readonly vmid: string;
  readonly mixed: boolean;
}

export interface States {
  readonly runs: readonly StateRun[];
  readonly sampled: boolean;
}

/** `decimal`: contexts are Linux processes. */
export function readStates(told: unknown, epoch: bigint, decimal = false): States {
  const o = told as Json.StatesReply;
  const context = (of: string): string => (decimal && of !== "" ? String(BigInt(of)) : of);
  return {
    sampled: o.sampled === true,
    runs: rows(o.runs).map((r) => ({
      from: since(epoch, r.from), to: since(epoch, r.to), mode: modeText(text(r.mode)), context: context(text(r.context)), name: text(r.name),
      vmid: text(r.vmid), mixed: r.mixed === true,
    })),
  };
}

/** "process 0x100", "httpd 0x100", "process 0x100, machine 0x3"; "" if nothing is known. */
export function contextName(run: StateRun): string {
  const machine = run.context === "" && run.name !== "" ? `${run.name} ${run.vmid}` : "";
  return machine || [run.context && `${run.name || "process"} ${run.context}`, run.vmid && run.vmid !== "0x0" && `machine ${run.vmid}`]
    .filter(Boolean).join(", ");
}

// ---- hits of a search --------------------------------------------------------------------------

/** Numbers of hits in columns of equal width. */
export interface HitColumns {
  readonly from: number;
  readonly to: number;
  readonly hits: readonly number[];
}

export function readHitColumns(told: unknown, epoch: bigint): HitColumns {
  const o = told as Json.HitsReply;
  return { from: since(epoch, o.from), to: since(epoch, o.to), hits: Array.isArray(o.hits) ? (o.hits as unknown[]).map(Number) : [] };
}

// ---- counters ----------------------------------------------------------------------------------

export interface Counters {
  readonly from: number;
  readonly to: number;
  readonly rate: readonly number[]; // instructions per unit of time, NaN if not known; empty: no times
  readonly cpi: readonly number[]; // cycles per instruction; empty: no cycle counts
  readonly sampled: boolean;
}

export function readCounters(told: unknown, epoch: bigint): Counters {
  const o = told as Json.CountersReply;
  const column = (name: "insns" | "time" | "cycles" | "cycle_insns"): number[] => (Array.isArray(o[name]) ? o[name].map(Number) : []);
  const [insns, time, cycles, counted] = [column("insns"), column("time"), column("cycles"), column("cycle_insns")];
  return {
    from: since(epoch, o.from), to: since(epoch, o.to), sampled: o.sampled === true,
    rate: time.map((t, i) => (t > 0 ? insns[i]! / t : NaN)),
    cpi: cycles.map((n, i) => (counted[i]! > 0 ? n / counted[i]! : NaN)),
  };
}
