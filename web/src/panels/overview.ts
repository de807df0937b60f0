// SPDX-License-Identifier: MIT
// An overview of a trace: hottest functions, missing images, events, modes.
import { html, nothing, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import { ask, type Asked } from "../data/asking.ts";
import { profile, type Profile, type ProfileFunction } from "../data/calls.ts";
import { since } from "../base/epoch.ts";
import { bytes, duration, grouped, modeText, percent, short } from "../base/format.ts";
import { EVENT_GROUP } from "../data/overview.ts";
import { isEvents, isSoftware, timeIsNs, type Stats } from "../data/model.ts";
import type { Session } from "../view/session.ts";
import { modeTimes } from "../view/modetimes.ts";
import { RANKS } from "../view/swatches.ts";
import { REASONS, showRange } from "./reach.ts";
import { ImagesPanel } from "./images.ts";
import { WorthALook } from "./worth.ts";
import { Later } from "../base/later.ts";
import type { Axis } from "../base/scale.ts";

const EVENT_TEXT: Readonly<Record<string, string>> = {
  exception: "exceptions", return: "exception returns", event: "hardware events", software: "software trace",
  mode: "mode changes", context: "context changes", "trace-on": "tracing on", note: "decoder notes",
};

/** Header of a table of gaps with their lengths. */
export const LENGTHS = html`<tr><th scope="col">Reason</th><th scope="col" class="n">Gaps</th>
  <th scope="col" class="n" title="From the last timestamp before the gap to the first one after it: an upper limit">Longest</th><th scope="col" class="n" title="Of all these intervals">Total</th></tr>`;

/** Select a range of time and show it with as much on both sides. */
async function showTimes(app: App, from: number, to: number): Promise<void> {
  await app.setAxis("time");
  if (app.session?.view.axis !== "time") return;
  showRange(app, from, to);
}

/** Cells: duration of missing trace for a reason, if there are timestamps. */
export function lengths(app: App, s: Session, lost: Stats["lost"], reason: string): TemplateResult | typeof nothing {
  if (lost.size === 0) return nothing;
  const l = lost.get(reason);
  const text = (n: number): string => (timeIsNs(s.trace) ? duration(n) : `${short(n)} ticks`);
  const at = l ? since(s.trace.epoch, l.longestAt) : 0;
  return l ? html`<td class="n"><button class="plain" title="Show it on the time axis" @click=${() => void showTimes(app, at, at + l.longest)}>≤ ${text(l.longest)}</button></td><td class="n" title=${`in ${grouped(l.n)} intervals`}>≤ ${text(l.total)}</td>` : html`<td class="n">–</td><td class="n">–</td>`;
}

/** After opening, until all of it is there. */
const CALM_MS = 1000;

/** Set once a place in a lane was chosen: then nobody needs to be told how. */
const CHOSE = "tracelake.chose";

export class OverviewPanel {
  private hint = localStorage.getItem(CHOSE) === null;
  private readonly images: ImagesPanel;
  private readonly worth: WorthALook;
  private chosen: { readonly axis: Axis; readonly byTime: boolean } | undefined; // by the user, until the axis changes
  private asked: Asked<Profile> | undefined;
  private opened: { readonly of: Session | undefined; at: number } = { of: undefined, at: Infinity };
  private readonly later = new Later(() => this.app.changed());

  constructor(private readonly app: App) {
    this.images = new ImagesPanel(app);
    this.worth = new WorthALook(app);
  }

  /** Call each frame, whichever panel is shown. */
  note(s: Session): void {
    if (!this.hint || s.cursor === undefined) return;
    this.hint = false;
    localStorage.setItem(CHOSE, "1");
  }

  view(s: Session): TemplateResult {
    const { overview } = s;
    const { stats } = overview;
    return html`<div class="scroll overview" tabindex="0" role="region" aria-label="Overview">
      ${overview.error !== "" ? html`<p class="trouble" role="alert">${overview.error}</p>` : nothing}
      ${s.trace.message !== "" ? html`<p class="trouble" role="alert">${s.trace.message}</p>` : nothing}
      ${stats ? html`${this.worth.view(s)}${this.functions(s)}${this.gaps(s)}${this.images_(s)}${this.events(s)}${this.modes(s)}`
    : html`<p class="muted hint">Counting…</p>`}
      ${this.facts(s)}</div>`;
  }

  private functions(s: Session): TemplateResult | typeof nothing {
    const { app } = this;
    const stats = s.overview.stats!;
    const named = stats.functions.filter((f) => f.pc !== "0x0");
    if (s.trace.streams.every((x) => x.insns === 0 || isSoftware(x.protocol))) return nothing;
    if (named.length === 0) {
      return html`<p class="hint muted">No function names: no image of this trace has symbols. Code is coloured by call target.</p>`;
    }
    const timed = timeIsNs(s.trace) && s.trace.streams.some((x) => x.hasTime);
    const chosen = this.chosen?.axis === s.view.axis ? this.chosen.byTime : undefined;
    const wanted = timed && (chosen ?? (s.view.axis === "time" && this.calm(s)));
    const times = wanted ? this.timed(s) : undefined;
    const byTime = times !== undefined && (chosen === true || typeof times !== "string"); // until they are known, instructions
    const shown = byTime ? times : {
      rows: named.map((f) => ({ name: f.name, pc: f.pc, calls: f.calls, self: f.insns })), all: stats.insns,
      nameless: stats.functions.filter((f) => f.pc === "0x0").reduce((n, f) => n + f.insns, 0), text: (n: number) => `${grouped(n)} instructions`,
    };
    const buttons = !timed ? nothing : html`<p class="buttons"><button class="action" aria-pressed=${byTime}
      title="Own time instead of own instructions" @click=${() => { this.chosen = { axis: s.view.axis, byTime: !byTime }; app.changed(); }}>By time</button></p>`;
    if (typeof shown === "string") return html`<p class="muted hint">${shown}</p>${buttons}`;
    const rows = shown.rows.slice(0, RANKS);
    const most = Math.max(1, rows[0]?.self ?? 0);
    // Several programs may have functions of the same name.
    const several = (name: string): boolean => rows.filter((f) => f.name === name).length > 1;
    const rest = shown.all - shown.nameless - rows.reduce((n, f) => n + f.self, 0);
    const other = (text: string, n: number): TemplateResult | typeof nothing => (n <= 0 ? nothing
      : html`<tr><th scope="row" class="muted">${text}</th><td></td><td class="n">${percent(n, shown.all)}</td></tr>`);
    return html`<table class="figures hot"><caption>Hottest functions</caption>
      <thead><tr><th scope="col">Function</th><th scope="col" class="n">Calls</th><th scope="col" class="n">${byTime ? "Own time" : "Own insns"}</th></tr></thead>
      <tbody>${rows.map((f) => {
    const on = app.swatches.highlight === f.name;
    return html`<tr class=${on ? "selected" : ""}><th scope="row"><button class="plain" aria-pressed=${on} title=${`${f.name}: highlight it`}
        @click=${() => app.highlight(on ? "" : f.name)}><svg class="bar" aria-hidden="true" preserveAspectRatio="none" viewBox="0 0 100 1"><rect height="1"
          width=${(100 * f.self) / most} fill=${app.swatch(f.name).css}></rect></svg><span class="swatch" .style=${`background:${app.swatch(f.name).css}`}></span>${f.name}${several(f.name) ? html` <span class="muted">${f.pc}</span>` : nothing}</button></th>
      <td class="n">${f.calls > 0 ? short(f.calls) : "–"}</td>
      <td class="n" title=${shown.text(f.self)}>${percent(f.self, shown.all)}</td></tr>`;
  })}
      ${other("all others (paler)", rest)}${other("code without a symbol", shown.nameless)}</tbody></table>${buttons}
      ${app.swatches.highlight === "" ? nothing : html`<p class="buttons"><button class="action" @click=${() => app.highlight("")}>Show all colours</button>
        <button class="action" @click=${() => app.lookFor(`call:${app.swatches.highlight}`)}>Find its calls</button></p>`}`;
  }

  /** Has the trace been in view for a while? Then what only refines numbers may be asked for. */
  private calm(s: Session): boolean {
    if (s !== this.opened.of) this.opened = { of: s, at: Infinity };
    if (performance.now() >= this.opened.at) return true;
    if (!this.app.settled) this.opened.at = Infinity;
    else if (this.opened.at === Infinity) {
      this.opened.at = performance.now() + CALM_MS;
      this.later.within(CALM_MS);
    }
    return false;
  }

  /** Own times of functions in all lanes; a text while they are not known. */
  private timed(s: Session): { rows: readonly ProfileFunction[]; all: number; nameless: number; text: (n: number) => string } | string {
    const { trace } = s;
    const key = [trace.id, trace.generation, trace.state === "sealed" ? 0 : trace.revision].join("/");
    this.asked = ask(this.asked, key, (signal) => profile(trace, undefined, "insn", undefined, false, "time", signal, 1), () => this.app.changed());
    const { answer, error } = this.asked;
    if (!answer) return error || "Counting…";
    const named = answer.functions.filter((f) => f.name !== "").sort((a, b) => b.self - a.self);
    return { rows: named, all: answer.all, nameless: answer.functions.filter((f) => f.name === "").reduce((n, f) => n + f.self, 0), text: duration };
  }

  private table(title: string, rows: readonly TemplateResult[]): TemplateResult | typeof nothing {
    return rows.length === 0 ? nothing : html`<table class="figures"><caption>${title}</caption><tbody>${rows}</tbody></table>`;
  }

  private group(s: Session, title: string): readonly { name: string; count: number }[] {
    return s.overview.stats!.groups.find((g) => g.title === title)?.rows ?? [];
  }

  private row(name: string, kinds: string, count: number, more: TemplateResult | typeof nothing = nothing): TemplateResult {
    return html`<tr><th scope="row"><button class="plain" title="List these" @click=${() => { this.app.setKinds(kinds); this.app.setPanel("events"); }}>${name}</button></th>
      <td class="n">${grouped(count)}</td>${more}</tr>`;
  }

  private gaps(s: Session): TemplateResult | typeof nothing {
    const lost = s.trace.streams.reduce((n, x) => n + x.lostBytes, 0);
    const rows = [...this.group(s, "Gaps")].sort((a, b) => b.count - a.count)
      .map((r) => this.row(REASONS[r.name] ?? r.name, r.name, r.count, lengths(this.app, s, s.overview.stats!.lost, r.name)));
    const wide = s.overview.stats!.lost.size > 0;
    if (lost > 0) rows.push(html`<tr><th scope="row" class="muted">undecodable trace</th><td class="n">${bytes(lost)}</td>${wide ? html`<td></td><td></td>` : nothing}</tr>`);
    return rows.length > 0 && wide ? html`<table class="figures lengths"><caption>Gaps</caption><thead>${LENGTHS}</thead><tbody>${rows}</tbody></table>`
      : this.table("Gaps", rows);
  }

  private events(s: Session): TemplateResult | typeof nothing {
    const counts = new Map(this.group(s, "Events").map((r) => [r.name, r.count]));
    return this.table("Events", EVENT_GROUP.filter((k) => counts.has(k)).map((k) => this.row(k === "note" && s.trace.streams.some((x) => isEvents(x.protocol)) ? "events of perf" : EVENT_TEXT[k] ?? k, k, counts.get(k)!)));
  }

  private modes(s: Session): TemplateResult | typeof nothing {
    const rows = [...this.group(s, "Modes")].sort((a, b) => b.count - a.count);
    const times = s.view.axis === "time" && rows.length > 0 ? modeTimes(s) : undefined;
    if (times && times.size > 0) return this.modesByTime(s, rows.map((r) => r.name), times);
    const total = rows.reduce((n, r) => n + r.count, 0);
    return this.table("Modes", rows.map((r) => html`<tr><th scope="row">${modeText(r.name)}</th>
      <td class="n" title=${`${grouped(r.count)} instructions`}>${percent(r.count, total)}</td></tr>`));
  }

  /** Privileges by time, each with the `names` of its modes. */
  private modesByTime(s: Session, names: readonly string[], times: ReadonlyMap<string, number>): TemplateResult | typeof nothing {
    const total = [...times.values()].reduce((a, b) => a + b, 0);
    const ns = timeIsNs(s.trace);
    const of = (privilege: string): string => names.filter((n) => n.split(".")[0] === privilege.replace(" ", "").toLowerCase()).join(", ") || privilege;
    return this.table("Modes by time", [...times].sort((a, b) => b[1] - a[1]).map(([privilege, time]) => html`<tr><th scope="row">${of(privilege)}</th>
      <td class="n" title=${`~ ${ns ? duration(time, 2) : `${short(time)} ticks`}, by the columns of the overview`}>${time < total / 100 ? "< 1 %" : `~ ${Math.round((100 * time) / total)} %`}</td></tr>`));
  }

  private images_(s: Session): TemplateResult | typeof nothing {
    const { missing, files } = s.overview;
    if (!missing || missing.length + files.length === 0) return nothing;
    return this.images.view(s);
  }

  private facts(s: Session): TemplateResult {
    const t = s.trace;
    const facts: (readonly [string, unknown])[] = [
      ["Trace", t.id], ["Rig", t.rig || "–"], ["Format", t.format],
      ["Started", t.createdMs > 0 ? new Date(t.createdMs).toISOString().replace("T", " ").slice(0, 19) : "–"],
      ["Raw", bytes(t.rawBytes)],
      ["Stored", bytes(t.streams.reduce((n, x) => n + x.storedBytes, 0))],
      ...Object.entries(t.labels),
    ];
    return html`<dl class="details">${facts.map(([k, v]) => html`<div><dt>${k}</dt><dd title=${v}>${v}</dd></div>`)}</dl>
      ${this.hint ? html`<p class="muted hint">Click in a lane to see what was executed there. <kbd>?</kbd> explains the lanes and lists all keys.</p>` : nothing}`;
  }
}
