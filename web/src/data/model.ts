// SPDX-License-Identifier: MIT
// The server's data as the page keeps it. Readers are lenient: a missing field reads as zero or
// empty, and a 64-bit integer may be a number or a decimal string.
import type * as Json from "../../gen/answers.ts";
import { epochOf, since, whole, type Ref } from "../base/epoch.ts";
import { modeText } from "../base/format.ts";
import type { Axis, Extent } from "../base/scale.ts";

/** "deleted" is set by the page: the server no longer has the trace. */
export type TraceState = "live" | "decoding" | "sealed" | "failed" | "deleted";

/**
 * A time t of the stream, not relative to its trace's epoch, was at unix + (t - at) * rate by the
 * server's clock.
 */
export interface StreamClock {
  readonly at: bigint;
  readonly unix: bigint; // ns since 1970
  readonly rate: number;
  readonly rateError: number;
  readonly spread: number; // ns
}

export interface Stream {
  readonly name: string;
  readonly protocol: string;
  readonly core: string; // "Cortex-A53", "" if not known
  readonly device: string; // of its source: "ETM_0", "" if not known
  readonly insns: number;
  readonly timeFirst: number;
  readonly timeLast: number;
  readonly hasTime: boolean;
  readonly timeIsNs: boolean;
  readonly timeStep: number; // between two timestamps, on average; 0: not known
  readonly clock: StreamClock | undefined;
  readonly events: number;
  readonly gaps: number;
  readonly lostBytes: number;
  readonly storedBytes: number;
}

/** Times of streams are relative to the trace's epoch. */
export interface Trace extends Ref {
  readonly rig: string;
  readonly state: TraceState;
  readonly format: string;
  readonly createdMs: number;
  readonly updatedMs: number;
  readonly rawBytes: number;
  readonly decodedBytes: number;
  readonly generation: number;
  readonly revision: number;
  readonly message: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly notes: number; // increases with every change of its notes, 0: none
  readonly tileBase: Readonly<Record<Axis, number>>;
  readonly streams: readonly Stream[];
}

export interface FunctionRow {
  readonly id: number;
  readonly name: string;
  readonly pc: string;
}

export interface Position {
  readonly insn: number;
  readonly time: number | undefined;
  readonly byte: number;
}

export interface Hit extends Position {
  readonly stream: string;
  readonly pc: string;
  readonly text: string;
}

/** Hits; if counted, also their number and how many precede the first. */
export interface Found {
  readonly what: string;
  readonly hits: readonly Hit[];
  readonly more: boolean;
  readonly skip: number; // if there are more: number of the last hit among those at its position
  readonly total: number | undefined;
  readonly before: number | undefined; // number of hits before the first
}

export interface InsnRow {
  readonly insn: number;
  readonly pc: string;
  readonly encoding: string;
  readonly text: string;
  readonly fn: string; // "" if not known
  readonly offset: string; // within the function: "+0x10", "" at its first instruction
  readonly mode: string;
  readonly time: number | undefined;
  readonly events: readonly string[];
  readonly file: string; // of the source, "" if not known
  readonly line: number; // 0: none
  readonly inlined: readonly Inlined[]; // outermost first
}

/** An inlined function. */
export interface Inlined {
  readonly fn: string;
  readonly file: string; // call site, "" if not known
  readonly line: number;
}

export interface Slice {
  readonly depth: number;
  readonly from: number;
  readonly to: number;
  readonly name: string;
}

export interface Slices {
  readonly slices: readonly Slice[];
  readonly truncated: boolean; // those too narrow to be visible are omitted
}

export interface Count {
  readonly name: string;
  readonly count: number;
}

/**
 * Duration of missing trace for a reason: number of intervals between timestamps that contain it.
 */
export interface Lost {
  readonly n: number;
  readonly total: number; // in units of time
  readonly longest: number;
  readonly longestAt: bigint; // the time at which that begins, not relative to the epoch
}

export interface Stats {
  readonly lost: ReadonlyMap<string, Lost>; // by reason
  readonly insns: number;
  readonly functionsRun: number; // number of functions executed; those with most instructions are listed
  readonly functions: readonly { name: string; pc: string; insns: number; calls: number }[];
  readonly groups: readonly { title: string; rows: readonly Count[] }[];
  readonly silent: readonly { name: string; device: string }[]; // sources in the setup from which no trace came
}

function object<T extends object>(value: unknown): Partial<T> {
  return typeof value === "object" && value !== null ? value : {};
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

function number(value: unknown): number {
  const n = Number(value ?? 0);
  return Number.isFinite(n) ? n : 0;
}

/** Convert an address, a string or a number, to "0x…". */
function address(value: unknown): string {
  return typeof value === "number" ? `0x${value.toString(16)}` : text(value);
}

function readClock(value: unknown): StreamClock | undefined {
  const o = object<Json.StreamClock>(value);
  return number(o.pairs) === 0 ? undefined
    : { at: whole(o.at), unix: whole(o.unix_ns), rate: number(o.rate), rateError: number(o.rate_error), spread: number(o.spread_ns) };
}

export function readStream(value: unknown, epoch: bigint): Stream {
  const o = object<Json.Stream>(value);
  return {
    name: text(o.name),
    protocol: text(o.protocol),
    core: text(o.core),
    device: text(o.device),
    // What is only outlined can be read, and found by position and time.
    insns: Math.max(number(o.insns), number(o.outlined_insns)),
    timeFirst: o.has_time === true ? since(epoch, o.time_first) : 0,
    timeLast: o.has_time !== true ? 0 : Math.max(since(epoch, o.time_last), number(o.outlined_insns) > 0 ? since(epoch, o.outlined_time) : 0),
    hasTime: o.has_time === true,
    timeIsNs: o.time_unit_ns === true,
    timeStep: number(o.time_step),
    clock: readClock(o.clock),
    events: number(o.events),
    gaps: number(o.gaps),
    lostBytes: number(o.lost_bytes),
    storedBytes: number(o.stored_bytes),
  };
}

const STATES = ["live", "decoding", "sealed", "failed"];

export function readTrace(value: unknown): Trace {
  const o = object<Json.Trace & { tile_base: Record<Axis, unknown> }>(value);
  const base = object<Record<Axis, unknown>>(o.tile_base);
  const state = text(o.state).toLowerCase();
  const timed = list(o.streams).map((v) => object<Json.Stream>(v)).filter((s) => s.has_time === true);
  const [first, last] = [timed.map((s) => whole(s.time_first)), timed.map((s) => whole(s.time_last))];
  const epoch = timed.length === 0 ? 0n : epochOf(first.reduce((a, b) => (b < a ? b : a)),
    last.reduce((a, b) => (b > a ? b : a)));
  return {
    epoch,
    id: text(o.id),
    rig: text(o.rig),
    state: (STATES.includes(state) ? state : "sealed") as TraceState,
    format: text(o.format),
    createdMs: number(o.created_ns) / 1e6,
    updatedMs: number(o.updated_ns) / 1e6,
    rawBytes: number(o.raw_bytes),
    decodedBytes: number(o.decoded_bytes),
    generation: number(o.generation),
    revision: number(o.revision),
    message: text(o.message),
    notes: number(o.notes),
    labels: Object.fromEntries(Object.entries(object<Record<string, unknown>>(o.labels)).map(([k, v]) => [k, text(v)])),
    tileBase: { insn: number(base.insn), time: number(base.time) },
    streams: list(o.streams).map((s) => readStream(s, epoch)),
  };
}

export function readTraces(value: unknown): Trace[] {
  return list(Array.isArray(value) ? value : object<Json.ListTracesReply>(value).traces).map(readTrace);
}

/** Are there traces after the listed ones? */
export function thereIsMore(value: unknown): boolean {
  return !Array.isArray(value) && object<{ more: boolean }>(value).more === true;
}

export function readFunctions(value: unknown): FunctionRow[] {
  return list(Array.isArray(value) ? value : object<Json.FunctionNames>(value).functions).map((row) => {
    const o = object<Json.FunctionName>(row);
    return { id: number(o.id), name: text(o.name), pc: address(o.pc) };
  });
}

export function readPosition(value: unknown, epoch = 0n): Position {
  const o = object<Json.Position>(value);
  return {
    insn: number(o.insn), byte: number(o.byte),
    time: o.has_time === true || (o.has_time === undefined && o.time !== undefined && o.time !== null)
      ? since(epoch, o.time) : undefined,
  };
}

export function readFound(value: unknown, epoch = 0n): Found {
  const o = object<Json.FindReply>(value);
  return {
    hits: list(o.hits).map((row) => {
      const h = object<Json.Hit>(row);
      return { ...readPosition(h, epoch), pc: address(h.pc), text: text(h.text), stream: text(h.stream) };
    }),
    what: text(o.what), more: o.more === true, skip: number(o.skip ?? 0),
    total: o.total === undefined ? undefined : number(o.total),
    before: o.before === undefined ? undefined : number(o.before),
  };
}

function splitOffset(name: string): { fn: string; offset: string } {
  const at = /\+0x[0-9a-f]+$/.exec(name);
  return at ? { fn: name.slice(0, at.index), offset: at[0] } : { fn: name, offset: "" };
}

/** Describe a line of flow text in words; anything else is unchanged. */
export function eventText(line: string): string {
  const [letter, ...rest] = line.split(" ");
  const all = rest.join(" ");
  switch (letter) {
    case "X": return `exception ${rest.slice(0, 2).join(" ")}`;
    case "R": return rest.length === 0 ? "return from exception" : line;
    case "M": return `mode ${all}`;
    case "C": return `context ${all}`;
    case "G": return rest.length > 1 ? `gap: ${rest[0]} (${rest[1]})` : `gap: ${all}`;
    case "T": return `timestamp ${all}`;
    case "Y": return `${all} cycles`;
    case "O": return rest.length === 0 ? "trace on" : line;
    case "V": return `event ${all}`;
    case "S": return `${rest.slice(0, 2).join(" ")}: ${rest.slice(2).join(" ")}`;
    case "A": return all;
    case "B": return rest.length === 2 ? `branch from ${rest[0]} to ${rest[1]}` : line;
    default: return line;
  }
}

/** Merge equal neighbours, with their count. */
function collapse(lines: readonly string[]): string[] {
  const out: { line: string; n: number }[] = [];
  for (const line of lines) {
    const last = out[out.length - 1];
    if (last?.line === line) last.n++;
    else out.push({ line, n: 1 });
  }
  return out.map(({ line, n }) => (n > 1 ? `${line} ×${n}` : line));
}

export function readInsns(value: unknown, epoch = 0n): InsnRow[] {
  const rows = Array.isArray(value) ? value : list(object<Json.InsnsReply>(value).insns);
  return rows.map((row) => {
    const o = object<Json.Insn>(row);
    return {
      insn: number(o.insn),
      pc: address(o.pc),
      encoding: text(o.encoding),
      text: text(o.text),
      ...splitOffset(text(o.function)),
      mode: modeText(text(o.mode)),
      time: o.time === undefined || o.time === null ? undefined : since(epoch, o.time),
      events: collapse(list(o.events).map((e) => eventText(text(e)))),
      file: text(o.file),
      line: number(o.line),
      inlined: list(o.inlined).map((row) => {
        const i = object<Json.InlinedFunction>(row);
        return { fn: text(i.function), file: text(i.file), line: number(i.line) };
      }),
    };
  });
}

export function readSlices(streams: Readonly<Record<string, unknown>>, epoch = 0n): Map<string, Slices> {
  return new Map(Object.entries(streams).map(([stream, told]) => {
    const o = object<Json.SlicesReply>(told);
    const slices = list(o.slices).map((row) => {
      const s = object<Json.Slice>(row);
      return {
        depth: number(s.depth), from: since(epoch, s.from), to: since(epoch, s.to), name: text(s.name),
      };
    });
    return [stream, { slices, truncated: o.truncated === true }];
  }));
}

const TITLES: Record<string, string> = {
  mix: "Kinds of instructions", modes: "Modes", items: "Events", gaps: "Gaps",
};
const NOT_COUNTS = new Set(["functions", "silent", "lost", "functions_run", "insns", "from", "to"]);

export function readStats(value: unknown): Stats {
  const o = object<Json.StatsReply>(value);
  const groups: { title: string; rows: Count[] }[] = [];
  const loose: Count[] = [];
  for (const [key, part] of Object.entries(o)) {
    if (NOT_COUNTS.has(key)) continue;
    if (typeof part === "object" && part !== null) {
      const rows = Array.isArray(part)
        ? part.map((row) => ({ name: text(object<Count>(row).name), count: number(object<Count>(row).count) }))
        : Object.entries(part).map(([name, count]) => ({ name, count: number(count) }));
      groups.push({ title: TITLES[key] ?? key.replaceAll("_", " "), rows: rows.filter((r) => r.count > 0) });
    } else if (typeof part === "number" || /^\d+$/.test(text(part))) {
      loose.push({ name: key, count: number(part) });
    }
  }
  if (loose.length > 0) groups.push({ title: "Others", rows: loose });
  return {
    insns: number(o.insns),
    lost: new Map(Object.entries(object<Json.StatsReply["lost"]>(o.lost)).map(([reason, told]) => {
      const l = object<Json.LostTime>(told);
      return [reason, { n: number(l.n), total: number(l.total), longest: number(l.longest), longestAt: whole(l.longest_at) }];
    })),
    functionsRun: Math.max(number(o.functions_run), list(o.functions).length),
    functions: list(o.functions).map((row) => {
      const f = object<Json.StatsFunction>(row);
      return {
        name: text(f.name), pc: address(f.pc), insns: number(f.insns),
        calls: number(f.calls),
      };
    }),
    groups: groups.filter((g) => g.rows.length > 0),
    silent: list(o.silent).map((row) => ({ name: text(object<Json.SilentSource>(row).name), device: text(object<Json.SilentSource>(row).device) })),
  };
}

/** The extent of all lanes on an axis. */
const extents = { insn: new WeakMap<Trace, Extent>(), time: new WeakMap<Trace, Extent>() };

/** Asked for each lane and tile of a frame, of a trace that is another object once it has grown. */
export function extentOf(trace: Trace, axis: Axis): Extent {
  let known = extents[axis].get(trace);
  if (!known) extents[axis].set(trace, known = measure(trace, axis));
  return known;
}

function measure(trace: Trace, axis: Axis): Extent {
  if (axis === "insn") {
    return { first: 0, last: Math.max(1, ...trace.streams.map((s) => s.insns)) };
  }
  const timed = trace.streams.filter((s) => s.hasTime);
  if (timed.length === 0) return { first: 0, last: 1 };
  const first = Math.min(...timed.map((s) => s.timeFirst));
  return { first, last: Math.max(first + 1, ...timed.map((s) => s.timeLast + 1)) };
}

export function streamExtent(stream: Stream, axis: Axis): Extent {
  return axis === "insn" ? { first: 0, last: stream.insns }
    : { first: stream.timeFirst, last: stream.hasTime ? stream.timeLast + 1 : stream.timeFirst };
}

export function hasTime(trace: Trace): boolean {
  return trace.streams.some((s) => s.hasTime);
}

/** Are contexts Linux processes, whose numbers are shown in decimal? */
export function ofLinux(trace: Trace): boolean {
  return trace.format.startsWith("perf");
}

export function timeIsNs(trace: Trace): boolean {
  return trace.streams.every((s) => s.timeIsNs || !s.hasTime);
}

/** Is it a stream of software trace, which counts records instead of instructions? */
export function isSoftware(protocol: string): boolean {
  return /stm|itm|uart|transactions|^osd$|^perf-events$|^etm3-data$/i.test(protocol);
}

/** Does the stream consist of perf's events? No program wrote them. */
export function isEvents(protocol: string): boolean {
  return protocol === "perf-events";
}

/** Is the stream assembled from others of its trace? */
export function isDerived(name: string): boolean {
  return name.startsWith("thread.");
}

/** Instructions and branches of all streams, nothing counted twice. */
export function executed(trace: Trace): number {
  return trace.streams.reduce((n, s) => n + (isDerived(s.name) || isSoftware(s.protocol) ? 0 : s.insns), 0);
}

/** "16.3 M insns", "41 records", "1 branch". */
export function unitName(protocol: string, n = 0): string {
  const [one, many] = isEvents(protocol) ? ["event", "events"] : isSoftware(protocol) ? ["record", "records"] : protocol === "osd-ctm" ? ["branch", "branches"] : ["insn", "insns"];
  return n === 1 ? one! : many!;
}

/** Is privilege told as x86's rings, of which 0 is the most powerful? */
export function hasRings(protocol: string): boolean {
  return /^(pt|intel)/i.test(protocol);
}

/** Arm cores have exception levels, x86 rings, others U S H M. */
export function privilegeName(protocol: string, level: number): string {
  if (/etm|ete|ptm|cs|tpiu/i.test(protocol)) return `EL${level}`;
  if (hasRings(protocol)) return `ring ${level}`;
  return ["U", "S", "H", "M"][level] ?? String(level);
}
