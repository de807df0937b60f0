// SPDX-License-Identifier: MIT
// The whole state of the page in the URL's hash:
//   #/                                    the list of traces
//   #/trace/ID?axis=time&from=..&to=..    a trace; every part of the query may be absent
import type { Axis } from "./scale.ts";

export type Panel = "insns" | "stats" | "find" | "none";

export interface Place {
  trace: string | undefined;
  axis: Axis;
  from: number | undefined;
  to: number | undefined;
  lane: string | undefined; // a stream's name
  at: number | undefined; // cursor, in units of the axis
  select: readonly [number, number] | undefined; // in units of the axis
  find: string;
  panel: Panel;
  /** undefined: not following; 0: keep the zoom; else the newest N units. */
  follow: number | undefined;
}

export function emptyPlace(trace?: string): Place {
  return {
    trace, axis: "insn", from: undefined, to: undefined, lane: undefined, at: undefined,
    select: undefined, find: "", panel: "insns", follow: undefined,
  };
}

/** Positions keep what a pixel needs, not more. */
function position(n: number, step: number): string {
  if (step >= 1) return String(Math.round(n));
  return String(Number(n.toFixed(Math.min(3, Math.ceil(-Math.log10(step))))));
}

export function encodePlace(place: Place): string {
  if (place.trace === undefined) return "#/";
  const query: string[] = [];
  if (place.axis !== "insn") query.push(`axis=${place.axis}`);
  if (place.follow !== undefined) query.push(`follow=${place.follow === 0 ? "zoom" : place.follow}`);
  if (place.from !== undefined && place.to !== undefined) {
    const step = (place.to - place.from) / 2000;
    query.push(`from=${position(place.from, step)}`, `to=${position(place.to, step)}`);
  }
  if (place.lane !== undefined) query.push(`lane=${encodeURIComponent(place.lane)}`);
  if (place.at !== undefined) query.push(`at=${place.at}`);
  if (place.select) query.push(`select=${place.select[0]}-${place.select[1]}`);
  if (place.find !== "") query.push(`find=${encodeURIComponent(place.find)}`);
  if (place.panel !== "insns") query.push(`panel=${place.panel}`);
  return `#/trace/${encodeURIComponent(place.trace)}${query.length > 0 ? `?${query.join("&")}` : ""}`;
}

function number(text: string | null): number | undefined {
  if (text === null || text === "") return undefined;
  const n = Number(text);
  return Number.isFinite(n) ? n : undefined;
}

function component(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Never throws: what cannot be read is as if absent. */
export function decodePlace(hash: string): Place {
  const matched = /^#\/trace\/([^?]+)(?:\?(.*))?$/.exec(hash);
  const trace = matched ? component(matched[1]!) : undefined;
  if (!matched || trace === undefined) return emptyPlace();
  const query = new URLSearchParams(matched[2] ?? "");
  const place = emptyPlace(trace);
  if (query.get("axis") === "time") place.axis = "time";
  const from = number(query.get("from"));
  const to = number(query.get("to"));
  if (from !== undefined && to !== undefined && to > from) {
    place.from = from;
    place.to = to;
  }
  place.lane = query.get("lane") ?? undefined;
  place.at = number(query.get("at"));
  const select = /^(\d+)-(\d+)$/.exec(query.get("select") ?? "");
  if (select && Number(select[2]) > Number(select[1])) {
    place.select = [Number(select[1]), Number(select[2])];
  }
  place.find = query.get("find") ?? "";
  const panel = query.get("panel");
  if (panel === "stats" || panel === "find" || panel === "none") place.panel = panel;
  const follow = query.get("follow");
  if (follow === "zoom") place.follow = 0;
  else if (follow !== null && Number(follow) > 0) place.follow = Number(follow);
  return place;
}
