// SPDX-License-Identifier: MIT
// Exact statistics of what is selected or in view: counts by instructions, and on the time axis whose time it was.
import * as api from "../data/api.ts";
import { isSoftware } from "../data/model.ts";
import type { Measured, Session } from "./session.ts";
import { ownTimes } from "../data/timing.ts";
import { countsTime } from "./weight.ts";

/** Count the selection, or the view, in the selected lane; `functions`: how many are listed. */
export async function measure(s: Session, functions: number, signal: AbortSignal, changed: () => void): Promise<void> {
  const { stream, lane } = s;
  if (!stream) return;
  const { first: begin, last: end } = s.extent;
  const range = s.selection ?? [Math.max(begin, Math.floor(s.view.from)), Math.min(end, Math.ceil(s.view.to))];
  const insn = async (at: number): Promise<number> => (s.view.axis === "insn" ? at : (await api.locate(s.trace, stream.name, "time", at, signal)).insn);
  try {
    const [first, last] = await Promise.all([insn(range[0]), insn(range[1])]);
    const from = Math.max(0, first);
    const to = Math.min(stream.insns, Math.max(last, from + 1));
    const timed = countsTime(s.view.axis, stream) && !isSoftware(stream.protocol);
    const measured: Measured = { lane, from, to, stats: undefined, times: undefined, span: timed ? range : undefined, error: "" };
    s.measured = measured;
    changed();
    try {
      [measured.times, measured.stats] = await Promise.all([
        timed ? ownTimes(s.trace, stream.name, "time", range, functions, signal) : undefined,
        api.stats(s.trace.id, stream.name, from, to, functions, signal)]);
    } catch (error) {
      if (signal.aborted) return;
      measured.error = (error as Error).message;
    }
  } catch {
    // It was aborted, or no place could be found: what was counted stays.
  }
  changed();
}
