// SPDX-License-Identifier: MIT
// Exceptions and interrupts of the selected lane by number, and the processes that ran in it: how often, how long, how
// regular, and where the worst of each was.
import { html, nothing, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import { ask, type Asked } from "../data/asking.ts";
import { call, type CallInfo } from "../data/calls.ts";
import { grouped, percent } from "../base/format.ts";
import { isSoftware, ofLinux, unitName } from "../data/model.ts";
import type { Session } from "../view/session.ts";
import { interrupts, processes, type Handled, type Interrupts, type Process, type Range } from "../data/timing.ts";
import { countsTime } from "../view/weight.ts";
import { leads, lengthText, showCall, showRange, stepText } from "./reach.ts";

const VECTORS = 4;
const LIMIT_MS = 20000;

function title(h: Handled): string {
  return `${h.name || (h.interrupt ? "interrupt" : "exception")} ${h.number ?? ""}`.trim(); // a signal has none
}

/** Frames one behind the other that handle an exception: a vector jumps to what it is the vector of. */
async function handling(s: Session, stream: string, at: number): Promise<CallInfo[]> {
  const frames: CallInfo[] = [];
  for (let next = at; frames.length < VECTORS;) {
    const c = await call(s.trace, stream, next, undefined, AbortSignal.timeout(LIMIT_MS)).catch(() => undefined);
    const [first] = frames;
    if (!c || (first && (c.from !== next || c.depth !== first.depth || c.kind !== "exception" || c.exception !== first.exception))) break;
    frames.push(c);
    next = c.to;
  }
  return frames;
}

export class InterruptsPanel {
  private got: Asked<Interrupts> | undefined;
  private ran: Asked<{ sampled: boolean; rows: Process[] }> | undefined;
  private worst: CallInfo | undefined; // its first frame
  private number: number | undefined; // that is taken apart
  private at: number | undefined; // position of its worst case
  private part = false; // of the selection, or the view

  constructor(private readonly app: App) {}

  view(s: Session): TemplateResult {
    const { stream } = s;
    if (!stream) return html`<p class="muted hint">This trace has no stream yet.</p>`;
    const range = !this.part ? undefined : s.selection ?? [Math.max(0, Math.floor(s.view.from)), Math.ceil(s.view.to)] as const;
    return html`<div class="scroll interrupts" tabindex="0" role="region" aria-label="Interrupts">
      <p class="buttons"><b>${stream.name}</b> <button class="action" aria-pressed=${this.part} title="Only what is selected or in view, not the whole lane"
        @click=${() => { this.part = !this.part; this.app.changed(); }}>${s.selection ? "Only the selection" : "Only the view"}</button></p>
      ${this.handled(s, range)}${this.processes(s, range)}</div>`;
  }

  private key(s: Session, range: Range | undefined): string {
    const { trace, stream, view } = s;
    return [trace.id, trace.generation, trace.state === "sealed" ? 0 : trace.revision, stream?.name, view.axis, range].join("/");
  }

  private ask<T>(last: Asked<T> | undefined, key: string, run: (signal: AbortSignal) => Promise<T>): Asked<T> {
    return ask(last, key, run, () => this.app.changed());
  }

  // ---- interrupts --------------------------------------------------------------------------

  private handled(s: Session, range: Range | undefined): TemplateResult {
    this.got = this.ask(this.got, this.key(s, range), (signal) => interrupts(s.trace, s.stream!.name, s.view.axis, range, signal));
    const { answer, error } = this.got;
    if (error !== "") return html`<p class="trouble" role="alert">${error}</p>`;
    if (!answer) return html`<p class="muted hint">Counting…</p>`;
    const { rows } = answer;
    const timed = answer.timed && countsTime(s.view.axis, s.stream);
    if (rows.length === 0) return html`<p class="muted hint">There were no exceptions and no interrupts.</p>`;
    const text = (n: number): string => this.text(s, n, timed);
    const lengths = (h: Handled): Handled["time"] => (timed ? h.time : h.insns);
    const chosen = this.at === undefined ? undefined : rows.find((h) => h.number === this.number);
    return html`<table class="figures ints"><caption>Exceptions and interrupts</caption>
      <thead><tr><th scope="col">Number</th><th scope="col" class="n">Count</th><th scope="col" class="n" title="Half of them took at most this long">Median</th>
        <th scope="col" class="n" title="99 % of them took at most this long">99 %</th><th scope="col" class="n">Longest</th></tr></thead>
      <tbody>${rows.map((h) => html`<tr class=${h === chosen ? "selected" : ""}><th scope="row">
          <button class="plain" aria-pressed=${h === chosen} title=${`${title(h)}, ${h.handler || "handler not known"}: go to the longest`}
            @click=${() => void this.go(s, h, lengths(h).longest)}>${title(h)} <span class="muted">${h.handler}</span></button></th>
        <td class="n">${grouped(h.entered)}</td><td class="n">${h.ended > 0 ? text(lengths(h).p50) : "–"}</td>
        <td class="n">${h.ended > 0 ? text(lengths(h).p99) : "–"}</td><td class="n">${h.ended > 0 ? text(lengths(h).max) : "–"}</td></tr>`)}</tbody></table>
      ${timed ? stepText(s) : nothing}
      ${chosen ? this.apart(s, chosen, answer, timed) : html`<p class="muted hint">Choose one to go to its longest, and to see its latency and period.</p>`}`;
  }

  private text(s: Session, n: number, timed: boolean): string {
    return !timed && isSoftware(s.stream!.protocol) ? `${grouped(n)} ${unitName(s.stream!.protocol, n)}` : lengthText(s, n, timed);
  }

  /** Go to where an exception was entered, and show it with what it interrupted. */
  private async go(s: Session, h: Handled, at: number): Promise<void> {
    this.number = h.number;
    this.at = at;
    this.app.changed();
    const { stream } = s;
    const frames = await handling(s, stream!.name, at).catch(() => []);
    if (this.app.session !== s || s.stream !== stream || this.at !== at) return;
    const [first, last] = [frames[0], frames.at(-1)];
    this.worst = first;
    s.depth = undefined;
    if (first && last) showCall(this.app, s, { ...first, to: last.to, timeTo: last.timeTo });
    else void this.app.goTo(at);
  }

  /** `timed`: its lengths are times. Latency and period always are. */
  private apart(s: Session, h: Handled, { timed: dated, time }: Interrupts, timed: boolean): TemplateResult {
    const text = (n: number): string => this.text(s, n, timed);
    const length = (n: number): string => this.text(s, n, true);
    const of = timed ? h.time : h.insns;
    const to = (label: string, at: number, what: string): TemplateResult => leads(label, what, () => void this.go(s, h, at));
    const fields: (readonly [string, unknown])[] = [
      ["Handled", `${h.entered === 1 ? "once" : `${grouped(h.entered)} times`}${h.entered > h.ended ? `, ${grouped(h.entered - h.ended)} without an end` : ""}`],
      ["Took", h.ended > 0 ? html`${text(of.min)} … ${to(text(of.max), of.longest, "Go to the longest")}` : "–"],
      ["50 / 90 %", `${text(of.p50)} / ${text(of.p90)}`],
      ["99 / 99.9 %", `${text(of.p99)} / ${text(of.p999)}`],
      ["In all", `${text(of.total)}${timed && h.nested === 0 ? ` (${percent(of.total, time)})` : ""}`],
    ];
    if (dated && h.latencies > 0) {
      fields.push(["Latency", html`<span title="Since the last return to code that is no handler">${length(h.latency_min)} … ${to(length(h.latency_max), h.latency_worst, "Go to the longest latency")}, mean ${length(Math.round(h.latency_total / h.latencies))}</span>`]);
    }
    if (dated && h.periods > 0) {
      fields.push(["Period", html`<span title="From one entry to the next">${length(h.period_min)} … ${to(length(h.period_max), h.period_longest, "Go to the longest period")}, mean ${length(Math.round(h.period))}</span>`],
        ["Jitter", html`<span title="Standard deviation of the period">${length(Math.round(h.jitter))}</span>`]);
    }
    fields.push(["Nested", h.nested === 0 ? "never" : `${grouped(h.nested)} times, ${h.deepest} deep`]);
    const c = this.worst;
    if (c && c.from === this.at) {
      const { callerFrom } = c;
      fields.push(["Interrupted", callerFrom === undefined ? c.caller || "–" : leads(c.caller || "unnamed code", "Go to the call that it interrupted", () => {
        s.depth = c.depth - 1;
        void this.app.goTo(callerFrom);
      })]);
    }
    return html`<dl class="details">${fields.map(([k, v]) => html`<div><dt>${k}</dt><dd>${v}</dd></div>`)}</dl>`;
  }

  // ---- processes ---------------------------------------------------------------------------

  private processes(s: Session, range: Range | undefined): TemplateResult | typeof nothing {
    const { axis } = s.view;
    if (isSoftware(s.stream!.protocol) || (axis === "time" && !s.stream!.hasTime)) return nothing;
    const all: Range = range ?? [s.extent.first, s.extent.last];
    this.ran = this.ask(this.ran, this.key(s, range), (signal) => processes(s.trace, s.stream!.name, axis, all, ofLinux(s.trace), signal));
    const { answer } = this.ran;
    if (!answer || answer.rows.length === 0) return nothing;
    const about = (text: string): string => (answer.sampled ? `~ ${text.replace(/^~ /, "")}` : text);
    const text = (n: number): string => about(this.text(s, n, axis === "time"));
    const sum = all[1] - all[0];
    return html`<table class="figures ints"><caption>Processes${answer.sampled ? ", by samples of a long range" : ""}</caption>
      <thead><tr><th scope="col">Process</th><th scope="col" class="n" title="How often it began to run">Runs</th><th scope="col" class="n">Share</th>
        <th scope="col" class="n">In all</th><th scope="col" class="n">Longest</th></tr></thead>
      <tbody>${answer.rows.slice(0, 100).map((p) => html`<tr><th scope="row"><button class="plain" title=${`${p.name}: show its longest run`}
          @click=${() => { showRange(this.app, ...p.longest); this.app.moveCursor(p.longest[0], false); }}>${p.name.replace(/^process /, "")}</button></th>
        <td class="n">${about(grouped(p.runs))}</td><td class="n">${percent(p.total, sum)}</td><td class="n">${text(p.total)}</td>
        <td class="n">${text(p.longest[1] - p.longest[0])}</td></tr>`)}</tbody></table>`;
  }
}
