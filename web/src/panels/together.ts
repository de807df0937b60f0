// SPDX-License-Identifier: MIT
// What all cores run at the cursor's time, and how certain that is; with another trace beside it.
import { html, nothing, type TemplateResult } from "lit-html";
import type { App } from "../app.ts";
import { ask, type Asked } from "../asking.ts";
import { timeText } from "../describe.ts";
import { duration, grouped, short } from "../format.ts";
import type { Stream, Trace } from "../model.ts";
import { functionColour } from "../palette.ts";
import type { Session } from "../session.ts";
import { laidUpon, moments, sameClock, usualOffset, type Moment } from "../together.ts";
import { shortPlace } from "./sourcelink.ts";
import type { Strip } from "./strip.ts";

const STREAMS = 16;
type Got = Asked<Map<string, Moment>> | undefined;

export class TogetherPanel {
  private own: Got;
  private others: Got;

  constructor(private readonly app: App, private readonly strip: Strip) {}

  /** The other trace's lanes, below this one's: by time, or by instructions as they are counted. */
  below(s: Session): TemplateResult | typeof nothing {
    const other = this.app.traces?.find((t) => t.id === this.app.beside && t.id !== s.trace.id);
    if (!other) return nothing;
    const offset = this.app.besideOffset ?? usualOffset(s.trace, other);
    const shift = s.view.axis === "time" ? Number(offset + s.trace.epoch - other.epoch) : 0;
    return this.strip.view(s, other, shift);
  }

  view(s: Session): TemplateResult {
    const time = s.view.axis === "time" ? s.cursor : s.position?.time;
    const traces = (this.app.traces ?? []).filter((t) => t.id !== s.trace.id && t.streams.some((x) => x.hasTime)).slice(0, 200);
    const other = traces.find((t) => t.id === this.app.beside);
    const offset = other && (this.app.besideOffset ?? usualOffset(s.trace, other));
    return html`<div class="scroll together" tabindex="0" role="region" aria-label="Cores together">
      <p class="buttons"><label>Beside <select @change=${(e: Event) => this.app.layBeside((e.target as HTMLSelectElement).value, undefined)}>
        <option value="" ?selected=${!other}>no other trace</option>
        ${traces.map((t) => html`<option value=${t.id} ?selected=${t === other}>${t.id}</option>`)}</select></label>
        ${other ? html`<label>offset <input type="text" inputmode="numeric" size="12" aria-label="What is added to this trace's times, for those of the other"
          .value=${String(offset)} @change=${(e: Event) => this.offset((e.target as HTMLInputElement).value, other)}></label>` : nothing}</p>
      ${other ? html`<p class="muted hint">${this.relation(s, other)}</p>` : nothing}
      ${time === undefined ? html`<p class="muted hint">Set the cursor in a lane with times to see what every core runs then.</p>`
    : html`${this.table(s, s.trace, time, (this.own = this.fetch(this.own, s.trace, time)), undefined)}
      ${other && offset !== undefined ? this.beside(s, other, laidUpon(s.trace, other, time, offset)) : nothing}`}</div>`;
  }

  /** Why their times can be compared, or not. */
  private relation(s: Session, other: Trace): string {
    if (this.app.besideOffset !== undefined) return "Laid upon each other as you said.";
    return sameClock(s.trace, other) ? `Both have the clock “${other.labels.clock}”: times are compared as they are.`
      : "Their clocks are not known to be related (no common label “clock”): laid side by side from where both begin.";
  }

  private beside(s: Session, other: Trace, time: number): TemplateResult {
    this.others = this.fetch(this.others, other, time);
    return this.table(s, other, time, this.others, other);
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
    return html`<table class="figures wide"><caption>${trace.id} at ${timeText(trace, time, streams[0]?.timeIsNs ?? true)}</caption>
      <thead><tr><th scope="col">Lane</th><th scope="col">Runs</th><th scope="col" class="n" title="Between the timestamps around it">Certain to</th></tr></thead>
      <tbody>${streams.map((stream) => this.row(s, trace, stream, got?.answer?.get(stream.name), other))}</tbody></table>
      ${untimed > 0 ? html`<p class="muted hint">${untimed} ${untimed === 1 ? "lane has" : "lanes have"} no times.</p>` : nothing}
      ${trace.streams.length - untimed > STREAMS ? html`<p class="muted hint">The first ${STREAMS} lanes.</p>` : nothing}`;
  }

  private row(s: Session, trace: Trace, stream: Stream, m: Moment | undefined, other: Trace | undefined): TemplateResult {
    const { row } = m ?? {};
    const what = row ? html`<span class="swatch" .style=${`background:${row.fn ? functionColour(row.fn, this.app.theme).css : "transparent"}`}></span>${
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

/** How far apart the timestamps around it are: "± 120 ns", "within 3 µs", "after 40 µs". */
export function certain(m: Moment, ns: boolean): string {
  const text = (n: number): string => (ns ? duration(n) : `${short(n)} ticks`);
  if (m.to === Infinity) return "open";
  return m.to <= m.from ? text(0) : `−${text(Math.max(0, m.time - m.from))} +${text(Math.max(0, m.to - m.time))}`;
}
