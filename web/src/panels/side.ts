// SPDX-License-Identifier: MIT
// The panel at the right: instructions around the cursor, statistics of a range, hits of a search.
import { html, nothing, type TemplateResult } from "lit-html";
import { rangeUrl } from "../data/api.ts";
import type { App } from "../view/app.ts";
import type { Session } from "../view/session.ts";
import { timeText } from "../timeline/describe.ts";
import { estimated, grouped, percent, short } from "../base/format.ts";
import { isSoftware, type Stats } from "../data/model.ts";
import type { OwnTimes } from "../data/timing.ts";
import type { Panel } from "../view/url.ts";
import { InsnList } from "./insnlist.ts";
import { Lazy } from "./lazy.ts";
import { LENGTHS, lengths, OverviewPanel } from "./overview.ts";
import { boundedText, lengthText, REASONS } from "./reach.ts";
import { sourceLink } from "./sourcelink.ts";
import { Strip } from "./strip.ts";

export const TABS: readonly (readonly [Panel, string])[] = [
  ["overview", "Overview"],
  ["insns", "Instructions"],
  ["source", "Source"],
  ["log", "Log"],
  ["events", "Events"],
  ["calls", "Calls"],
  ["interrupts", "Interrupts"],
  ["stats", "Statistics"],
  ["find", "Search"],
  ["together", "Cores"],
  ["sql", "SQL"],
  ["notes", "Notes"],
  ["compare", "Compare"],
];

/** Icons of the tabs, 16 × 16. */
const ICONS: Readonly<Partial<Record<Panel, string>>> = {
  overview: "M2.5 13.5V8M6.2 13.5v-11M9.8 13.5V6M13.5 13.5v-4",
  insns: "M2 4h12M2 8h12M2 12h8",
  source: "M5.5 4L2 8l3.5 4M10.5 4L14 8l-3.5 4",
  log: "M2 3h12v10H2zM4.5 6l2 2-2 2M8 10.5h3.5",
  events: "M9 1.5L3.5 9H8l-1 5.5L12.5 7H8z",
  calls: "M2 3.5h12v3H2zM2 6.5h8v3H2zM2 9.5h5v3H2z",
  interrupts: "M2 11h4V4l4 7h4M10 4h4M10 4v3",
  sql: "M3 4c0-2 10-2 10 0v8c0 2-10 2-10 0zM3 4c0 2 10 2 10 0M3 8c0 2 10 2 10 0",
  stats: "M12 3H4l4.5 5L4 13h8",
  find: "M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 0 0 0-9M10.3 10.3L14 14",
  together: "M2 4h5M9 4h5M2 8h8M12 8h2M2 12h3M7 12h7",
  notes: "M3 2.5h10v11H3zM5.5 6h5M5.5 9h5",
  compare: "M2.5 3h4v10h-4zM9.5 3h4v10h-4z",
};

export class Side {
  private readonly list: InsnList;
  private readonly overview: OverviewPanel;
  private readonly lazy: ReadonlyMap<Panel, Lazy>;

  constructor(private readonly app: App) {
    this.list = new InsnList(app);
    this.overview = new OverviewPanel(app);
    this.lazy = new Map<Panel, Lazy>([
      ["calls", new Lazy(app, async () => new (await import("./later.js")).CallsPanel(app))],
      ["source", new Lazy(app, async () => new (await import("./later.js")).SourcePanel(app))],
      ["find", new Lazy(app, async () => new (await import("./later.js")).FindPanel(app))],
      ["events", new Lazy(app, async () => new (await import("./later.js")).EventsPanel(app))],
      ["log", new Lazy(app, async () => new (await import("./later.js")).LogPanel(app))],
      ["notes", new Lazy(app, async () => new (await import("./later.js")).NotesPanel(app))],
      ["together", new Lazy(app, async () => new (await import("./later.js")).TogetherPanel(app, () => new Strip(app)))],
      ["interrupts", new Lazy(app, async () => new (await import("./later.js")).InterruptsPanel(app))],
      ["sql", new Lazy(app, async () => new (await import("./later.js")).SqlPanel(app))],
      ["compare", new Lazy(app, async () => new (await import("./later.js")).ComparePanel(app))],
    ]);
  }

  view(s: Session): TemplateResult | typeof nothing {
    const { app } = this;
    this.overview.note(s);
    if (app.panel === "none") return nothing;
    const index = TABS.findIndex(([id]) => id === app.panel);
    const key = (e: KeyboardEvent): void => {
      const to = { ArrowDown: index + 1, ArrowRight: index + 1, ArrowUp: index - 1, ArrowLeft: index - 1, Home: 0, End: -1 }[e.key];
      if (to === undefined) return;
      e.preventDefault();
      const next = TABS[(to + TABS.length) % TABS.length]!;
      app.setPanel(next[0]);
      document.getElementById(`tab-${next[0]}`)?.focus();
    };
    const body = this.lazy.get(app.panel)?.view(s) ?? (app.panel === "overview" ? this.overview.view(s) : app.panel === "stats" ? this.stats(s) : this.insns(s));
    return html`<aside class="side" aria-label="Details">
      <div class="tabs"><button class="close" aria-label="Close the panel" title="Close the panel" @click=${() => app.setPanel("none")}>×</button>
        <div role="tablist" aria-label="Details" aria-orientation="vertical" @keydown=${key}>
        ${TABS.map(([id, text]) => html`<button role="tab" id=${`tab-${id}`} aria-selected=${id === app.panel}
          aria-controls="tabpanel" tabindex=${id === app.panel ? 0 : -1}
          @click=${() => app.setPanel(id)}><svg viewBox="0 0 16 16" aria-hidden="true"><path d=${ICONS[id] ?? ""}></path></svg>${text}</button>`)}</div>
      </div>
      <div class="tabpanel" id="tabpanel" role="tabpanel" aria-labelledby=${`tab-${app.panel}`}>${body}</div>
    </aside>${this.lazy.get(app.panel)?.below(s) ?? nothing}`;
  }

  // ---- instructions ------------------------------------------------------------------------

  private insns(s: Session): TemplateResult {
    const stream = s.stream;
    if (!stream) return html`<p class="muted hint">This trace has no streams yet.</p>`;
    if (s.cursorInsn === undefined) return html`<p class="muted hint">Click in a lane to see what was executed there.</p>`;
    return html`${this.details(s)}${this.list.view(s)}`;
  }

  private details(s: Session): TemplateResult {
    const at = s.cursorInsn;
    if (at === undefined) return html``;
    const row = s.insns(s.lane)?.get(at);
    const time = s.position?.time ?? row?.time;
    const ns = s.stream?.timeIsNs ?? true;
    // Messages are not executed anywhere.
    const software = isSoftware(s.stream?.protocol ?? "");
    const executed: (readonly [string, unknown])[] = [
      ["Function", row === undefined ? "…" : row.fn === "" ? "–" : html`<span class="swatch"
        .style=${`background:${this.app.swatch(row.fn).css}`}></span>${row.fn}<span class="muted">${row.offset}</span>`],
      ["PC", html`<code>${row?.pc ?? "…"}</code>`],
    ];
    const fields: (readonly [string, unknown])[] = [
      ...(software ? [] : executed),
      [software ? "Record" : "Instruction", grouped(at)],
      ["Time", time === undefined ? "–" : timeText(s, time, ns)],
      ...(row?.file ? [["Source", sourceLink(this.app, row)] as const] : []),
      ...(software ? [] : [["Mode", row?.mode || "–"] as const]),
      ["Trace byte", s.position ? grouped(s.position.byte) : "…"],
    ];
    if (row && row.events.length > 0) fields.push(["Preceded by", row.events.join(", ")]);
    return html`<dl class="details">${fields.map(([k, v]) => html`<div><dt>${k}</dt><dd>${v}</dd></div>`)}</dl>`;
  }

  // ---- statistics --------------------------------------------------------------------------

  private stats(s: Session): TemplateResult {
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
      href=${rangeUrl(s.trace.id, stream.name, "insn", m.from, m.to, format)}>${format}</a>`;
    return html`<div class="scroll" tabindex="0" role="region" aria-label="Statistics">
      <dl class="details">
        <div><dt>Stream</dt><dd>${stream.name}</dd></div>
        ${m.span ? html`<div><dt>Time</dt><dd>${m.span.map((at) => timeText(s, at, stream.timeIsNs)).join(" – ")}</dd></div>
        <div><dt>Length</dt><dd>${lengthText(s, m.span[1] - m.span[0], true)}</dd></div>` : nothing}
        <div><dt>From</dt><dd>${grouped(m.from)}</dd></div>
        <div><dt>To</dt><dd>${grouped(m.to)}</dd></div>
        <div><dt>${isSoftware(stream.protocol) ? "Records" : "Instructions"}</dt><dd>${grouped(m.to - m.from)}</dd></div>
        <div><dt>Download</dt><dd class="links">${link("zstf")}${link("stf")}${link("text")}</dd></div>
      </dl>
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
