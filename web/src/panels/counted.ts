// SPDX-License-Identifier: MIT
// How often each instruction of a function ran in a range, and for how long: its disassembly with arrows for the
// branches that were taken, and sums for the lines of its source.
import { html, nothing, svg, type TemplateResult } from "lit-html";
import * as api from "../data/api.ts";
import type { App } from "../view/app.ts";
import { ask, type Asked } from "../data/asking.ts";
import { timeText } from "../timeline/describe.ts";
import { absolute } from "../base/epoch.ts";
import { grouped, short } from "../base/format.ts";
import type { Session } from "../view/session.ts";
import { question, quoted, within, type Answer } from "../data/sql.ts";
import { countsTime } from "../view/weight.ts";
import { leads, lengthText } from "./reach.ts";

/** A wider range is cut to as many instructions around the cursor. */
const MOST = 2_000_000;
const ROW = 18;
const LEVELS = 6; // of arrows side by side
const LEVEL = 6; // pixels
/** Requests for the lines of instructions, and how many each tells. */
const LOOKS = 12;
const LOOK = 256;

interface Line {
  count: number; // of its instruction that ran most often
  time: number;
}

interface Insn {
  readonly pc: string;
  readonly text: string;
  readonly count: number;
  readonly taken: number;
  readonly time: number;
  readonly first: number; // position
}

interface Counts {
  readonly insns: readonly Insn[];
  readonly lines: ReadonlyMap<string, Line>; // by "FILE:LINE"
}

export interface Arrow {
  readonly from: number; // row
  readonly to: number;
  readonly level: number;
  readonly taken: number;
}

/** Taken branches between rows, the shortest nearest to them; `rows`: address, text, and how often it was taken. */
export function arrows(rows: readonly { readonly pc: string; readonly text: string; readonly taken: number }[]): Arrow[] {
  const at = new Map(rows.map((row, i) => [BigInt(row.pc), i]));
  const found = rows.flatMap((row, from) => {
    const target = row.taken > 0 ? /\b0x[0-9a-f]+/.exec(row.text)?.[0] : undefined;
    const to = target === undefined ? undefined : at.get(BigInt(target));
    return to === undefined ? [] : [{ from, to, taken: row.taken }];
  });
  const ends: [number, number][][] = [];
  return found.sort((a, b) => Math.abs(a.to - a.from) - Math.abs(b.to - b.from)).map((arrow) => {
    const [low, high] = [Math.min(arrow.from, arrow.to), Math.max(arrow.from, arrow.to)];
    let level = 0;
    while (level < LEVELS - 1 && ends[level]?.some(([a, b]) => a <= high && b >= low)) level++;
    (ends[level] ??= []).push([low, high]);
    return { ...arrow, level };
  });
}

/** The source lines of instructions, looked up where each ran first. */
async function linesOf(s: Session, stream: string, insns: readonly Insn[], signal: AbortSignal): Promise<Map<string, Line>> {
  const place = new Map<string, string>(); // by address
  const open = [...insns].sort((a, b) => a.first - b.first);
  for (let looks = 0; looks < LOOKS;) {
    const next = open.find((insn) => !place.has(insn.pc));
    if (!next) break;
    looks++;
    const rows = await api.insns(s.trace, stream, next.first, LOOK, signal);
    place.set(next.pc, "");
    for (const row of rows) place.set(`0x${BigInt(row.pc).toString(16)}`, row.file === "" ? "" : `${row.file}:${row.line}`);
  }
  const lines = new Map<string, Line>();
  for (const insn of insns) {
    const key = place.get(insn.pc) ?? "";
    if (key === "") continue;
    const line = lines.get(key) ?? { count: 0, time: 0 };
    line.count = Math.max(line.count, insn.count);
    line.time += insn.time;
    lines.set(key, line);
  }
  return lines;
}

export class Counted {
  private asked: Asked<Counts> | undefined;
  private where = ""; // the range, as a condition
  private said = ""; // and in words
  private of = "";

  constructor(private readonly app: App) {}

  /** Count anew, of what is selected or in view now. */
  again(): void {
    this.of = "";
  }

  /** Undefined while it is counted; call in each frame that shows it. */
  counts(s: Session, fn: string): Asked<Counts> {
    const stream = s.stream!;
    const of = [s.trace.id, s.trace.generation, stream.name, fn].join("/");
    if (of !== this.of) {
      this.of = of;
      const at = s.cursorInsn ?? 0;
      const around = [Math.max(0, at - MOST / 2), Math.min(stream.insns, at + MOST / 2)] as const;
      const [from, to] = s.selection ?? [Math.max(0, Math.floor(s.view.from)), Math.ceil(s.view.to)];
      if (s.view.axis === "time") {
        const { epoch } = s.trace;
        this.where = `${within(around)} AND time >= ${absolute(epoch, from)} AND time < ${absolute(epoch, to)}`;
        this.said = `${timeText(s, from, stream.timeIsNs)} to ${timeText(s, to, stream.timeIsNs)}, up to ${short(MOST / 2)} instructions from the cursor`;
      } else {
        const [first, last] = to - from <= MOST ? [from, Math.min(to, stream.insns)] : [Math.max(from, around[0]), Math.min(to, around[1])];
        this.where = within([first, last]);
        this.said = `instructions ${grouped(first)} to ${grouped(last)}`;
      }
    }
    const own = stream.hasTime ? "CASE WHEN lead(position) OVER w = position + 1 THEN lead(time) OVER w - time END" : "0";
    const text = `SELECT pc, text, count(*), sum(taken), sum(own), min(position) FROM (SELECT pc, text, taken, position, function, ${own} AS own
      FROM insn WHERE stream = ${quoted(stream.name)}${this.where} WINDOW w AS (ORDER BY position)) WHERE function = ${quoted(fn)} GROUP BY pc`;
    this.asked = ask(this.asked, `${of}/${this.where}`, async (signal) => {
      const insns = this.read(await question(s.trace.id, text, signal));
      return { insns, lines: await linesOf(s, stream.name, insns, signal) };
    }, () => this.app.changed());
    return this.asked;
  }

  private read(answer: Answer): Insn[] {
    const insns = answer.rows.map(([pc, text, count, taken, time, first]) => ({
      pc: `0x${BigInt.asUintN(64, BigInt(pc!)).toString(16)}`, text: String(text ?? ""), count: Number(count), taken: Number(taken), time: Number(time ?? 0), first: Number(first),
    }));
    return insns.sort((a, b) => (BigInt(a.pc) < BigInt(b.pc) ? -1 : 1));
  }

  line(counts: Counts | undefined, file: string, n: number): Line | undefined {
    return counts?.lines.get(`${file}:${n}`);
  }

  view(s: Session, fn: string): TemplateResult {
    const { answer, error } = this.counts(s, fn);
    if (error !== "") return html`<p class="trouble" role="alert">${error}</p>`;
    if (!answer) return html`<p class="muted hint">Counting ${fn}…</p>`;
    const { insns } = answer;
    // Who had the most is marked in the column that the axis is of.
    const heat = countsTime(s.view.axis, s.stream) ? "time" : "count";
    const most = Math.max(1, ...insns.map((i) => i[heat]));
    const hot = (i: Insn, column: "time" | "count"): string => (column === heat ? `--heat:${Math.round((100 * i[heat]) / most)}%` : "");
    const here = s.insns(s.lane)?.get(s.cursorInsn ?? -1)?.pc;
    const timed = s.stream!.hasTime;
    return html`<div class="counted" tabindex="0" role="region" aria-label=${`Instructions of ${fn} with counts`}>
      <p class="muted hint">${fn}, ${this.said}</p>
      <div class="rows">${this.picture(insns)}<table class="figures"><thead><tr><th scope="col">Address</th><th scope="col" class="n">Count</th><th scope="col" class="n">Taken</th>
        ${timed ? html`<th scope="col" class="n">Time</th>` : nothing}<th scope="col">Instruction</th></tr></thead>
      <tbody>${insns.map((i) => html`<tr class=${here !== undefined && BigInt(here) === BigInt(i.pc) ? "selected" : ""}>
        <th scope="row">${leads(i.pc, "Go to where it ran first in this range", () => void this.app.goTo(i.first))}</th>
        <td class="n heat" .style=${hot(i, "count")} title=${grouped(i.count)}>${short(i.count)}</td>
        <td class="n">${i.taken > 0 ? `${Math.round((100 * i.taken) / i.count)} %` : ""}</td>
        ${timed ? html`<td class="n heat" .style=${hot(i, "time")}>${lengthText(s, i.time, true)}</td>` : nothing}<td><code>${i.text}</code></td></tr>`)}</tbody></table></div></div>`;
  }

  /** Beside the rows, below the head of the table. */
  private picture(insns: readonly Insn[]): TemplateResult {
    const all = arrows(insns);
    const most = Math.max(1, ...all.map((a) => a.taken));
    const y = (row: number): number => row * ROW + ROW / 2;
    const width = LEVELS * LEVEL + 8;
    return html`<svg class="arrows" width=${width} height=${insns.length * ROW} aria-hidden="true">${all.map((a) => {
      const x = width - 5 - (a.level + 1) * LEVEL;
      const wide = 1 + Math.log2(1 + (3 * a.taken) / most);
      return svg`<g class=${a.to <= a.from ? "back" : ""}><path d=${`M${width - 2} ${y(a.from)}H${x}V${y(a.to)}H${width - 3}`} stroke-width=${wide}><title>${grouped(a.taken)} times</title></path>
        <path class="head" d=${`M${width} ${y(a.to)}l-5 -3v6z`}></path></g>`;
    })}</svg>`;
  }
}
