// SPDX-License-Identifier: MIT
// What happened during one call: whom it called, what interrupted it, and what the other cores did meanwhile.
import { html, nothing, type TemplateResult } from "lit-html";
import { json, streamPath } from "../data/api.ts";
import type { App } from "../view/app.ts";
import { ask, type Asked } from "../data/asking.ts";
import type { CallInfo } from "../data/calls.ts";
import { absolute } from "../base/epoch.ts";
import { grouped, percent } from "../base/format.ts";
import { isDerived, isSoftware, type Stream } from "../data/model.ts";
import type { Session } from "../view/session.ts";
import { question, quoted, within, type Answer } from "../data/sql.ts";
import { countsTime } from "../view/weight.ts";
import { leads, lengthText } from "./reach.ts";

const CORES = 8;
const NAMES = 3;

interface Meanwhile {
  readonly stream: string;
  readonly time: number;
  readonly functions: readonly { readonly name: string; readonly time: number }[];
}

/** What the other cores did between two times. */
async function meanwhile(s: Session, streams: readonly Stream[], from: number, to: number, signal: AbortSignal): Promise<Meanwhile[]> {
  const { epoch, id } = s.trace;
  const where = `unit=time&from=${absolute(epoch, from)}&to=${absolute(epoch, Math.max(from + 1, to))}&limit=${NAMES}`;
  return Promise.all(streams.map(async ({ name }) => {
    const told = await json(`${streamPath(id, name)}/functions?${where}`, signal) as {
      about: { time: number }; functions: { name: string; pc: string; self_time: { value: number } }[];
    };
    return { stream: name, time: Number(told.about.time), functions: told.functions.map((f) => ({ name: f.name || f.pc, time: Number(f.self_time.value) })).filter((f) => f.time > 0) };
  }));
}

export class Inside {
  private within: Asked<Answer> | undefined;
  private others: Asked<Meanwhile[]> | undefined;

  constructor(private readonly app: App) {}

  view(s: Session, c: CallInfo): TemplateResult {
    const stream = s.stream!;
    const dated = c.timeFrom !== undefined && c.timeTo !== undefined;
    const timed = dated && countsTime(s.view.axis, stream);
    const length = timed ? "duration" : "insns";
    const key = [s.trace.id, s.trace.generation, stream.name, c.from, c.to, c.depth, length].join("/");
    // max() makes position that of the longest.
    this.within = ask(this.within, key, (signal) => question(s.trace.id, `SELECT function, kind = 'exception', number, count(*), sum(${length}), max(${length}), position
      FROM call WHERE stream = ${quoted(stream.name)}${within([c.from, c.to])} AND (depth = ${c.depth + 1} OR kind = 'exception' AND depth > ${c.depth})
      GROUP BY 1, 2, 3 ORDER BY 5 DESC LIMIT 200`, signal), () => this.app.changed());
    const { answer, error } = this.within;
    if (error !== "") return html`<p class="trouble" role="alert">${error}</p>`;
    if (!answer) return html`<p class="muted hint">Looking inside…</p>`;
    const all = timed ? c.timeTo! - c.timeFrom! : c.to - c.from;
    const rows = (exceptions: boolean): Answer["rows"] => answer.rows.filter((r) => Boolean(r[1]) === exceptions);
    return html`${this.table(s, "It called", rows(false), all, timed)}${this.table(s, "Interrupted by", rows(true), all, timed)}
      ${dated ? this.cores(s, key, c.timeFrom!, c.timeTo!) : nothing}`;
  }

  private table(s: Session, caption: string, rows: Answer["rows"], all: number, timed: boolean): TemplateResult {
    if (rows.length === 0) return html`<p class="muted hint">${caption === "It called" ? "It called nothing." : "Nothing interrupted it."}</p>`;
    return html`<table class="figures ints"><caption>${caption}</caption><thead><tr><th scope="col">Function</th><th scope="col" class="n">Calls</th>
        <th scope="col" class="n">In all</th><th scope="col" class="n">Share</th><th scope="col" class="n">Longest</th></tr></thead>
      <tbody>${rows.slice(0, 20).map(([name, exception, number, count, sum, most, at]) => html`<tr><th scope="row" title=${name || "unnamed code"}>
          ${exception ? html`<span class="muted">${number ?? "signal"}</span> ` : nothing}${name || "unnamed code"}</th>
        <td class="n">${grouped(Number(count))}</td><td class="n">${lengthText(s, Number(sum), timed)}</td><td class="n">${percent(Number(sum), all)}</td>
        <td class="n">${leads(lengthText(s, Number(most), timed), "Go to the longest", () => { s.depth = undefined; void this.app.goTo(Number(at)); })}</td></tr>`)}</tbody></table>`;
  }

  private cores(s: Session, key: string, from: number, to: number): TemplateResult | typeof nothing {
    const streams = s.trace.streams.filter((x) => x !== s.stream && x.hasTime && !isSoftware(x.protocol) && !isDerived(x.name)).slice(0, CORES);
    if (streams.length === 0) return nothing;
    this.others = ask(this.others, key, (signal) => meanwhile(s, streams, from, to, signal), () => this.app.changed());
    const { answer, error } = this.others;
    if (error !== "") return html`<p class="trouble" role="alert">${error}</p>`;
    return html`<table class="figures meanwhile"><caption>Other cores meanwhile</caption>
      <tbody>${(answer ?? []).map((m) => html`<tr><th scope="row">${leads(m.stream, "Go there on this lane", () => this.app.selectLane(s.laneOf(m.stream)))}</th>
        <td>${m.functions.length === 0 ? html`<span class="muted">nothing ran</span>` : m.functions.map((f) => html`<span class="one"><span class="swatch" .style=${`background:${this.app.swatch(f.name).css}`}></span>${f.name} <span class="muted">${percent(f.time, m.time)}</span></span> `)}</td></tr>`)}</tbody></table>`;
  }
}
