// SPDX-License-Identifier: MIT
// The whole state of the page in the URL's hash:
//   #/                                    the list of traces
//   #/trace/ID?axis=time&from=..&to=..    a trace; every part of the query may be absent. Positions without an axis
//                                         are instructions; axis=usual: they are shown on the axis of the trace
import { AS_THEY_COME, type Arrangement } from "./arrange.ts";
import type { Axis } from "../base/scale.ts";

export type Panel = "overview" | "insns" | "events" | "stats" | "find" | "calls" | "source" | "interrupts" | "sql" | "log" | "notes" | "together" | "compare" | "none";
const PANELS: readonly string[] = ["overview", "insns", "events", "stats", "find", "calls", "source", "interrupts", "sql", "log", "notes", "together", "compare", "none"];

/** Sub-lanes shown below lanes. */
export type Sub = "states" | "counters";
const SUBS: readonly string[] = ["states", "counters"];

/** A trace shown next to the open one. */
export interface Beside {
  readonly trace: string;
  readonly offset: bigint | undefined; // of its times, undefined: the default
}

export interface Place {
  trace: string | undefined;
  axis: Axis | undefined; // undefined: the usual one of the trace
  usual: boolean; // positions are instructions, to be shown on the trace's usual axis
  /** Positions are strings, in units of the axis: times may be too large for a number. */
  from: string | undefined;
  to: string | undefined;
  lane: string | undefined; // a stream's name
  at: string | undefined; // cursor
  select: readonly [string, string] | undefined;
  find: string;
  panel: Panel;
  alone: string; // the only function with a colour
  arrangement: Arrangement; // of lanes
  kinds: string; // kinds of events that are listed, "" for the default
  with: string; // "TRACE/STREAM" to compare with
  sql: string; // the question that was asked
  open: readonly string[] | undefined; // lanes whose call stack is open, by name; undefined: the default
  full: readonly string[]; // lanes shown with all levels
  show: readonly Sub[]; // sub-lanes
  beside: readonly Beside[];
  seams: readonly (readonly [string, string])[]; // where time is folded away, from and to
  /** undefined: not following; 0: keep the zoom; else the newest N units. */
  follow: number | undefined;
}

export function emptyPlace(trace?: string): Place {
  return {
    trace, axis: undefined, usual: false, from: undefined, to: undefined, lane: undefined, at: undefined,
    select: undefined, find: "", panel: "overview", arrangement: AS_THEY_COME, kinds: "", alone: "", with: "", sql: "", open: undefined, full: [],
    show: [], beside: [], seams: [], follow: undefined,
  };
}

/** With a cursor the instructions around it, otherwise the overview of the trace. */
function usual(place: Place): Panel {
  return place.at === undefined ? "overview" : "insns";
}

export function encodePlace(place: Place): string {
  if (place.trace === undefined) return "#/";
  const query: string[] = [];
  if (place.axis !== undefined) query.push(`axis=${place.axis}`);
  if (place.follow !== undefined) query.push(`follow=${place.follow === 0 ? "zoom" : place.follow}`);
  if (place.from !== undefined && place.to !== undefined) {
    query.push(`from=${place.from}`, `to=${place.to}`);
  }
  if (place.lane !== undefined) query.push(`lane=${encodeURIComponent(place.lane)}`);
  if (place.at !== undefined) query.push(`at=${place.at}`);
  if (place.select) query.push(`select=${place.select[0]}-${place.select[1]}`);
  if (place.find !== "") query.push(`find=${encodeURIComponent(place.find)}`);
  if (place.panel !== usual(place)) query.push(`panel=${place.panel}`);
  const { order, hidden, pinned, folded, only } = place.arrangement;
  for (const [key, list] of [["lanes", order], ["hide", hidden], ["pin", pinned], ["fold", folded]] as const) {
    if (list.length > 0) query.push(`${key}=${list.map(encodeURIComponent).join(",")}`);
  }
  if (only !== "") query.push(`only=${encodeURIComponent(only)}`);
  if (place.alone !== "") query.push(`alone=${encodeURIComponent(place.alone)}`);
  if (place.kinds !== "") query.push(`kinds=${encodeURIComponent(place.kinds)}`);
  if (place.with !== "") query.push(`with=${encodeURIComponent(place.with)}`);
  if (place.sql !== "") query.push(`sql=${encodeURIComponent(place.sql)}`);
  if (place.open) query.push(`open=${place.open.map(encodeURIComponent).join(",")}`);
  if (place.full.length > 0) query.push(`full=${place.full.map(encodeURIComponent).join(",")}`);
  if (place.beside.length > 0) query.push(`beside=${place.beside.map((b) => encodeURIComponent(b.trace)).join(",")}`);
  if (place.beside.some((b) => b.offset !== undefined)) query.push(`offset=${place.beside.map((b) => b.offset ?? "").join(",")}`);
  if (place.seams.length > 0) query.push(`seams=${place.seams.map((f) => f.join("-")).join(",")}`);
  if (place.show.length > 0) query.push(`show=${place.show.join(",")}`);
  return `#/trace/${encodeURIComponent(place.trace)}${query.length > 0 ? `?${query.join("&")}` : ""}`;
}

function position(text: string | null): string | undefined {
  return text !== null && /^-?\d{1,20}(\.\d+)?$/.test(text) ? text : undefined;
}

function component(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Comma-separated names, in which commas are encoded. */
function names(query: string | undefined, key: string): string[] | undefined {
  const text = new RegExp(`(?:^|&)${key}=([^&]*)`).exec(query ?? "")?.[1];
  return text?.split(",").map(component).filter((n) => n !== undefined && n !== "") as string[] | undefined;
}

/** Never throws: invalid parts are treated as absent. */
export function decodePlace(hash: string): Place {
  const matched = /^#\/trace\/([^?]+)(?:\?(.*))?$/.exec(hash);
  const trace = matched ? component(matched[1]!) : undefined;
  if (!matched || trace === undefined) return emptyPlace();
  const query = new URLSearchParams(matched[2] ?? "");
  const place = emptyPlace(trace);
  const from = position(query.get("from"));
  const to = position(query.get("to"));
  if (from !== undefined && to !== undefined) {
    place.from = from;
    place.to = to;
  }
  place.lane = query.get("lane") ?? undefined;
  place.at = position(query.get("at"));
  const select = /^(\d+)-(\d+)$/.exec(query.get("select") ?? "");
  if (select && BigInt(select[2]!) > BigInt(select[1]!)) {
    place.select = [select[1]!, select[2]!];
  }
  const axis = query.get("axis");
  if (axis === "time" || axis === "insn") {
    place.axis = axis;
  } else if (place.from !== undefined || place.at !== undefined || place.select) {
    place.axis = "insn";
    place.usual = axis === "usual";
  }
  place.find = query.get("find") ?? "";
  const panel = query.get("panel");
  place.panel = panel !== null && PANELS.includes(panel) ? panel as Panel : usual(place);
  place.kinds = query.get("kinds") ?? "";
  place.seams = [...(query.get("seams") ?? "").matchAll(/(?:^|,)(\d{1,20})-(\d{1,20})(?=,|$)/g)]
    .flatMap(([, a, b]) => (BigInt(b!) > BigInt(a!) ? [[a!, b!] as const] : []));
  place.alone = query.get("alone") ?? "";
  place.arrangement = {
    order: names(matched[2], "lanes") ?? [], hidden: names(matched[2], "hide") ?? [], pinned: names(matched[2], "pin") ?? [],
    folded: names(matched[2], "fold") ?? [],
    only: query.get("only") ?? "",
  };
  place.with = query.get("with") ?? "";
  place.sql = query.get("sql") ?? "";
  place.open = names(matched[2], "open");
  place.full = names(matched[2], "full") ?? [];
  const offsets = (query.get("offset") ?? "").split(",");
  place.beside = (names(matched[2], "beside") ?? []).map((id, i) => (
    { trace: id, offset: /^-?\d{1,20}$/.test(offsets[i] ?? "") ? BigInt(offsets[i]!) : undefined }));
  place.show = (query.get("show") ?? "").split(",").filter((x): x is Sub => SUBS.includes(x));
  const follow = query.get("follow");
  if (follow === "zoom") place.follow = 0;
  else if (follow !== null && Number(follow) > 0) place.follow = Number(follow);
  return place;
}
