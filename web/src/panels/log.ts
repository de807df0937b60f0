// SPDX-License-Identifier: MIT
// The software trace in view, line by line, synchronized with the cursor in both directions.
import { html, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import { logUrl } from "../data/api.ts";
import type { App } from "../view/app.ts";
import { timeText } from "../timeline/describe.ts";
import { grouped } from "../base/format.ts";
import { sourceName, type LogEntry } from "../data/lanedata.ts";
import { isEvents, isSoftware } from "../data/model.ts";
import type { Session } from "../view/session.ts";

interface Row extends LogEntry {
  readonly lane: number;
}

/** So many lanes are offered, and listed together. */
const LANES = 16;

export class LogPanel {
  private shown: Row | undefined;

  constructor(private readonly app: App) {}

  view(s: Session): TemplateResult {
    const { streams } = s.trace;
    const time = s.view.axis === "time";
    const software = streams.map((stream, lane) => ({ stream, lane })).filter(({ stream, lane }) =>
      (isSoftware(stream.protocol) && !isEvents(stream.protocol) && (time ? stream.hasTime : lane === s.lane)) || (lane === s.lane && (!time || stream.hasTime)));
    if (software.length === 0) return html`<p class="muted hint">The selected lane has no timestamps.</p>`;
    const edge = s.trace.state !== "sealed" && s.view.to > s.liveEnd;
    s.log.want(software.slice(0, LANES).map((x) => x.stream.name), s.view, s.trace.revision, edge);
    const rows: Row[] = [];
    let more = false;
    let missing = false;
    for (const { stream, lane } of software) {
      const log = s.log.get(stream.name, s.view);
      missing ||= log === undefined;
      more ||= log?.more === true;
      for (const e of log?.entries ?? []) {
        const at = time ? e.time : e.at;
        if (at !== undefined && at >= s.view.from && at <= s.view.to) rows.push({ ...e, lane });
      }
    }
    if (time) rows.sort((a, b) => a.time! - b.time!);
    const several = software.length > 1;
    const csv = logUrl(s.trace, software.slice(0, LANES).map((x) => x.stream.name), s.view.axis, s.view.from, s.view.to);
    const here = this.nearest(s, rows, time);
    // While the live edge is followed its last line is in sight, otherwise that at the cursor.
    const sight = this.app.following === undefined ? here : rows.length - 1;
    // Each lane has an instruction axis of its own: there the log is that of the selected lane.
    const elsewhere = time || rows.length > 0 || missing || isSoftware(s.stream?.protocol ?? "") ? []
      : streams.flatMap((x, lane) => (isSoftware(x.protocol) && !isEvents(x.protocol) && x.insns > 0 ? [lane] : []));
    const hint = rows.length > 0 ? "" : missing ? "Loading…" : elsewhere.length > 0 ? "There is no software trace in the selected lane." : "There is no software trace in view.";
    const events = rows.length === 0 && !missing && streams.some((x) => isEvents(x.protocol));
    return html`${hint ? html`<p class="muted hint">${hint}</p>` : ""}${events ? this.events() : ""}
      ${elsewhere.length === 0 ? "" : html`<p class="buttons">${elsewhere.slice(0, LANES).map((lane) => html`<button class="action" @click=${() => this.app.selectLane(lane)}>Log of ${s.called(streams[lane]!.name)}</button>`)}</p>`}
      ${more ? html`<p class="muted hint">Not all entries in view are listed: zoom in to see the rest.</p>` : ""}
      ${!time && streams.some((x) => isSoftware(x.protocol) && x.hasTime) ? html`<p class="muted hint">On the time axis (T) the entries of all lanes are listed together.</p>` : ""}
      ${rows.length > 0 ? html`<p class="hint"><a class="action" download="log.csv" href=${csv}>CSV</a></p>` : ""}
      <ol class="log" tabindex="0" aria-label="Log" @keydown=${(e: KeyboardEvent) => this.key(e, rows, here)}>
      ${rows.map((row, i) => html`<li class=${i === here ? "here" : ""} ${i === sight ? ref((el) => this.follow(el, row)) : ""}>
        <button class="plain" tabindex="-1" aria-current=${i === here ? "true" : "false"} @click=${() => this.go(row)}>
        <span class="i">${row.time === undefined ? grouped(row.at) : timeText(s, row.time, streams[row.lane]!.timeIsNs)}</span>
        ${several ? html`<span class="muted lane">${streams[row.lane]!.name}</span>` : ""}
        <span class="muted src">${sourceName(row)}</span><code class=${row.isText ? "" : "muted"}>${row.text}</code></button></li>`)}</ol>`;
  }

  /** Programs wrote nothing here, but the system told something. */
  private events(): TemplateResult {
    return html`<p class="buttons"><button class="action" @click=${() => { this.app.setKinds("note"); this.app.setPanel("events"); }}>List the events of perf</button></p>`;
  }

  /** The last entry at the cursor. */
  private nearest(s: Session, rows: readonly Row[], time: boolean): number {
    if (s.cursor === undefined) return -1;
    let found = -1;
    rows.forEach((row, i) => { if ((time ? row.time! : row.at) <= s.cursor!) found = i; });
    return found;
  }

  private follow(element: Element | undefined, row: Row): void {
    if (!element || (this.shown?.at === row.at && this.shown.lane === row.lane)) return;
    this.shown = row;
    requestAnimationFrame(() => element.scrollIntoView({ block: "nearest" }));
  }

  private go(row: Row): void {
    this.app.selectLane(row.lane);
    void this.app.goTo(row.at, row.time);
  }

  private key(e: KeyboardEvent, rows: readonly Row[], here: number): void {
    const steps: Record<string, number> = { ArrowUp: here - 1, ArrowDown: here + 1, Home: 0, End: rows.length - 1 };
    const row = rows[Math.max(0, steps[e.key] ?? -1)];
    if (steps[e.key] === undefined || !row) return;
    e.preventDefault();
    e.stopPropagation();
    this.go(row);
  }
}
