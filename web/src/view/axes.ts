// SPDX-License-Identifier: MIT
// Which axis a trace is shown on if its link does not say: the one last chosen for it, otherwise time if every lane
// that ran has times. A lane without them would be empty there.
import * as api from "../data/api.ts";
import { extentOf, hasTime, type Trace } from "../data/model.ts";
import { clamp, whole, type Axis, type View } from "../base/scale.ts";
import type { Session } from "./session.ts";

const KEY = "tracelake.axes";
/** So many choices are kept, the latest. */
const MOST = 200;

type Choice = readonly [string, Axis]; // a trace's ID

/** What is stored may be anything. */
function choices(): Choice[] {
  try {
    const told: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(told) ? told.filter((c): c is Choice => Array.isArray(c) && (c[1] === "insn" || c[1] === "time")) : [];
  } catch {
    return [];
  }
}

/** The axis for a trace of which nothing else is known. */
export function usualAxis(trace: Trace): Axis {
  return hasTime(trace) && trace.streams.every((s) => s.hasTime || s.insns === 0) ? "time" : "insn";
}

/** The axis to show a trace on; `wanted`: by its link. Streams of software trace alone have no instruction axis. */
export function axisFor(trace: Trace, wanted: Axis | undefined): Axis {
  if (!hasTime(trace)) return "insn";
  if (trace.streams.every((s) => s.insns === 0)) return "time";
  return wanted ?? choices().find(([id]) => id === trace.id)?.[1] ?? usualAxis(trace);
}

/** Remember a choice for when the trace is opened again. */
export function rememberAxis(trace: Trace, axis: Axis): void {
  const others = choices().filter(([id]) => id !== trace.id);
  const all: Choice[] = axis === usualAxis(trace) ? others : [...others, [trace.id, axis]];
  localStorage.setItem(KEY, JSON.stringify(all.slice(-MOST)));
}

/** What is shown, on an axis. */
export interface Place {
  readonly view: View;
  readonly cursor: number | undefined;
  readonly selection: readonly [number, number] | undefined;
}

/** The same part of the trace on the other axis, based on the selected lane; the whole trace if that fails. */
export async function onAxis(s: Session, axis: Axis): Promise<Place> {
  const { view, cursor, selection } = s;
  const name = s.stream?.name;
  const extent = extentOf(s.trace, axis);
  const everything = view.to - view.from >= (s.extent.last - s.extent.first) * 0.999;
  const all: Place = { view: whole(axis, extent), cursor: undefined, selection: undefined };
  if (name === undefined || (everything && cursor === undefined && !selection)) return all;
  const last = s.extent.last - 1;
  const at = async (where: number): Promise<number> => {
    const p = await api.locate(s.trace, name, view.axis, Math.min(last, Math.max(0, where)));
    return axis === "insn" ? p.insn : p.time ?? extent.first;
  };
  const range = async (from: number, to: number): Promise<[number, number]> => {
    const [a, b] = await Promise.all([at(from), at(to)]);
    return [a, b];
  };
  try {
    const [[from, to], chosen, there] = await Promise.all([
      everything ? [0, 0] as const : range(view.from, view.to), selection && range(...selection), cursor === undefined ? undefined : at(cursor)]);
    return {
      view: to > from ? clamp({ axis, from, to }, extent) : all.view, cursor: there,
      selection: chosen && chosen[1] > chosen[0] ? chosen : undefined,
    };
  } catch {
    return all;
  }
}
