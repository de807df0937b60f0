// SPDX-License-Identifier: MIT
// Exact statistics of a range of a lane: its hottest functions, events and gaps.
import { html, nothing, type TemplateResult } from "lit-html";
import { rangeUrl } from "../data/api.ts";
import type { App } from "../view/app.ts";
import type { Session } from "../view/session.ts";
import { timeText } from "../timeline/describe.ts";
import { estimated, grouped, percent, short } from "../base/format.ts";
import { isSoftware, type Stats } from "../data/model.ts";
import type { OwnTimes } from "../data/timing.ts";
import { Filter } from "./filter.ts";
import { LENGTHS, lengths } from "./overview.ts";
import { boundedText, exactText, REASONS } from "./reach.ts";

export class StatsPanel {
  private readonly filter = new Filter(() => this.app.changed()); // of downloads

  constructor(private readonly app: App) {}

  view(s: Session): TemplateResult {
    const m = s.measured;
    const what = s.selection ? "the selection" : "the view";
    const again = html`<button class="action" @click=${() => this.app.measure()}>Measure ${what}</button>`;
    if (!m) {
      return html`<p class="muted hint">Drag on the ruler, or Shift-drag in a lane, to select a range.</p>
        <p class="hint">${again}</p>`;
    }
    const stream = s.trace.streams[m.lane];
    if (!stream) return html``;
    const link = (format: string): TemplateResult => html`<a class="action" download
      href=${rangeUrl(s.trace.id, stream.name, "insn", m.from, m.to, format) + this.filter.query}>${format}</a>`;
    return html`<div class="scroll" tabindex="0" role="region" aria-label="Statistics">
      <dl class="details">
        <div><dt>Stream</dt><dd>${stream.name}</dd></div>
        ${m.span ? html`<div><dt>Time</dt><dd>${m.span.map((at) => timeText(s, at, stream.timeIsNs)).join(" – ")}</dd></div>
        <div><dt>Length</dt><dd>${exactText(s, m.span[1] - m.span[0])}</dd></div>` : nothing}
        <div><dt>From</dt><dd>${grouped(m.from)}</dd></div>
        <div><dt>To</dt><dd>${grouped(m.to)}</dd></div>
        <div><dt>${isSoftware(stream.protocol) ? "Records" : "Instructions"}</dt><dd>${grouped(m.to - m.from)}</dd></div>
        <div><dt title="As far as the fields below do not leave it out">Download</dt><dd class="links">${link("zstf")}${link("stf")}${link("text")}</dd></div>
      </dl>${this.filter.view()}
      ${m.error !== "" ? html`<p class="trouble" role="alert">${m.error}</p>`
    : m.stats ? html`${m.times ? this.byTime(s, m.times) : isSoftware(stream.protocol) ? this.bySamples(m.stats) : this.byInsns(m.stats)}${this.tables(s, m.stats)}` : html`<p class="muted hint">Counting…</p>`}
      <p class="hint">${again}</p>
    </div>`;
  }

  /** A row of a table of functions; `share` of the longest bar. */
  private functionRow(name: string, pc: string, share: number, cells: TemplateResult): TemplateResult {
    return html`<tr><th scope="row"><button class="plain" title=${name} ?disabled=${pc === "0x0"} @click=${() => this.app.lookFor(`call:${name}`)}>
        <svg class="bar" aria-hidden="true" preserveAspectRatio="none" viewBox="0 0 100 1"><rect height="1" width=${100 * share} fill=${this.app.swatch(name).css}></rect></svg>
        <span>${name || pc}</span></button></th>${cells}</tr>`;
  }

  /** Only a part of the functions is listed. */
  private rest(listed: number, all: number): TemplateResult | typeof nothing {
    return all <= listed ? nothing : html`<p class="buttons"><span class="muted">${grouped(listed)} of ${grouped(all)}</span>
      ${listed < 1000 ? html`<button class="action" @click=${() => this.app.measure(1000)}>Show ${all > 1000 ? "1,000" : "all"}</button>` : nothing}</p>`;
  }

  private byTime(s: Session, times: OwnTimes): TemplateResult {
    const most = Math.max(1, ...times.rows.map((f) => f.time.value));
    return html`<table class="figures hot"><caption>Hottest functions by own time</caption>
      <thead><tr><th scope="col">Function</th><th scope="col" class="n">Calls</th><th scope="col" class="n">Time</th><th scope="col" class="n">Share</th></tr></thead>
      <tbody>${times.rows.map((f) => this.functionRow(f.name, f.pc, f.time.value / most, html`
        <td class="n">${f.calls > 0 ? short(f.calls) : "–"}</td>
        <td class="n" title=${`${boundedText(s, f.time)}, ${grouped(f.insns)} instructions`}>${boundedText(s, f.time, estimated)}</td>
        <td class="n">${percent(f.time.value, times.ran)}</td>`))}</tbody></table>${this.rest(times.rows.length, times.all)}`;
  }

  private byInsns(stats: Stats): TemplateResult {
    const most = Math.max(1, ...stats.functions.map((f) => f.insns));
    return html`<table class="figures hot"><caption>Hottest functions</caption>
      <thead><tr><th scope="col">Function</th><th scope="col" class="n">Calls</th>
        <th scope="col" class="n">Instructions</th><th scope="col" class="n">Share</th></tr></thead>
      <tbody>${stats.functions.map((f) => this.functionRow(f.name, f.pc, f.insns / most, html`
        <td class="n">${f.calls > 0 ? short(f.calls) : "–"}</td>
        <td class="n" title=${grouped(f.insns)}>${short(f.insns)}</td>
        <td class="n">${percent(f.insns, stats.insns)}</td>`))}</tbody></table>${this.rest(stats.functions.length, stats.functionsRun)}`;
  }

  /** What hardware saw of a program that is not traced. */
  private bySamples(stats: Stats): TemplateResult | typeof nothing {
    const counts = stats.functions.map((f) => f.insns);
    const all = counts.reduce((n, x) => n + x, 0);
    if (all === 0) return nothing;
    return html`<table class="figures hot"><caption title="Samples of the program counter, and accesses that a comparator told">Functions seen: a statistic</caption>
      <thead><tr><th scope="col">Function</th><th scope="col" class="n">Seen</th><th scope="col" class="n">Share</th></tr></thead>
      <tbody>${stats.functions.map((f) => this.functionRow(f.name, f.pc, f.insns / Math.max(...counts), html`
        <td class="n" title=${grouped(f.insns)}>${short(f.insns)}</td>
        <td class="n">${percent(f.insns, all)}</td>`))}</tbody></table>${this.rest(stats.functions.length, stats.functionsRun)}`;
  }

  private tables(s: Session, stats: Stats): TemplateResult {
    return html`${stats.groups.map((g) => {
    const timed = g.title === "Gaps" && stats.lost.size > 0;
    return html`<table class="figures ${timed ? "lengths" : ""}"><caption>${g.title}</caption>${timed ? html`<thead>${LENGTHS}</thead>` : nothing}
        <tbody>${g.rows.map((r) => html`<tr><th scope="row">${timed ? REASONS[r.name] ?? r.name : r.name.replaceAll("_", " ")}</th>
          <td class="n">${grouped(r.count)}</td>${timed ? lengths(this.app, s, stats.lost, r.name) : nothing}</tr>`)}</tbody></table>`;
  })}`;
  }
}
