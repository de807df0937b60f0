// SPDX-License-Identifier: MIT
// What all cores execute at the cursor's time, and how certain that is; optionally with another
// trace beside it.
import { html, nothing, type TemplateResult } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import type { App } from "../view/app.ts";
import { ask, type Asked } from "../data/asking.ts";
import { timeText } from "../timeline/describe.ts";
import { duration, grouped, short } from "../base/format.ts";
import type { Stream, Trace } from "../data/model.ts";
import type { Session } from "../view/session.ts";
import { byArrival, laidUpon, moments, sameClock, usualOffset, type Moment } from "../data/together.ts";
import { zeroOf } from "../view/zero.ts";
import { shortPlace } from "./sourcelink.ts";
import { Strip } from "./strip.ts";

const STREAMS = 16;
type Got = Asked<Map<string, Moment>> | undefined;

export class TogetherPanel {
  private own: Got;
  private readonly others = new Map<string, Got>(); // by trace
  private readonly strips = new Map<string, Strip>();

  constructor(private readonly app: App) {}

  /** The traces shown next to the open one that exist. */
  private laid(s: Session): { trace: Trace; offset: bigint; said: boolean }[] {
    return this.app.beside.flatMap((b) => {
      const trace = this.app.traces?.find((t) => t.id === b.trace && t.id !== s.trace.id);
      return trace ? [{ trace, offset: b.offset ?? usualOffset(s.trace, trace, this.time(s)), said: b.offset !== undefined }] : [];
    });
  }

  private time(s: Session): number | undefined {
    return s.view.axis === "time" ? s.cursor : s.position?.time;
  }

  /** The other traces' lanes, below this one's: by time, or by instruction number. */
  below(s: Session): TemplateResult | typeof nothing {
    const laid = this.laid(s);
    for (const id of [...this.strips.keys()]) if (!laid.some((l) => l.trace.id === id)) this.strips.delete(id);
    if (laid.length === 0) return nothing;
    return html`<div class="strips" tabindex="0" role="region" aria-label="Lanes of other traces">${repeat(laid, (l) => l.trace.id, ({ trace, offset }) => {
      let strip = this.strips.get(trace.id);
      if (!strip) this.strips.set(trace.id, strip = new Strip(this.app));
      return strip.view(s, trace, s.view.axis === "time" ? Number(offset + s.trace.epoch - trace.epoch) : 0);
    })}</div>`;
  }

  view(s: Session): TemplateResult {
    const time = this.time(s);
    const traces = (this.app.traces ?? []).filter((t) => t.id !== s.trace.id && t.streams.some((x) => x.hasTime)).slice(0, 200);
    const laid = this.laid(s);
    const free = traces.filter((t) => !laid.some((l) => l.trace === t));
    return html`<div class="scroll together" tabindex="0" role="region" aria-label="Cores together">
      <p class="buttons"><label>Compare with <select .value=${""} @change=${(e: Event) => { const select = e.target as HTMLSelectElement; if (select.value !== "") this.app.layBeside(select.value, undefined); select.value = ""; }}>
        <option value="">${laid.length > 0 ? "add a trace" : "no other trace"}</option>
        ${free.map((t) => html`<option value=${t.id}>${t.id}</option>`)}</select></label></p>
      ${laid.map(({ trace, offset, said }) => html`<p class="buttons laid"><b>${trace.id}</b>
        <label>offset <input type="text" inputmode="numeric" size="12" aria-label=${`Offset added to this trace's times to get those of ${trace.id}`}
          .value=${String(offset)} @change=${(e: Event) => this.offset((e.target as HTMLInputElement).value, trace)}></label>
        <button class="action" aria-label=${`Remove ${trace.id}`} @click=${() => this.app.takeAway(trace.id)}>Remove</button></p>
        <p class="muted hint">${this.relation(s, trace, said)}</p>`)}
      ${time === undefined ? html`<p class="muted hint">Set the cursor in a lane with timestamps to see what each core was executing then.</p>`
    : html`${this.table(s, s.trace, time, (this.own = this.fetch(this.own, s.trace, time)), undefined)}
      ${laid.map((l) => this.beside(s, l.trace, laidUpon(s.trace, l.trace, time, l.offset)))}`}</div>`;
  }

  /** Why their times can be compared, or not. */
  private relation(s: Session, other: Trace, said: boolean): string {
    if (said) return "Aligned by the offset you entered.";
    if (sameClock(s.trace, other)) return `Both have the label clock=${other.labels.clock}: times are compared directly.`;
    const arrived = byArrival(s.trace, other, this.time(s));
    return arrived ? `Aligned by arrival at the server: ± ${duration(arrived.within)}, plus the difference of their transport delays.`
      : "Their clocks are not known to be related (no common label “clock”): aligned at their beginnings.";
  }

  private beside(s: Session, other: Trace, time: number): TemplateResult {
    const got = this.fetch(this.others.get(other.id), other, time);
    this.others.set(other.id, got);
    return this.table(s, other, time, got, other);
  }

  private offset(text: string, other: Trace): void {
    this.app.layBeside(other.id, /^-?\d{1,20}$/.test(text.trim()) ? BigInt(text.trim()) : undefined);
  }

  private timed(trace: Trace): Stream[] {
    return trace.streams.filter((x) => x.hasTime).slice(0, STREAMS);
  }

  private fetch(last: Got, trace: Trace, time: number): Got {
    const key = [trace.id, trace.generation, trace.state === "sealed" ? 0 : trace.revision, Math.floor(time)].join("/");
    return ask(last, key, (signal) => moments(trace, this.timed(trace), time, signal), () => this.app.changed());
  }

  private table(s: Session, trace: Trace, time: number, got: Got, other: Trace | undefined): TemplateResult {
    if (got && got.error !== "") return html`<p class="trouble" role="alert">${got.error}</p>`;
    const streams = this.timed(trace);
    const untimed = trace.streams.length - trace.streams.filter((x) => x.hasTime).length;
    return html`<table class="figures wide"><caption>${trace.id} at ${timeText({ trace, zero: zeroOf(trace, this.app.clock) }, time, streams[0]?.timeIsNs ?? true)}</caption>
      <thead><tr><th scope="col">Lane</th><th scope="col">Executing</th><th scope="col" class="n" title="Between the surrounding timestamps">Accuracy</th></tr></thead>
      <tbody>${streams.map((stream) => this.row(s, trace, stream, got?.answer?.get(stream.name), other))}</tbody></table>
      ${untimed > 0 ? html`<p class="muted hint">${untimed} ${untimed === 1 ? "lane has" : "lanes have"} no timestamps.</p>` : nothing}
      ${trace.streams.length - untimed > STREAMS ? html`<p class="muted hint">Only the first ${STREAMS} lanes are shown.</p>` : nothing}`;
  }

  private row(s: Session, trace: Trace, stream: Stream, m: Moment | undefined, other: Trace | undefined): TemplateResult {
    const { row } = m ?? {};
    const colour = (fn: string): string => (other ? this.app.swatches.beside(fn, this.app.theme) : this.app.swatch(fn)).css;
    const what = row ? html`<span class="swatch" .style=${`background:${row.fn ? colour(row.fn) : "transparent"}`}></span>${
      row.fn ? row.fn + row.offset : row.text}${row.file ? html` <span class="muted">${shortPlace(row.file, row.line)}</span>` : nothing}` : m ? "–" : "…";
    const go = (): void => {
      if (!m) return;
      const lane = s.trace.streams.indexOf(stream);
      this.app.selectLane(lane);
      void this.app.goTo(m.insn, m.time);
    };
    const place = m ? html`<span class="muted">${grouped(m.insn)}</span>` : nothing;
    return html`<tr class=${!other && stream === s.stream ? "selected" : ""}><th scope="row">${other
      ? html`<a href=${`#/trace/${encodeURIComponent(trace.id)}?lane=${encodeURIComponent(stream.name)}${m ? `&at=${m.insn}` : ""}`}>${stream.name}</a>`
      : html`<button class="plain" @click=${go}>${stream.name}</button>`}</th>
      <td title=${row ? `${row.pc} ${row.text}` : ""}>${what} ${place}</td><td class="n">${m ? certain(m, stream.timeIsNs) : "…"}</td></tr>`;
  }
}

/** Distance of the surrounding timestamps: "± 120 ns", "within 3 µs", "after 40 µs". */
export function certain(m: Moment, ns: boolean): string {
  const text = (n: number): string => (ns ? duration(n) : `${short(n)} ticks`);
  if (m.to === Infinity) return "open";
  return m.to <= m.from ? text(0) : `−${text(Math.max(0, m.time - m.from))} +${text(Math.max(0, m.to - m.time))}`;
}
