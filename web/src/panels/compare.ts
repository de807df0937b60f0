// SPDX-License-Identifier: MIT
// Two runs: the place where they diverge, their differences, and one difference side by side.
import { html, nothing, type TemplateResult } from "lit-html";
import * as api from "../api.ts";
import type { App } from "../app.ts";
import { ask, type Asked } from "../asking.ts";
import { compare, pairs, type Comparison, type Hunk, type Pair } from "../compare.ts";
import { grouped, short } from "../format.ts";
import type { InsnRow, Trace } from "../model.ts";
import type { Session } from "../session.ts";

const AROUND = 4;
const MOST = 300;

interface Other {
  readonly trace: Trace;
  readonly stream: string;
  readonly insns: number;
}

type Rows = readonly [ReadonlyMap<number, InsnRow>, ReadonlyMap<number, InsnRow>];

export class ComparePanel {
  private result: Asked<Comparison> | undefined;
  private rows: Asked<Rows> | undefined;
  private calls = false;
  private part = false; // of the selection, or the view, not of everything
  private index = 0;
  private most = 50; // number of functions listed

  constructor(private readonly app: App) {}

  private other(s: Session): Other | undefined {
    const slash = this.app.comparedWith.lastIndexOf("/");
    const [id, name] = [this.app.comparedWith.slice(0, slash), this.app.comparedWith.slice(slash + 1)];
    const trace = id === s.trace.id ? s.trace : this.app.traces?.find((t) => t.id === id);
    const stream = trace?.streams.find((x) => x.name === name);
    return trace && stream && { trace, stream: name, insns: stream.insns };
  }

  view(s: Session): TemplateResult {
    const { stream } = s;
    if (!stream) return html`<p class="muted hint">This trace has no stream yet.</p>`;
    const other = this.other(s);
    return html`<div class="scroll compare" tabindex="0" role="region" aria-label="Compare">
      ${this.controls(s)}${other ? this.told(s, stream.name, other) : html`<p class="muted hint">Choose a stream to
        compare with ${stream.name}: from this trace or from another run.</p>`}</div>`;
  }

  private controls(s: Session): TemplateResult {
    const traces = [s.trace, ...(this.app.traces ?? []).filter((t) => t.id !== s.trace.id)].slice(0, 200);
    const choose = (e: Event): void => {
      this.index = 0;
      this.app.compareWith((e.target as HTMLSelectElement).value);
    };
    const own = `${s.trace.id}/${s.stream?.name}`;
    const toggle = (text: string, on: boolean, title: string, set: () => void): TemplateResult =>
      html`<button class="action" title=${title} aria-pressed=${on} @click=${() => { set(); this.index = 0; this.app.changed(); }}>${text}</button>`;
    return html`<p class="buttons"><label>${s.stream?.name} with <select @change=${choose}>
        <option value="" ?selected=${this.app.comparedWith === ""}>…</option>
        ${traces.map((t) => html`<optgroup label=${t.id}>${t.streams.filter((x) => `${t.id}/${x.name}` !== own).map((x) =>
          html`<option value=${`${t.id}/${x.name}`} ?selected=${this.app.comparedWith === `${t.id}/${x.name}`}>${x.name}</option>`)}</optgroup>`)}
      </select></label></p>
      <p class="buttons">${toggle("By calls", this.calls, "Compare which functions were called, not every instruction", () => { this.calls = !this.calls; })}
        ${s.view.axis === "insn" ? toggle(s.selection ? "Only the selection" : "Only the view", this.part, "Compare the same instruction numbers of both", () => { this.part = !this.part; }) : nothing}</p>`;
  }

  private told(s: Session, name: string, other: Other): TemplateResult {
    const range = !this.part || s.view.axis !== "insn" ? undefined
      : s.selection ?? [Math.max(0, Math.floor(s.view.from)), Math.ceil(s.view.to)] as const;
    const key = [s.trace.id, s.trace.generation, name, this.app.comparedWith, other.trace.generation, this.calls, range].join(" ");
    this.result = ask(this.result, key, (signal) =>
      compare(s.trace.id, name, range, this.app.comparedWith, this.calls, signal), () => this.app.changed());
    const { answer, error } = this.result;
    if (error !== "") return html`<p class="trouble" role="alert">${error}</p>`;
    if (!answer) return html`<p class="muted hint">Comparing…</p>`;
    if (answer.total === 0) {
      return html`<p class="hint">Both are identical: ${grouped(answer.insnsA)} instructions.</p>${this.functions(answer)}`;
    }
    const facts: (readonly [string, unknown])[] = [
      ["Differences", grouped(answer.total)],
      ["Only here", `${grouped(answer.onlyA)} of ${grouped(answer.insnsA)} insns`],
      ["Only there", `${grouped(answer.onlyB)} of ${grouped(answer.insnsB)} insns`],
      ["They diverge in", answer.stackA.join(" › ") || "–"],
    ];
    if (answer.stackB.join() !== answer.stackA.join()) facts.push(["… and in", answer.stackB.join(" › ") || "–"]);
    return html`<dl class="details">${facts.map(([k, v]) => html`<div><dt>${k}</dt><dd title=${v}>${v}</dd></div>`)}</dl>
      ${answer.lost ? html`<p class="muted hint">After the last one they are too different to be aligned.</p>` : nothing}
      ${this.hunks(s, answer)}${this.functions(answer)}`;
  }

  private go(s: Session, c: Comparison, index: number): void {
    this.index = Math.min(Math.max(0, index), c.hunks.length - 1);
    void this.app.goTo(Math.min(c.hunks[this.index]!.aFrom, (s.stream?.insns ?? 1) - 1));
    this.app.changed();
  }

  private hunks(s: Session, c: Comparison): TemplateResult {
    const at = this.index;
    const first = Math.max(0, Math.min(at - 5, c.hunks.length - 12));
    return html`<p class="buttons"><button class="action" ?disabled=${at === 0} @click=${() => this.go(s, c, at - 1)}>Previous</button>
        <button class="action" ?disabled=${at + 1 >= c.hunks.length} @click=${() => this.go(s, c, at + 1)}>Next</button>
        <span class="muted">${grouped(at + 1)} of ${grouped(c.total)}</span></p>
      <table class="figures"><caption>Differences</caption><thead><tr><th scope="col">Here, at</th>
        <th scope="col" class="n">insns</th><th scope="col" class="n">There, at</th><th scope="col" class="n">insns</th></tr></thead>
      <tbody>${c.hunks.slice(first, first + 12).map((h, i) => html`<tr class=${first + i === at ? "selected" : ""}>
        <th scope="row"><button class="plain" aria-current=${first + i === at} @click=${() => this.go(s, c, first + i)}>${grouped(h.aFrom)}</button></th>
        <td class="n">${grouped(h.aTo - h.aFrom)}</td><td class="n">${grouped(h.bFrom)}</td><td class="n">${grouped(h.bTo - h.bFrom)}</td></tr>`)}</tbody></table>`;
  }

  private functions(c: Comparison): TemplateResult {
    const all = c.functions.filter((f) => f.selfA !== f.selfB || f.callsA !== f.callsB);
    const rows = all.slice(0, this.most);
    if (rows.length === 0) return html``;
    return html`<table class="figures wide"><caption>Functions with the largest differences</caption>
      <thead><tr><th scope="col">Function</th><th scope="col" class="n">Here</th><th scope="col" class="n">There</th>
        <th scope="col" class="n">Calls</th><th scope="col" class="n">There</th></tr></thead>
      <tbody>${rows.map((f) => html`<tr><th scope="row" title=${f.name}>${f.name || "unnamed code"}</th>
        <td class="n" title=${grouped(f.selfA)}>${short(f.selfA)}</td><td class="n" title=${grouped(f.selfB)}>${short(f.selfB)}</td>
        <td class="n">${short(f.callsA)}</td><td class="n">${short(f.callsB)}</td></tr>`)}</tbody></table>
      ${rows.length < all.length ? html`<p class="buttons"><span class="muted">${grouped(rows.length)} of ${grouped(all.length)}</span>
        <button class="action" @click=${() => { this.most = Infinity; this.app.changed(); }}>Show all</button></p>` : nothing}`;
  }

  // ---- side by side ------------------------------------------------------------------------

  /** Below the timeline, over the whole width. */
  below(s: Session): TemplateResult | typeof nothing {
    const hunk = this.result?.answer?.hunks[this.index];
    const other = this.other(s);
    const name = s.stream?.name;
    if (!hunk || !other || name === undefined) return nothing;
    const shown = pairs(hunk, AROUND, MOST, [s.stream!.insns, other.insns]);
    const key = [this.result!.key, this.index].join(" ");
    this.rows = ask(this.rows, key, (signal) => this.fetch(s, name, other, shown, signal), () => this.app.changed());
    const { answer, error } = this.rows;
    const long = Math.max(hunk.aTo - hunk.aFrom, hunk.bTo - hunk.bFrom);
    return html`<section class="lanes beside" aria-label="Side by side"><div class="scroll" tabindex="0" role="region" aria-label="Instructions side by side">
      ${error !== "" ? html`<p class="trouble" role="alert">${error}</p>`
    : !answer ? html`<p class="muted hint">Loading…</p>` : this.table(s, other, shown, answer, hunk)}
      ${long > MOST ? html`<p class="muted hint">${grouped(long - MOST)} more instructions differ.</p>` : nothing}</div></section>`;
  }

  private async fetch(s: Session, name: string, other: Other, shown: readonly Pair[], signal: AbortSignal): Promise<Rows> {
    const of = async (trace: Trace, stream: string, numbers: readonly number[]): Promise<Map<number, InsnRow>> => {
      if (numbers.length === 0) return new Map();
      const first = numbers[0]!;
      const rows = await api.insns(trace, stream, first, numbers.at(-1)! - first + 1, signal);
      return new Map(rows.map((r) => [r.insn, r]));
    };
    const numbers = (side: "a" | "b"): number[] => shown.map((p) => p[side]).filter((n) => n !== undefined);
    return Promise.all([of(s.trace, name, numbers("a")), of(other.trace, other.stream, numbers("b"))]);
  }

  private table(s: Session, other: Other, shown: readonly Pair[], [a, b]: Rows, hunk: Hunk): TemplateResult {
    const cells = (row: InsnRow | undefined, at: number | undefined): TemplateResult => (at === undefined
      ? html`<td colspan="3" class="none"></td>`
      : html`<td class="n">${grouped(at)}</td><td>${row ? `${row.fn || row.pc}${row.fn ? row.offset : ""}` : ""}</td><td><code>${row?.text ?? ""}</code></td>`);
    return html`<table class="traces"><caption>${grouped(hunk.aTo - hunk.aFrom)} instructions of ${s.stream?.name},
        and ${grouped(hunk.bTo - hunk.bFrom)} of ${other.trace.id === s.trace.id ? "" : `${other.trace.id}/`}${other.stream} instead</caption>
      <thead><tr><th scope="col" class="n">Here</th><th scope="col">Function</th><th scope="col">Instruction</th>
        <th scope="col" class="n">There</th><th scope="col">Function</th><th scope="col">Instruction</th></tr></thead>
      <tbody>${shown.map((p) => html`<tr class=${p.same ? "" : "differs"}>${cells(a.get(p.a ?? -1), p.a)}${cells(b.get(p.b ?? -1), p.b)}</tr>`)}</tbody></table>`;
  }
}
