// SPDX-License-Identifier: MIT
// Details of the call at the cursor, and the callers and callees in a range: picture, tree and
// table.
import { html, nothing, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import { ask, type Asked } from "../data/asking.ts";
import { call, profile, type CallInfo, type Profile, type ProfileFunction, type Weight } from "../data/calls.ts";
import { timeText } from "../timeline/describe.ts";
import { grouped, percent, short } from "../base/format.ts";
import type { Session } from "../view/session.ts";
import { Flame } from "./flame.ts";
import { Inside } from "./inside.ts";
import { boundedText } from "./reach.ts";
import { Spread } from "./spread.ts";

export class CallsPanel {
  private one: Asked<CallInfo> | undefined;
  private tree: Asked<Profile> | undefined;
  private whole: Asked<Profile> | undefined;
  private callers = false;
  private all = false;
  private wide = false; // the picture is below the lanes
  private byInsns = false; // on the time axis
  private most = 100; // number of functions listed
  private range: readonly [number, number] | undefined; // of the tree, in units of the axis
  private readonly flame: Flame;
  private readonly inside: Inside;
  private readonly spread: Spread;
  private readonly shown = new Set<"inside" | "spread">(); // below the details

  constructor(private readonly app: App) {
    this.flame = new Flame(app);
    this.inside = new Inside(app);
    this.spread = new Spread(app);
  }

  view(s: Session): TemplateResult {
    return html`<div class="scroll calls" tabindex="0" role="region" aria-label="Calls">
      ${this.callView(s)}${this.treeView(s)}</div>`;
  }

  private ask<T>(
    last: Asked<T> | undefined, key: string, run: (signal: AbortSignal) => Promise<T>,
  ): Asked<T> {
    return ask(last, key, run, () => this.app.changed());
  }

  // ---- a call ------------------------------------------------------------------------------

  private callView(s: Session): TemplateResult {
    const { stream, cursorInsn } = s;
    if (!stream || cursorInsn === undefined) {
      return html`<p class="muted hint">Click in a lane or on a slice of its call stack to see the details of a call.</p>`;
    }
    const key = [s.trace.id, s.trace.generation, stream.name, cursorInsn, s.depth].join("/");
    this.one = this.ask(this.one, key, (signal) => call(s.trace, stream.name, cursorInsn, s.depth, signal));
    if (this.one.error !== "") return html`<p class="trouble" role="alert">${this.one.error}</p>`;
    const c = this.one.answer;
    return c ? this.taken(s, c) : html`<p class="muted hint">Loading…</p>`;
  }

  private taken(s: Session, c: CallInfo): TemplateResult {
    const length = c.to - c.from;
    const ns = s.stream?.timeIsNs ?? true;
    const wide = c.timeFrom !== undefined && c.timeTo !== undefined ? c.timeTo - c.timeFrom : undefined;
    const go = (text: string, at: number | undefined, depth: number | undefined, title: string): TemplateResult =>
      html`<button class="action" title=${title} ?disabled=${at === undefined}
        @click=${() => { s.depth = depth; void this.app.goTo(at!); }}>${text}</button>`;
    const fields: (readonly [string, unknown])[] = [
      ["Function", html`<span class="swatch" .style=${`background:${this.app.swatch(c.name).css}`}></span>${
        c.kind === "exception" ? `${c.interrupt ? "interrupt" : "exception"} ${c.exception ?? ""} ` : ""}${c.name || c.pc}`],
      ["Called by", c.kind === "root" ? "–" : c.caller || "–"],
      ["Depth", `${c.depth} of ${c.deepest}`],
      ...(wide === undefined ? [] : [["Took", `${boundedText(s, { value: wide, least: c.timeLeast, most: c.timeMost })}${c.ended ? "" : " so far"}`], ["Begins", timeText(s, c.timeFrom!, ns)]] as const),
      ["Instructions", `${grouped(length)}${c.ended ? "" : " so far"}`],
      ["Self", `${grouped(c.self)} insns (${percent(c.self, length)})`],
    ];
    const { all } = c;
    if (all) {
      fields.push(["Call", c.number === undefined ? "none: already running when the trace began" : `${grouped(c.number)} of ${grouped(all.calls)}`]);
      if (all.finished > 0) {
        fields.push(["All calls", `${short(all.min)} to ${short(all.max)} insns, ${short(Math.round(all.total / all.finished))} on average`]);
      }
    }
    return html`<dl class="details">${fields.map(([k, v]) => html`<div><dt>${k}</dt><dd>${v}</dd></div>`)}</dl>
      <p class="buttons">${go("Outer", c.depth > 0 ? c.from : undefined, c.depth - 1, "The calling function's call")}
        ${go("Inner", c.depth < c.deepest ? s.cursorInsn : undefined, c.depth + 1, "The call it had made at the cursor")}
        ${go("Previous", all?.previous, undefined, "The previous call of this function")}
        ${go("Next", all?.next, undefined, "The next call of this function")}
        ${go("Longest", all?.longest, undefined, "The longest call of this function")}
        <button class="action" title="Select this call and show its call tree" @click=${() => void this.select(s, c)}>Select</button>
        ${this.toggle("inside", "Inside", "Whom it called, what interrupted it, and what other cores did meanwhile")}
        ${c.name !== "" && c.kind !== "root" ? this.toggle("spread", "All by length", "All calls of this function by how long they took") : nothing}</p>
      ${this.shown.has("inside") ? this.inside.view(s, c) : nothing}
      ${this.shown.has("spread") && c.name !== "" && c.kind !== "root" ? this.spread.view(s, c.name, undefined) : nothing}`;
  }

  private toggle(what: "inside" | "spread", text: string, title: string): TemplateResult {
    return html`<button class="action" title=${title} aria-pressed=${this.shown.has(what)} @click=${() => {
      if (!this.shown.delete(what)) this.shown.add(what);
      this.app.changed();
    }}>${text}</button>`;
  }

  /** Select the call, and show its tree. */
  private async select(s: Session, c: CallInfo): Promise<void> {
    const time = s.view.axis === "time";
    if (time && (c.timeFrom === undefined || c.timeTo === undefined)) return;
    this.app.select(time ? [c.timeFrom!, Math.max(c.timeFrom! + 1, c.timeTo!)] : [c.from, c.to]);
    this.all = false;
    this.show(s);
  }

  // ---- a range -----------------------------------------------------------------------------

  private show(s: Session): void {
    this.range = s.selection ?? [Math.max(0, Math.floor(s.view.from)), Math.ceil(s.view.to)];
    this.flame.reset();
    this.app.changed();
  }

  private treeView(s: Session): TemplateResult {
    const what = s.selection ? "the selection" : "the view";
    const bar = html`<p class="buttons"><button class="action" @click=${() => this.show(s)}>Call tree of ${what}</button>
      ${this.range ? html`<button class="action" aria-pressed=${this.callers} title="Under each function, its callers"
          @click=${() => { this.callers = !this.callers; this.flame.reset(); this.app.changed(); }}>Bottom-up</button>
        <button class="action" aria-pressed=${this.wide} title="The picture over the whole width of the page" @click=${() => { this.wide = !this.wide; this.app.changed(); }}>Wide</button>
        ${s.view.axis === "time" ? html`<button class="action" aria-pressed=${this.byInsns} title="Count instructions, not time"
          @click=${() => { this.byInsns = !this.byInsns; this.flame.reset(); this.app.changed(); }}>By instructions</button>` : nothing}
        ${s.trace.streams.length > 1 && s.view.axis === "time" ? html`<button class="action" aria-pressed=${this.all}
          @click=${() => { this.all = !this.all; this.flame.reset(); this.app.changed(); }}>All lanes</button>` : nothing}` : nothing}</p>`;
    const { range } = this;
    const name = this.all && s.view.axis === "time" ? undefined : s.stream?.name;
    if (!range || (name === undefined && !this.all)) return bar;
    const { axis } = s.view;
    const base = [s.trace.id, s.trace.generation, s.trace.state === "sealed" ? 0 : s.trace.revision, name].join("/");
    const weight: Weight = axis === "time" && !this.byInsns ? "time" : "insns";
    this.tree = this.ask(this.tree, [base, axis, ...range, this.callers, weight].join("/"), (signal) =>
      profile(s.trace, name, axis, range, this.callers, weight, signal));
    const tree = this.tree.answer;
    if (this.tree.error !== "") return html`${bar}<p class="trouble" role="alert">${this.tree.error}</p>`;
    if (!tree) return html`${bar}<p class="muted hint">Counting…</p>`;
    // Its share of the whole is loaded afterwards: that may take a while.
    this.whole = this.ask(this.whole, [base, weight].join("/"), (signal) =>
      profile(s.trace, name, axis, undefined, false, weight, signal));
    return html`${bar}${this.flame.view(tree, this.callers, this.one?.answer?.name ?? "", this.wide)}${this.functions(tree, this.whole.answer)}`;
  }

  /** The picture as wide as the page. */
  below(s: Session): TemplateResult | typeof nothing {
    const tree = this.tree?.answer;
    if (!this.wide || !this.range || !tree || tree.nodes.length === 0 || !s.stream) return nothing;
    return html`<section class="lanes beside" aria-label="Flame graph"><div class="scroll" tabindex="0" role="region" aria-label="Call paths, outermost first">
      ${this.flame.picture(tree, this.one?.answer?.name ?? "")}</div></section>`;
  }

  private functions(p: Profile, whole: Profile | undefined): TemplateResult {
    // Several programs may have functions of the same name, even at the same address: then it is not told whose share it is.
    const key = (f: ProfileFunction): string => `${f.name} ${f.pc}`;
    const of = new Map<string, number>();
    for (const f of whole?.functions ?? []) of.set(key(f), of.has(key(f)) ? NaN : f.self);
    const several = new Set(p.functions.map((f) => f.name).filter((name, i, all) => name !== "" && all.indexOf(name) < i));
    return html`<table class="figures wide"><caption>${p.sampled ? "Functions by samples of the program counter: a statistic"
      : p.weight === "time" ? "Functions by self time" : "Functions by self instructions"}</caption>
      <thead><tr><th scope="col">Function</th><th scope="col" class="n">Self</th><th scope="col" class="n">Total</th>
        <th scope="col" class="n">Calls</th><th scope="col" class="n" title="Self as a share of the whole trace">Of trace</th></tr></thead>
      <tbody>${p.functions.slice(0, this.most).map((f) => html`<tr><th scope="row" title=${`${f.name} ${f.pc}`}>${f.name || f.pc}${several.has(f.name) ? html` <span class="muted">${f.pc}</span>` : nothing}</th>
        <td class="n" title=${this.flame.amount(p, f.self)}>${percent(f.self, p.all)}</td>
        <td class="n" title=${this.flame.amount(p, f.total)}>${percent(f.total, p.all)}</td>
        <td class="n" title=${f.finished > 0 ? `${this.flame.amount(p, Math.round(f.length / f.finished))} on average` : ""}>${f.calls > 0 ? short(f.calls) : "–"}</td>
        <td class="n">${!whole ? "…" : Number.isNaN(of.get(key(f))) ? "–" : percent(of.get(key(f)) ?? 0, whole.all)}</td></tr>`)}</tbody></table>
      ${p.functions.length > this.most ? html`<p class="buttons"><span class="muted">${grouped(this.most)} of ${grouped(p.functions.length)}</span>
        <button class="action" @click=${() => { this.most = Infinity; this.app.changed(); }}>Show all</button></p>` : nothing}`;
  }
}
