// SPDX-License-Identifier: MIT
// All calls of a function by how long they took: a histogram with a brush, and the calls in it one by one, slowest
// first. A mean hides what a tail shows.
import { html, nothing, svg, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import { ask, type Asked } from "../data/asking.ts";
import { call } from "../data/calls.ts";
import { grouped } from "../base/format.ts";
import type { Session } from "../view/session.ts";
import { question, quoted, within, type Answer } from "../data/sql.ts";
import { bars, tail, type Bar } from "../data/timing.ts";
import { countsTime } from "../view/weight.ts";
import { leads, lengthText, showCall, stepText } from "./reach.ts";

const BARS = 48;
const HEIGHT = 72;
const LISTED = 200;

export class Spread {
  private counted: Asked<Answer> | undefined;
  private listed: Asked<Answer> | undefined;
  private of = ""; // what the brush is of: the function, and lengths of time or instructions
  private brush: [number, number] = [0, 0]; // bars, the second not included; equal: none
  private hand: number | undefined; // bar at which the brush began
  private at = -1; // of the listed calls, the one that was gone to

  constructor(private readonly app: App) {}

  view(s: Session, fn: string, range: readonly [number, number] | undefined): TemplateResult {
    const stream = s.stream!;
    const timed = countsTime(s.view.axis, stream);
    const length = timed ? "duration" : "insns";
    const which = `FROM call WHERE stream = ${quoted(stream.name)} AND function = ${quoted(fn)} AND ended = 1${within(range)}`;
    const key = [s.trace.id, s.trace.generation, s.trace.state === "sealed" ? 0 : s.trace.revision, which].join("/");
    const of = `${stream.name}/${fn}/${length}`;
    if (this.of !== of) {
      this.of = of;
      this.brush = [0, 0];
      this.at = -1;
    }
    const get = (last: Asked<Answer> | undefined, of: string, text: string): Asked<Answer> =>
      ask(last, of, (signal) => question(s.trace.id, text, signal), () => this.app.changed());
    this.counted = get(this.counted, key, `SELECT ${length}, count(*) ${which} GROUP BY 1 ORDER BY 1`);
    const { answer, error } = this.counted;
    if (error !== "") return html`<p class="trouble" role="alert">${error}</p>`;
    if (!answer) return html`<p class="muted hint">Counting…</p>`;
    const all = bars(answer.rows.map(([n, count]) => [Number(n), Number(count)] as const), BARS);
    if (all.length === 0) return html`<p class="muted hint">No call of it has ended.</p>`;
    const [first, last] = this.brush[1] > this.brush[0] ? this.brush : [0, all.length];
    const [from, to] = [all[Math.min(first, all.length - 1)]!.from, all[Math.min(last, all.length) - 1]!.to];
    this.listed = get(this.listed, `${key} ${from} ${to}`,
      `SELECT position, ${length}, caller ${which} AND ${length} >= ${from} AND ${length} < ${to} ORDER BY 2 DESC, 1 LIMIT ${LISTED}`);
    const n = all.slice(first, last).reduce((sum, bar) => sum + bar.count, 0);
    const text = (x: number): string => lengthText(s, x, timed);
    return html`${this.picture(all, text)}${this.choice(all)}
      <p class="muted hint">${grouped(n)} of ${grouped(all.reduce((sum, bar) => sum + bar.count, 0))} calls, ${text(from)} … ${text(to - 1)}</p>
      ${timed ? stepText(s) : nothing}
      ${this.list(s, n, text)}`;
  }

  // ---- the picture -------------------------------------------------------------------------

  private set(first: number, last: number): void {
    this.brush = [first, last];
    this.at = -1;
    this.app.changed();
  }

  private picture(all: readonly Bar[], text: (n: number) => string): TemplateResult {
    // Single calls are seen beside thousands.
    const height = (count: number): number => (count === 0 ? 0 : 3 + ((HEIGHT - 3) * Math.log2(1 + count)) / Math.log2(1 + Math.max(...all.map((b) => b.count))));
    const [first, last] = this.brush;
    const barAt = (e: PointerEvent): number => {
      const box = (e.currentTarget as Element).getBoundingClientRect();
      return Math.max(0, Math.min(all.length - 1, Math.floor(((e.clientX - box.left) / box.width) * all.length)));
    };
    const drag = (e: PointerEvent): void => {
      if (this.hand === undefined) return;
      const at = barAt(e);
      this.set(Math.min(this.hand, at), Math.max(this.hand, at) + 1);
    };
    const key = (e: KeyboardEvent): void => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (by === undefined) return;
      e.preventDefault();
      e.stopPropagation();
      const [a, b] = last > first ? this.brush : [0, all.length];
      if (e.shiftKey) this.set(a, Math.max(a + 1, Math.min(all.length, b + by)));
      else this.set(Math.max(0, Math.min(b - 1, a + by)), b);
    };
    return html`<div class="spread" tabindex="0" role="group" aria-label=${`Calls by length, ${text(all[0]!.from)} to ${text(all.at(-1)!.to - 1)}: arrows choose from which length on, with Shift up to which`}
      @keydown=${key} @pointerdown=${(e: PointerEvent) => { (e.currentTarget as Element).setPointerCapture(e.pointerId); this.hand = barAt(e); drag(e); }}
      @pointermove=${drag} @pointerup=${() => { this.hand = undefined; }} @dblclick=${() => this.set(0, 0)}>
      <svg viewBox=${`0 0 ${all.length} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        ${last > first ? svg`<rect class="brush" x=${first} y="0" width=${last - first} height=${HEIGHT}></rect>` : nothing}
        ${all.map((bar, i) => svg`<rect class=${last > first && (i < first || i >= last) ? "out" : ""} x=${i + 0.08} width="0.84" y=${HEIGHT - height(bar.count)} height=${height(bar.count)}><title>${grouped(bar.count)} calls, ${text(bar.from)} to ${text(bar.to - 1)}</title></rect>`)}
      </svg><p class="ends"><span>${text(all[0]!.from)}</span><span>${text(all.at(-1)!.to - 1)}</span></p></div>`;
  }

  private choice(all: readonly Bar[]): TemplateResult {
    const pick = (label: string, share: number): TemplateResult => html`<button class="action"
      @click=${() => this.set(share === 1 ? 0 : tail(all, share), share === 1 ? 0 : all.length)}>${label}</button>`;
    return html`<p class="buttons">${pick("All", 1)}${pick("Slowest 10 %", 0.1)}${pick("Slowest 1 %", 0.01)}</p>`;
  }

  // ---- the calls ---------------------------------------------------------------------------

  private async go(s: Session, rows: Answer["rows"], i: number): Promise<void> {
    const row = rows[i];
    const { stream } = s;
    if (!row || !stream) return;
    this.at = i;
    s.depth = undefined;
    this.app.changed();
    const c = await call(s.trace, stream.name, Number(row[0]), undefined, AbortSignal.timeout(20000)).catch(() => undefined);
    if (this.app.session !== s || s.stream !== stream || this.at !== i) return;
    if (c) showCall(this.app, s, c);
    else void this.app.goTo(Number(row[0]));
  }

  private list(s: Session, n: number, text: (n: number) => string): TemplateResult {
    const { answer, error } = this.listed!;
    if (error !== "") return html`<p class="trouble" role="alert">${error}</p>`;
    if (!answer) return html`<p class="muted hint">Listing…</p>`;
    const { rows } = answer;
    const top = Math.max(0, Math.min(this.at - 4, rows.length - 10));
    return html`<p class="buttons"><button class="action" ?disabled=${this.at < 1} @click=${() => void this.go(s, rows, this.at - 1)}>Slower</button>
        <button class="action" ?disabled=${this.at + 1 >= rows.length} @click=${() => void this.go(s, rows, this.at + 1)}>${this.at < 0 ? "Slowest" : "Less slow"}</button>
        <span class="muted">${this.at < 0 ? "" : `${grouped(this.at + 1)} of ${grouped(n)}`}</span></p>
      <table class="figures ints two"><caption>Slowest calls</caption><thead><tr><th scope="col">Called by</th><th scope="col" class="n">At</th><th scope="col" class="n">Took</th></tr></thead>
      <tbody>${rows.slice(top, top + 10).map(([at, length, caller], i) => html`<tr class=${top + i === this.at ? "selected" : ""}>
        <th scope="row">${caller || "–"}</th><td class="n">${leads(grouped(Number(at)), "Go to this call", () => void this.go(s, rows, top + i))}</td>
        <td class="n">${text(Number(length))}</td></tr>`)}</tbody></table>`;
  }
}
