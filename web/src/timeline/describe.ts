// SPDX-License-Identifier: MIT
// Describes a position in words: for the line under the timeline, the tooltip and the live region.
import type { Node } from "../view/arrange.ts";
import type { Session } from "../view/session.ts";
import { absolute } from "../base/epoch.ts";
import { bytes, duration, exactTime, grouped, short } from "../base/format.ts";
import { contextName } from "../data/lanedata.ts";
import { filesAt } from "../data/missing.ts";
import { isEvents, isSoftware, privilegeName, timeIsNs, unitName, type Stream } from "../data/model.ts";
import { EVENT, FLAG, FLAG_LOST, isOff, offText, runs } from "../data/tile.ts";
import { breakText } from "./gaps.ts";
import type { Hover } from "./under.ts";
import type { Timed } from "../view/zero.ts";

export interface Description {
  readonly lane: string;
  readonly what: string; // function, page or state
  readonly share: string; // its share of the bucket, "" for all
  readonly where: string; // position
  readonly width: string; // width of the bucket, "" for a single unit
  readonly mode: string;
  readonly events: string;
  readonly lost: string;
}

const EVENT_NAMES: readonly (readonly [number, string])[] = [
  [EVENT.exception, "exception"], [EVENT.exceptionReturn, "return from exception"],
  [EVENT.hardware, "hardware event"], [EVENT.software, "software trace"],
  [EVENT.mode, "mode change"], [EVENT.context, "context change"], [EVENT.traceOn, "trace on"],
  [EVENT.note, "note"],
];
const FLAG_NAMES: readonly (readonly [number, string])[] = [
  [FLAG.overflow, "overflow"], [FLAG.gap, "gap"], [FLAG.bad, "bad packet"],
  [FLAG.noImage, "no image"], [FLAG.off, "trace off"], [FLAG.unsynced, "not synchronised"],
  [FLAG.switchedOut, "switched out"],
];

/** In a bucket of so many functions (binary logarithm) the leading ones are estimates. */
const MANY = 3;

function names(table: readonly (readonly [number, string])[], bits: number): string {
  return table.filter(([bit]) => (bits & bit) !== 0).map(([, name]) => name).join(", ");
}

/** Format a time of the trace, as it is shown: from its zero. */
export function timeText({ trace, zero }: Timed, at: number, ns: boolean): string {
  const n = absolute(trace.epoch, at) - zero;
  const size = n < 0n ? -n : n;
  return `${n < 0n ? "−" : ""}${ns ? exactTime(size) : `${grouped(size)} ticks`}`;
}

/** Reasons for missing trace, for a break or a bucket. */
export function reasons(flags: number): string {
  const known = flags & FLAG_LOST & ~FLAG.gap;
  return names(FLAG_NAMES, known === 0 ? flags & FLAG_LOST : known);
}

/** Format a position of a lane, which may not count instructions. */
export function positionText(session: Session, at: number, protocol: string): string {
  if (session.view.axis === "insn") return `${unitName(protocol, 1)} ${grouped(at)}`;
  return timeText(session, at, timeIsNs(session.trace));
}

export function widthText(session: Session, units: number, protocol = ""): string {
  if (units <= 1) return "";
  if (session.view.axis === "insn") return `${short(units)} ${unitName(protocol, units)}`;
  return timeIsNs(session.trace) ? duration(units) : `${short(units)} ticks`;
}

function mode(protocol: string, shares: Uint8Array, bucket: number): string {
  const part = shares.subarray(4 * bucket, 4 * bucket + 4);
  const total = part.reduce((a, b) => a + b, 0);
  if (total === 0) return "";
  const seen = [...part].map((share, level) => ({ share: share / total, level }))
    .filter((p) => p.share > 0).sort((a, b) => b.share - a.share);
  return seen.map(({ share, level }) => {
    const name = privilegeName(protocol, level);
    return seen.length === 1 ? name : `${name} ${Math.max(1, Math.round(share * 100))} %`;
  }).join(", ");
}

/** The line or value of software trace at a position, if it is loaded. */
function said(session: Session, { lane, from, width }: Hover): string {
  const name = session.trace.streams[lane]?.name ?? "";
  const timed = session.view.axis === "time";
  const entries = session.log.get(name, session.view)?.entries.filter((e) =>
    (timed ? e.time !== undefined && e.time >= from && e.time < from + width : e.at < from + width && e.last >= from)) ?? [];
  const [first] = entries;
  return first ? `${first.text}${entries.length > 1 ? ` (+${entries.length - 1})` : ""}` : "";
}

/** Does a group contain only software trace, in which nothing continues between messages? */
export function allSoftware(s: Session, { lanes }: Node): boolean {
  return lanes.every((lane) => isSoftware(s.trace.streams[lane]!.protocol));
}

export function describe(session: Session, hover: Hover): Description {
  const stream = session.trace.streams[hover.lane];
  const out = {
    lane: hover.group ? `${hover.group.name}, ${hover.group.lanes.length} lanes` : stream?.name ?? "", what: "", share: "", where: positionText(session, Math.max(0, Math.floor(hover.at)), stream?.protocol ?? ""),
    width: widthText(session, hover.width, stream?.protocol), mode: "", events: "", lost: "",
  };
  const c = hover.columns;
  const b = hover.bucket;
  if (!c || !stream || b < 0 || b >= c.insns.length) return out;
  const timed = session.view.axis === "time";
  if (hover.at >= c.behindFrom) return { ...out, what: "being indexed" };
  out.lost = reasons(c.flags[b]!);
  const within = c.breaks.find((k) => (timed ? k.from <= hover.at && hover.at < k.to
    : k.position === Math.floor(hover.at) && hover.width === 1));
  if (within) out.lost = breakText(within, timeIsNs(session.trace));
  const software = hover.group ? allSoftware(session, hover.group) : isSoftware(stream.protocol);
  const what = isEvents(stream.protocol) ? "event" : "message";
  // Each of perf's events is a note to the decoder.
  out.events = names(EVENT_NAMES, c.events[b]! & ~(what === "event" ? EVENT.note : 0));
  if (c.eventCount[b]! > 1 && out.events !== "") out.events += ` (${grouped(c.eventCount[b]!)})`;
  if (within && timed) {
    out.what = isOff(within.flags) ? offText(within.flags) : "trace lost";
    return out;
  }
  if (software ? c.insns[b]! === 0 : !runs(c, b)) {
    out.what = software ? `no ${what}` : out.lost === "" || isOff(c.flags[b]!) ? offText(c.flags[b]!) : "trace lost";
    return out;
  }
  out.mode = mode(stream.protocol, c.privilege, b);
  const row = session.view.axis === "insn" && hover.width === 1 && !hover.group
    ? session.insns(hover.lane)?.get(Math.floor(hover.at)) : undefined;
  if (c.fn[b]! > 0) out.what = session.nameOf(c.fn[b]! - 1);
  else if (software && !hover.group && said(session, hover) !== "") out.what = said(session, hover);
  else if (software) out.what = `${grouped(c.insns[b]!)} ${what}${c.insns[b]! > 1 ? "s" : ""}`;
  else if (c.page[b]! > 0) {
    out.what = `page 0x${(c.page[b]! * 4096).toString(16)}`;
    if (hover.width > 1) out.share = "among others"; // how many is not counted
  } else out.what = "unnamed code";
  const state = hover.group ? undefined : session.states.get(stream.name, session.view)?.runs.find((r) => r.from <= hover.at && hover.at < r.to);
  if (state && !state.mixed) out.mode = [state.mode || out.mode, contextName(state)].filter(Boolean).join(" · ");
  if (row && !software) out.what = `${row.fn ? row.fn + row.offset : row.pc}  ${row.text}`;
  const share = c.share[b]!;
  if (c.fn[b]! > 0 && share > 0 && share < 250) out.share = `~${Math.round(share / 2.55)} %${c.distinct[b]! >= MANY ? ` (of ${2 ** c.distinct[b]!}+ functions)` : ""}`;
  return out;
}

/** One sentence for the live region. */
export function spoken(d: Description): string {
  return [d.lane, d.where, d.what, d.share, d.mode, d.events, d.lost].filter((t) => t !== "")
    .join(", ");
}

/** Why a lane has no instructions: which file is needed, if known. */
export function nothingRan(s: Session, { name, gaps, protocol, events, lostBytes }: Stream): string {
  const astray = s.overview.astray.get(name);
  if (!astray && events === 0 && lostBytes > 0) {
    return `None of ${bytes(lostBytes)} could be decoded as ${protocol}: check the format, the setup and the trace ID`;
  }
  if (!astray) { // or it is beyond the limit
    const named = s.overview.more && s.overview.files.length > 0 ? "; the overview names missing files" : "";
    return gaps === 0 ? "" : `No instructions, only ${gaps === 1 ? "a gap" : `${grouped(gaps)} gaps`}${named}`;
  }
  const files = filesAt(s.overview.files, astray.pc, name);
  const [file] = files;
  if (file && files.length === 1) return `Missing: ${file.path}, ${file.buildId ? `build ID ${file.buildId}` : "no build ID recorded"}`;
  if (file) return `Missing: ${files.map((f) => f.path).slice(0, 3).join(", ")}${files.length > 3 ? ` and ${files.length - 3} other files` : ""}`;
  const more = astray.places > 1 ? ` and ${grouped(astray.places - 1)} other places` : "";
  return `No program image at ${astray.pc}${more}`;
}
