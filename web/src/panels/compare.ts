// SPDX-License-Identifier: MIT
// Two runs: the place where they diverge, their differences, and one difference side by side.
import { html, nothing, type TemplateResult } from "lit-html";
import * as api from "../data/api.ts";
import type { App } from "../view/app.ts";
import { ask, type Asked } from "../data/asking.ts";
import { call, type Weight } from "../data/calls.ts";
import { compare, pairs, type Comparison, type Hunk, type Pair, type Ranges } from "../data/compare.ts";
import { grouped, short } from "../base/format.ts";
import type { InsnRow, Trace } from "../data/model.ts";
import type { Axis } from "../base/scale.ts";
import type { Session } from "../view/session.ts";
import { laidUpon, usualOffset } from "../data/together.ts";
import { meant } from "../base/visible.ts";
import { countsTime } from "../view/weight.ts";
import { exactText, leads, lengthText } from "./reach.ts";

/** Instructions of both that are compared ahead of the whole: where they part is mostly known at once. */
const AHEAD = 65536;
const AROUND = 4;
const MOST = 300;

interface Other {
  readonly trace: Trace;
  readonly stream: string;
  readonly insns: number;
}

/** Everything; the same instruction numbers; the same times; the call at the cursor and that of the same number there. */
type What = "all" | "part" | "times" | "call";

type Rows = readonly [ReadonlyMap<number, InsnRow>, ReadonlyMap<number, InsnRow>];

const SAMPLES = 8;
const SAMPLE = 64;

interface Altered {
  readonly looked: number; // instructions
  readonly first: readonly [InsnRow, InsnRow] | undefined; // that differ
}

/** Compares the code of two paths that are the same, in samples along them. */
async function alteredCode(
  [trace, stream, from]: readonly [Trace, string, number], [other, there, begin]: readonly [Trace, string, number], n: number, signal: AbortSignal,
): Promise<Altered> {
  let looked = 0;
  for (let i = 0; i < SAMPLES; i++) {
    const at = n <= SAMPLE * SAMPLES ? i * SAMPLE : Math.floor(((n - SAMPLE) * i) / (SAMPLES - 1));
    const count = Math.min(SAMPLE, n - at);
    if (count <= 0) break;
    const [a, b] = await Promise.all([api.insns(trace, stream, from + at, count, signal), api.insns(other, there, begin + at, count, signal)]);
    const k = a.findIndex((row, j) => b[j] !== undefined && row.encoding !== b[j]!.encoding);
    if (k >= 0) return { looked: looked + k, first: [a[k]!, b[k]!] };
    looked += Math.min(a.length, b.length);
  }
  return { looked, first: undefined };
}

export class ComparePanel {
  private result: Asked<Comparison> | undefined;
  private ahead: Asked<Comparison> | undefined;
  private rows: Asked<Rows> | undefined;
  private altered: Asked<Altered> | undefined;
  private calls = false;
  private what: What = "all";
  private span: readonly [number, number] | undefined = [0, 0]; // of it, on the axis; undefined: there is no call
  private axis: Axis = "insn";
  private of = "";
  private index = 0;
  private wrong = ""; // why what was typed is no stream
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
    // A range is one of the stream that it was taken from.
    const of = `${s.trace.id}/${stream.name}`;
    if (this.of !== of) [this.of, this.what, this.span] = [of, "all", [0, 0]];
    const other = this.other(s);
    return html`<div class="scroll compare" tabindex="0" role="region" aria-label="Compare">
      ${this.controls(s)}${other ? this.told(s, stream.name, other) : html`<p class="muted hint">Choose a stream to
        compare with ${stream.name}: from this trace or from another run.</p>`}</div>`;
  }

  private controls(s: Session): TemplateResult {
    const traces = [s.trace, ...(this.app.traces ?? []).filter((t) => t.id !== s.trace.id)].slice(0, 200);
    const own = `${s.trace.id}/${s.stream?.name}`;
    const names = traces.flatMap((t) => t.streams.map((x) => `${t.id}/${x.name}`)).filter((name) => name !== own);
    const choose = (e: Event): void => {
      const text = (e.target as HTMLInputElement).value.trim();
      // What is typed may be a part that only one name has.
      const like = names.filter((name) => name.toLowerCase().includes(text.toLowerCase()));
      const found = names.includes(text) ? text : text !== "" && like.length === 1 ? like[0]! : "";
      this.wrong = text !== "" && found === "" ? `${like.length === 0 ? "No stream is" : "Several streams are"} called like “${text}”.` : "";
      this.index = 0;
      this.app.compareWith(found);
    };
    const toggle = (text: string, on: boolean, title: string, set: () => void): TemplateResult =>
      html`<button class="action" title=${title} aria-pressed=${on} @click=${() => { set(); this.index = 0; this.app.changed(); }}>${text}</button>`;
    const part = s.selection ? "the selection" : "the view";
    const choices: (readonly [What, string])[] = [["all", "everything"], ...(s.view.axis === "insn" ? [["part", `${part}, by number`] as const] : []),
      ...(s.stream?.hasTime ? [["times", `${part}, by time`] as const] : []), ["call", "the call at the cursor"]];
    return html`<p class="buttons"><label>${s.stream?.name} with <input type="text" list="others" autocomplete="off" placeholder="trace/stream, or a part of it" .value=${this.app.comparedWith} @change=${choose}></label>
        <datalist id="others">${names.slice(0, 1000).map((name) => html`<option value=${name}></option>`)}</datalist></p>
      ${this.wrong ? html`<p class="trouble" role="alert">${this.wrong}</p>` : nothing}
      <p class="buttons">${toggle("By calls", this.calls, "Compare which functions were called, not every instruction", () => { this.calls = !this.calls; })}
        <label>of <select aria-label="What is compared" @change=${(e: Event) => this.take(s, (e.target as HTMLSelectElement).value as What)}>
          ${choices.map(([what, text]) => html`<option value=${what} ?selected=${what === this.what}>${text}</option>`)}</select></label>
        ${this.what === "all" ? nothing : html`<button class="action" title="Take what is there now" @click=${() => this.take(s, this.what)}>Again</button>`}</p>`;
  }

  /** What is compared stays so while differences are looked at. */
  private take(s: Session, what: What): void {
    this.what = what;
    this.axis = what === "call" ? "insn" : s.view.axis;
    const at = s.cursorInsn;
    this.span = what === "all" ? [0, 0] : what === "call" ? at === undefined ? undefined : [at, at]
      : s.selection ?? [Math.max(0, Math.floor(s.view.from)), Math.ceil(s.view.to)];
    this.index = 0;
    this.app.changed();
  }

  /** The instructions of both sides; undefined: all. */
  private async ranges(s: Session, name: string, other: Other, [from, to]: readonly [number, number], signal: AbortSignal): Promise<Ranges | undefined> {
    const { axis } = this;
    const same = async (trace: Trace, stream: string, at: number): Promise<number> => (await api.locate(trace, stream, "time", at, signal)).insn;
    if (this.what === "all") return undefined;
    if (this.what === "call") {
      const c = await call(s.trace, name, from, s.depth, signal);
      if (c.name === "" || c.number === undefined) throw new Error("The call at the cursor has no function, or began before the trace did.");
      const there = await api.json(`${api.streamPath(other.trace.id, other.stream)}/calls?of=${encodeURIComponent(meant(c.name))}&order=first&skip=${c.number - 1}&limit=1`, signal) as { calls: { from: number; to: number }[] };
      const [b] = there.calls;
      if (!b) throw new Error(`${other.stream} has no call ${grouped(c.number)} of ${c.name}.`);
      return { a: [c.from, c.to], b: [b.from, b.to] };
    }
    if (this.what === "part" && axis === "insn") return { a: [from, to], b: [from, to] };
    const time = async (at: number): Promise<number> => (axis === "time" ? at : (await api.locate(s.trace, name, "insn", at, signal)).time ?? 0);
    const [begin, end] = [await time(from), await time(to)];
    const there = (at: number): number => laidUpon(s.trace, other.trace, at, usualOffset(s.trace, other.trace, begin));
    return {
      a: [await same(s.trace, name, begin), await same(s.trace, name, end)],
      b: [await same(other.trace, other.stream, there(begin)), await same(other.trace, other.stream, there(end))],
    };
  }

  private told(s: Session, name: string, other: Other): TemplateResult {
    const { span, axis } = this;
    if (!span) return html`<p class="muted hint">Click in a lane, and choose again: the call there is compared.</p>`;
    const there = other.trace.streams.find((x) => x.name === other.stream);
    const weight = countsTime(s.view.axis, s.stream) && there?.hasTime && there.timeIsNs === s.stream!.timeIsNs ? "time" : "insns";
    const key = [s.trace.id, s.trace.generation, name, this.app.comparedWith, other.trace.generation, this.calls, this.what, axis, span, weight].join(" ");
    this.result = ask(this.result, key, async (signal) =>
      compare(s.trace.id, name, await this.ranges(s, name, other, span, signal), this.app.comparedWith, this.calls, weight, signal), () => this.app.changed());
    const { answer, error } = this.result;
    if (error !== "") return html`<p class="trouble" role="alert">${error}</p>`;
    if (!answer) return html`${this.parting(s, name, other)}<p class="muted hint">Comparing…</p>`;
    if (answer.total === 0) {
      return html`<p class="hint">Both take the same path: ${grouped(answer.insnsA)} instructions. ${this.code(s, name, other, answer)}</p>${this.functions(s, answer, weight)}`;
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
      ${this.hunks(s, answer)}${this.functions(s, answer, weight)}`;
  }

  /** Where two whole streams part, while they are being compared. */
  private parting(s: Session, name: string, other: Other): TemplateResult | typeof nothing {
    if (this.what !== "all") return nothing;
    const [a, b] = [Math.min(AHEAD, s.stream!.insns), Math.min(AHEAD, other.insns)];
    this.ahead = ask(this.ahead, this.result!.key, (signal) =>
      compare(s.trace.id, name, { a: [0, a], b: [0, b] }, this.app.comparedWith, this.calls, "insns", signal), () => this.app.changed());
    const hunk = this.ahead.answer?.hunks[0];
    // One that begins where the range ends may be none.
    if (!hunk || hunk.aFrom >= a || hunk.bFrom >= b) return nothing;
    return html`<p class="hint parting">They part at ${leads(grouped(hunk.aFrom), "Go there", () => void this.app.goTo(hunk.aFrom))},
      ${grouped(hunk.bFrom)} there, in ${this.ahead.answer!.stackA.join(" › ") || "unnamed code"}.</p>`;
  }

  /** Instructions are compared by function and offset: another program may have others there. */
  private code(s: Session, name: string, other: Other, { fromA, fromB, insnsA }: Comparison): TemplateResult | typeof nothing {
    if (this.calls || insnsA === 0) return nothing;
    this.altered = ask(this.altered, this.result!.key, (signal) => alteredCode([s.trace, name, fromA], [other.trace, other.stream, fromB], insnsA, signal), () => this.app.changed());
    const { answer } = this.altered;
    if (!answer) return nothing;
    const { looked, first } = answer;
    return first === undefined ? html`<span class="muted">The code is the same at ${grouped(looked)} of them that were looked at.</span>`
      : html`<b class="bad">But the code is not the same: ${leads(grouped(first[0].insn), "Go there", () => void this.app.goTo(first[0].insn))}
        is <code>${first[0].text}</code> here, <code>${first[1].text}</code> there (≠).</b>`;
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

  private functions(s: Session, c: Comparison, weight: Weight): TemplateResult {
    const timed = weight === "time";
    const own = (n: number): TemplateResult => html`<td class="n" title=${timed ? exactText(s, n) : grouped(n)}>${timed ? lengthText(s, n, true) : short(n)}</td>`;
    const all = c.functions.filter((f) => f.selfA !== f.selfB || f.callsA !== f.callsB);
    const rows = all.slice(0, this.most);
    if (rows.length === 0) return html``;
    return html`<table class="figures wide"><caption>Functions with the largest differences of own ${timed ? "time" : "instructions"}</caption>
      <thead><tr><th scope="col">Function</th><th scope="col" class="n">Here</th><th scope="col" class="n">There</th>
        <th scope="col" class="n">Calls</th><th scope="col" class="n">There</th></tr></thead>
      <tbody>${rows.map((f) => html`<tr><th scope="row" title=${f.name}>${f.name || "unnamed code"}</th>
        ${own(f.selfA)}${own(f.selfB)}
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
    // The same offset of a function of the same name, but another program.
    const altered = (p: Pair): boolean => p.same && a.has(p.a!) && b.has(p.b!) && a.get(p.a!)!.encoding !== b.get(p.b!)!.encoding;
    const others = shown.filter(altered).length;
    return html`<table class="traces"><caption>${grouped(hunk.aTo - hunk.aFrom)} instructions of ${s.stream?.name},
        and ${grouped(hunk.bTo - hunk.bFrom)} of ${other.trace.id === s.trace.id ? "" : `${other.trace.id}/`}${other.stream} instead${others > 0 ? html`; <b>${others} of those around them have other code at the same place (≠)</b>` : nothing}</caption>
      <thead><tr><th scope="col" class="n">Here</th><th scope="col">Function</th><th scope="col">Instruction</th>
        <th scope="col" class="n">There</th><th scope="col">Function</th><th scope="col">Instruction</th></tr></thead>
      <tbody>${shown.map((p) => html`<tr class=${altered(p) ? "altered" : p.same ? "" : "differs"}>${cells(a.get(p.a ?? -1), p.a)}${cells(b.get(p.b ?? -1), p.b)}</tr>`)}</tbody></table>`;
  }
}
