// SPDX-License-Identifier: MIT
// The list of traces.
import { html, type TemplateResult } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import type { App } from "../view/app.ts";
import { ago, bytes, duration, grouped, short } from "../base/format.ts";
import { executed, extentOf, hasTime, isDerived, timeIsNs, type Trace } from "../data/model.ts";
import { encodePlace, emptyPlace } from "../view/url.ts";
import type { ListTools } from "./listtools.ts";

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

/** Not those of threads' streams, which are other streams' again. */
function gapsOf(trace: Trace): number {
  return sum(trace, (s) => (isDerived(s.name) ? 0 : s.gaps));
}

function length(trace: Trace): string {
  if (!hasTime(trace) || !timeIsNs(trace)) return "–";
  const { first, last } = extentOf(trace, "time");
  return duration(last - first);
}

interface Column {
  readonly key: string;
  readonly head: string;
  readonly number?: boolean;
  of(t: Trace): string | number;
}

const stored = (t: Trace): number => sum(t, (s) => s.storedBytes);

const COLUMNS: readonly Column[] = [
  { key: "id", head: "Trace", of: (t) => t.id.toLowerCase() },
  { key: "state", head: "State", of: (t) => t.state },
  { key: "rig", head: "Rig", of: (t) => t.rig.toLowerCase() },
  { key: "format", head: "Format", of: (t) => t.format },
  { key: "streams", head: "Streams", number: true, of: (t) => t.streams.length },
  { key: "insns", head: "Instructions", number: true, of: executed },
  { key: "length", head: "Duration", number: true, of: (t) => (hasTime(t) && timeIsNs(t) ? extentOf(t, "time").last - extentOf(t, "time").first : -1) },
  { key: "raw", head: "Raw", number: true, of: (t) => t.rawBytes },
  { key: "stored", head: "Decoded", number: true, of: stored },
  { key: "gaps", head: "Gaps", number: true, of: gapsOf },
  { key: "changed", head: "Changed", number: true, of: (t) => t.updatedMs },
];

function sorted(app: App, traces: readonly Trace[]): readonly Trace[] {
  const column = COLUMNS.find((c) => c.key === app.sort.key);
  if (!column) return traces;
  const by = app.sort.down ? -1 : 1;
  return [...traces].sort((a, b) => {
    const [x, y] = [column.of(a), column.of(b)];
    return x < y ? -by : x > y ? by : a.id < b.id ? -1 : 1;
  });
}

function head(app: App, c: Column): TemplateResult {
  const on = app.sort.key === c.key;
  // A click reverses the order; numbers begin with the largest.
  const click = (): void => {
    app.sort = { key: c.key, down: on ? !app.sort.down : c.number === true };
    app.changed();
  };
  return html`<th scope="col" class=${c.number ? "n" : ""} aria-sort=${on ? (app.sort.down ? "descending" : "ascending") : "none"}
    ><button class="plain" @click=${click}>${c.head}<span aria-hidden="true">${on ? (app.sort.down ? " ▾" : " ▴") : ""}</span></button></th>`;
}

function row(tools: ListTools, trace: Trace, now: number): TemplateResult {
  const gaps = gapsOf(trace);
  const labels = Object.entries(trace.labels);
  return html`<tr>
    <th scope="row"><a id=${`trace-${trace.id}`} href=${encodePlace(emptyPlace(trace.id))}>${trace.id}</a>
      ${labels.map(([k, v]) => html`<span class="label">${k}=${v}</span>`)}
      ${trace.message !== "" ? html`<div class="message">${trace.message}</div>` : ""}</th>
    <td>${stateBadge(trace)}</td>
    <td>${trace.rig || "–"}</td>
    <td class="format" title=${trace.format}>${trace.format}</td>
    <td class="n">${trace.streams.length}</td>
    <td class="n" title=${grouped(executed(trace))}>${short(executed(trace))}</td>
    <td class="n">${length(trace)}</td>
    <td class="n">${bytes(trace.rawBytes)}</td>
    <td class="n">${bytes(stored(trace))}</td>
    <td class="n ${gaps > 0 ? "warn" : ""}">${gaps > 0 ? short(gaps) : "–"}</td>
    <td class="n muted">${ago(trace.updatedMs, now)}</td>
    <td class="tools"><button class="action" aria-label=${`Labels of ${trace.id}`} @click=${() => tools.editLabels(trace)}>Labels</button>
      <button class="action" aria-label=${`Delete ${trace.id}`} @click=${() => tools.askDelete(trace)}>Delete</button></td>
  </tr>`;
}

export function traceList(app: App, tools: ListTools): TemplateResult {
  const all = app.traces;
  const wanted = app.filter.trim().toLowerCase();
  const shown = sorted(app, (all ?? []).filter((t) => wanted === "" || [t.id, t.rig, t.format,
    ...Object.entries(t.labels).map(([k, v]) => `${k}=${v}`)].some((text) => text.toLowerCase().includes(wanted))));
  const total = (of: (t: Trace) => number): string => bytes((all ?? []).reduce((n, t) => n + of(t), 0));
  const { drop } = tools;
  return html`<main class="list ${tools.dragging ? "dropping" : ""}" @dragover=${drop.over} @dragleave=${drop.leave} @drop=${drop.drop}>
    <div class="listhead">
      <h1>Traces</h1>
      <span class="muted storage">${all ? `${app.moreTraces ? `The newest ${grouped(all.length)}` : `${grouped(all.length)} on this server`}, ${total((t) => t.rawBytes)} raw and ${total(stored)} decoded` : ""}</span>
      <input type="search" class="filter" placeholder="Filter" aria-label="Filter traces"
        .value=${app.filter} @input=${(e: InputEvent) => {
    app.filter = (e.target as HTMLInputElement).value;
    app.changed();
  }}><button class="action" title="Or drop a file here" @click=${() => tools.bring()}>Import…</button>
    </div>
    ${app.trouble !== "" ? html`<p class="trouble" role="alert">${app.trouble}</p>` : ""}
    ${!all ? html`<p class="muted waiting">${app.connection === "lost"
    ? "The server does not answer. Trying again…" : "Loading…"}</p>`
    : all.length === 0 ? empty()
      : html`<div class="scroll" tabindex="0" role="region" aria-label="Traces"><table class="traces">
      <thead><tr>${COLUMNS.map((c) => head(app, c))}<th scope="col"><span class="hidden">Actions</span></th></tr></thead>
      <tbody>${repeat(shown, (t) => t.id, (t) => row(tools, t, Date.now()))}</tbody>
    </table>${shown.length === 0 ? html`<p class="muted waiting">No trace matches “${app.filter}”.</p>` : ""}
      ${app.moreTraces ? html`<p class="more"><button class="action" @click=${() => app.showMore()}>Show older</button>${wanted === "" ? "" : html` <span class="muted">The filter only covers the traces listed here.</span>`}</p>` : ""}</div>`}
  </main>${tools.view()}`;
}

function empty(): TemplateResult {
  return html`<section class="empty">
    <h2>No traces yet</h2>
    <p>They appear here as soon as a rig pushes one. Drop a file here, or push a capture from the command line:</p>
    <pre tabindex="0"><code>tracelake push --format tpiu --config board.ini --image firmware.elf capture.bin
tracelake push --snapshot DIR</code></pre>
  </section>`;
}
