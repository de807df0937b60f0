// SPDX-License-Identifier: MIT
// Questions in SQL: the answer as a table in which every place is a link, and as a chart if there are numbers.
import { html, nothing, svg, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import type { App } from "../view/app.ts";
import { ask, type Asked } from "../data/asking.ts";
import { timeText } from "../timeline/describe.ts";
import { since } from "../base/epoch.ts";
import { grouped } from "../base/format.ts";
import type { Session } from "../view/session.ts";
import { question, quoted, type Answer, type Cell } from "../data/sql.ts";
import { leads, lengthText } from "./reach.ts";

const ROWS = 200;
const POINTS = 2000; // of a chart
const CHART = 90;

/** Columns that are places, or names of them. */
const POSITIONS = ["position", "last_position", "begin"];
const TIMES = ["time", "time_first", "time_last", "earliest", "latest"];
const FUNCTIONS = ["function", "caller"];
const NO_AMOUNT = [...POSITIONS, ...TIMES, "pc", "number", "id", "depth", "opcode", "created_ns"];

/** Questions to begin with; STREAM is the selected one. */
const EXAMPLES: readonly (readonly [string, string])[] = [
  ["Slowest calls", "SELECT function, duration, insns, position FROM call\nWHERE stream = STREAM ORDER BY duration DESC LIMIT 50"],
  ["Calls by function", "SELECT function, count(*) AS calls, percentile(duration, 50) AS p50,\n  percentile(duration, 99) AS p99, max(duration) AS longest, position\nFROM call WHERE stream = STREAM GROUP BY function ORDER BY sum(duration) DESC"],
  ["Exceptions", "SELECT text, count(*) AS times, min(position) AS position FROM event\nWHERE stream = STREAM AND kind = 'exception' GROUP BY text ORDER BY times DESC"],
  ["Gaps", "SELECT stream, position, time, kind, text FROM gap LIMIT 500"],
  ["Who calls whom", "SELECT caller, function, count(*) AS calls, sum(insns) AS insns FROM call\nWHERE stream = STREAM GROUP BY 1, 2 ORDER BY insns DESC LIMIT 100"],
  ["Tables", "SELECT name, sql FROM sqlite_schema"],
];

export class SqlPanel {
  private asked: Asked<Answer> | undefined;
  private typed: string | undefined; // not asked yet
  private field: HTMLTextAreaElement | undefined;
  private most = ROWS;

  constructor(private readonly app: App) {}

  private attach = (element: Element | undefined): void => { this.field = element as HTMLTextAreaElement | undefined; };

  view(s: Session): TemplateResult {
    const { app } = this;
    const text = this.typed ?? app.sql;
    return html`<div class="scroll sql" tabindex="0" role="region" aria-label="SQL">
      <p class="buttons"><label>Begin with <select .value=${""} @change=${(e: Event) => this.example(s, e.target as HTMLSelectElement)}>
        <option value="">…</option>${EXAMPLES.map(([name], i) => html`<option value=${i}>${name}</option>`)}</select></label></p>
      <textarea aria-label="Question in SQL" rows="6" spellcheck="false" placeholder="SELECT … (Ctrl+Enter asks)" .value=${text} ${ref(this.attach)}
        @input=${(e: Event) => { this.typed = (e.target as HTMLTextAreaElement).value; }}
        @keydown=${(e: KeyboardEvent) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); this.go(); } }}></textarea>
      <p class="buttons"><button class="action" @click=${() => this.go()}>Ask</button>
        <span class="muted">Tables: stream, function, call, event, gap, log, access, timeline, insn, note</span></p>
      ${app.sql === "" ? nothing : this.told(s)}</div>`;
  }

  private example(s: Session, select: HTMLSelectElement): void {
    const found = EXAMPLES[Number(select.value)];
    select.value = "";
    if (!found) return;
    this.typed = found[1].replaceAll("STREAM", quoted(s.stream?.name ?? ""));
    this.go();
  }

  private go(): void {
    const text = (this.typed ?? this.field?.value ?? "").trim();
    this.typed = undefined;
    this.most = ROWS;
    // The same question again, of a trace that has grown.
    if (text === this.app.sql) this.asked = undefined;
    this.app.sql = text;
    this.app.moved();
  }

  private told(s: Session): TemplateResult {
    const key = [s.trace.id, s.trace.generation, this.app.sql].join("\n");
    this.asked = ask(this.asked, key, (signal) => question(s.trace.id, this.app.sql, signal), () => this.app.changed());
    const { answer, error } = this.asked;
    if (error !== "") return html`<p class="trouble" role="alert">${error}</p>`;
    if (!answer) return html`<p class="muted hint">Asking…</p>`;
    const { columns, rows } = answer;
    const said = answer.truncated ? `the first ${grouped(rows.length)} rows` : rows.length === 1 ? "1 row" : `${grouped(rows.length)} rows`;
    return html`${this.chart(s, answer)}<p class="muted hint">${said}</p>
      <div class="answer"><table class="figures"><thead><tr>${columns.map((c) => html`<th scope="col" class=${c.kind === "text" ? "" : "n"}>${c.name}</th>`)}</tr></thead>
      <tbody>${rows.slice(0, this.most).map((row) => html`<tr>${row.map((cell, i) => html`<td class=${columns[i]!.kind === "text" ? "" : "n"}>${this.cell(s, answer, row, i, cell)}</td>`)}</tr>`)}</tbody></table></div>
      ${rows.length > this.most ? html`<p class="buttons"><button class="action" @click=${() => { this.most += 2000; this.app.changed(); }}>Show more</button></p>` : nothing}`;
  }

  // ---- links -------------------------------------------------------------------------------

  private cell(s: Session, { columns }: Answer, row: readonly Cell[], i: number, cell: Cell): unknown {
    const { app } = this;
    const { name, kind } = columns[i]!;
    if (cell === null) return html`<span class="muted">–</span>`;
    const of = (column: string): Cell | undefined => row[columns.findIndex((c) => c.name === column)];
    const stream = String(of("stream") ?? s.stream?.name ?? "");
    if (POSITIONS.includes(name) && kind === "integer") {
      return leads(grouped(Number(cell)), `Go there in ${stream}`, () => app.goToIn(stream, Number(cell)));
    }
    if (TIMES.includes(name) && kind === "integer" && s.laneOf(stream) >= 0) {
      const at = since(s.trace.epoch, cell);
      return leads(timeText(s, at, s.trace.streams[s.laneOf(stream)]!.timeIsNs), "Go there on the time axis", () => void this.toTime(stream, at));
    }
    if (FUNCTIONS.includes(name) || (name === "name" && columns.some((c) => c.name === "self"))) {
      return leads(String(cell), "Find its calls", () => app.lookFor(`call:${cell}`));
    }
    if (name === "stream" && s.laneOf(stream) >= 0) return leads(stream, "Select this lane", () => app.selectLane(s.laneOf(stream)));
    if (name === "duration" && kind === "integer") return lengthText(s, Number(cell), true);
    if (name === "trace") return html`<a href=${`#/trace/${encodeURIComponent(String(cell))}`}>${cell}</a>`;
    if (name === "pc" && kind === "integer") {
      const address = `0x${BigInt.asUintN(64, BigInt(cell)).toString(16)}`;
      return leads(address, "Find where it is executed", () => app.lookFor(`pc:${address}`));
    }
    return typeof cell === "number" ? Number.isInteger(cell) ? (cell < 0 ? `−${grouped(-cell)}` : grouped(cell)) : String(Number(cell.toPrecision(6))) : cell;
  }

  private async toTime(stream: string, at: number): Promise<void> {
    const { app } = this;
    const lane = app.session?.laneOf(stream) ?? -1;
    app.jumps();
    if (lane >= 0) app.selectLane(lane);
    await app.setAxis("time");
    if (app.session?.view.axis === "time") app.moveCursor(at);
  }

  // ---- the chart ---------------------------------------------------------------------------

  /** The first amount of each row as a bar, or, of many rows, as a line; a click goes to the row's place. */
  private chart(s: Session, { columns, rows }: Answer): TemplateResult | typeof nothing {
    const of = columns.findIndex((c) => c.kind !== "text" && !NO_AMOUNT.includes(c.name));
    const shown = rows.slice(0, POINTS);
    const values = shown.map((row) => Number(row[of] ?? NaN));
    const known = values.filter(Number.isFinite);
    if (of < 0 || known.length < 2) return nothing;
    const [least, most] = [Math.min(0, ...known), Math.max(0, ...known)];
    const y = (value: number): number => CHART - (CHART * (value - least)) / Math.max(most - least, 1e-300);
    const at = columns.findIndex((c) => c.name === "position" && c.kind === "integer");
    const stream = columns.findIndex((c) => c.name === "stream");
    const go = (e: MouseEvent): void => {
      const box = (e.currentTarget as Element).getBoundingClientRect();
      const row = shown[Math.floor(((e.clientX - box.left) / box.width) * shown.length)];
      if (row && at >= 0 && row[at] !== null) this.app.goToIn(String(row[stream] ?? s.stream?.name ?? ""), Number(row[at]));
    };
    const label = columns.findIndex((c) => c.kind === "text" && c.name !== "stream");
    return html`<figure class="chart"><figcaption>${columns[of]!.name}<span class="muted">, ${grouped(Math.trunc(most))} at most</span></figcaption>
      <svg viewBox=${`0 0 ${shown.length} ${CHART}`} preserveAspectRatio="none" role="img" aria-label=${`${columns[of]!.name} of ${grouped(shown.length)} rows`} @click=${go}>
      ${values.map((value, i) => (Number.isFinite(value) ? svg`<rect x=${i} width=${shown.length > 100 ? 1 : 0.85} y=${Math.min(y(0), y(value))} height=${Math.max(0.5, Math.abs(y(value) - y(0)))}><title>${label >= 0 ? `${shown[i]![label]}: ` : ""}${value}</title></rect>` : nothing))}</svg></figure>`;
  }
}
