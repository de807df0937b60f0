// SPDX-License-Identifier: MIT
// The list of traces.
import { html, type TemplateResult } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import type { App } from "../app.ts";
import { ago, bytes, duration, grouped, short } from "../format.ts";
import { extentOf, hasTime, timeIsNs, type Trace } from "../model.ts";
import { encodePlace, emptyPlace } from "../url.ts";

const STATE_TEXT = {
  live: "live", decoding: "decoding", sealed: "complete", failed: "failed", deleted: "deleted",
};

export function stateBadge(trace: Trace): TemplateResult {
  const share = trace.state === "decoding" && trace.rawBytes > 0
    ? ` ${Math.floor((100 * trace.decodedBytes) / trace.rawBytes)} %` : "";
  return html`<span class="badge ${trace.state}" title=${trace.message}
    >${STATE_TEXT[trace.state]}${share}</span>`;
}

function sum(trace: Trace, of: (s: Trace["streams"][number]) => number): number {
  return trace.streams.reduce((n, s) => n + of(s), 0);
}

function length(trace: Trace): string {
  if (!hasTime(trace) || !timeIsNs(trace)) return "–";
  const { first, last } = extentOf(trace, "time");
  return duration(last - first);
}

function row(trace: Trace, now: number): TemplateResult {
  const gaps = sum(trace, (s) => s.gaps);
  const labels = Object.entries(trace.labels);
  return html`<tr>
    <th scope="row"><a id=${`trace-${trace.id}`} href=${encodePlace(emptyPlace(trace.id))}>${trace.id}</a>
      ${labels.map(([k, v]) => html`<span class="label">${k}=${v}</span>`)}
      ${trace.message !== "" ? html`<div class="message">${trace.message}</div>` : ""}</th>
    <td>${stateBadge(trace)}</td>
    <td>${trace.rig || "–"}</td>
    <td>${trace.format}</td>
    <td class="n">${trace.streams.length}</td>
    <td class="n" title=${grouped(sum(trace, (s) => s.insns))}>${short(sum(trace, (s) => s.insns))}</td>
    <td class="n">${length(trace)}</td>
    <td class="n">${bytes(trace.rawBytes)}</td>
    <td class="n ${gaps > 0 ? "warn" : ""}">${gaps > 0 ? short(gaps) : "–"}</td>
    <td class="n muted">${ago(trace.updatedMs, now)}</td>
  </tr>`;
}

export function traceList(app: App): TemplateResult {
  const all = app.traces;
  const wanted = app.filter.trim().toLowerCase();
  const shown = (all ?? []).filter((t) => wanted === "" || [t.id, t.rig, t.format,
    ...Object.entries(t.labels).flat()].some((text) => text.toLowerCase().includes(wanted)));
  return html`<main class="list">
    <div class="listhead">
      <h1>Traces</h1>
      <span class="muted">${all ? `${grouped(all.length)} on this server` : ""}</span>
      <input type="search" class="filter" placeholder="Filter" aria-label="Filter traces"
        .value=${app.filter} @input=${(e: InputEvent) => {
    app.filter = (e.target as HTMLInputElement).value;
    app.changed();
  }}>
    </div>
    ${app.trouble !== "" ? html`<p class="trouble" role="alert">${app.trouble}</p>` : ""}
    ${!all ? html`<p class="muted waiting">${app.connection === "lost"
    ? "The server does not answer. Trying again…" : "Loading…"}</p>`
    : all.length === 0 ? empty()
      : html`<div class="scroll" tabindex="0" role="region" aria-label="Traces"><table class="traces">
      <thead><tr><th scope="col">Trace</th><th scope="col">State</th><th scope="col">Rig</th>
        <th scope="col">Format</th><th scope="col" class="n">Streams</th>
        <th scope="col" class="n">Instructions</th><th scope="col" class="n">Duration</th>
        <th scope="col" class="n">Raw</th><th scope="col" class="n">Gaps</th>
        <th scope="col" class="n">Changed</th></tr></thead>
      <tbody>${repeat(shown, (t) => t.id, (t) => row(t, Date.now()))}</tbody>
    </table>${shown.length === 0 ? html`<p class="muted waiting">No trace matches “${app.filter}”.</p>` : ""}</div>`}
  </main>`;
}

function empty(): TemplateResult {
  return html`<section class="empty">
    <h2>No traces yet</h2>
    <p>They appear here as soon as a rig pushes one. To push a capture from this machine:</p>
    <pre tabindex="0"><code>tracelake push --format tpiu --config board.ini --image firmware.elf capture.bin
tracelake push --snapshot DIR</code></pre>
  </section>`;
}
