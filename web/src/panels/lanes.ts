// SPDX-License-Identifier: MIT
// The lanes as a table: what the timeline shows as a picture, for those who read.
import { html, type TemplateResult } from "lit-html";
import type { App } from "../app.ts";
import type { Session } from "../session.ts";
import { describe } from "../describe.ts";
import { bytes, duration, grouped } from "../format.ts";
import type { Timeline } from "../timeline/timeline.ts";

export function laneTable(app: App, s: Session, timeline: Timeline): TemplateResult {
  const at = s.cursor ?? (s.view.from + s.view.to) / 2;
  return html`<section class="lanes" aria-label="Lanes">
    <div class="scroll" tabindex="0" role="region" aria-label="Table of lanes"><table class="traces">
      <caption>Lanes; “here” is ${s.cursor === undefined ? "the middle of the view" : "the cursor"}</caption>
      <thead><tr><th scope="col">Stream</th><th scope="col">Protocol</th><th scope="col">Here</th>
        <th scope="col">Mode</th><th scope="col" class="n">Instructions</th><th scope="col" class="n">Time</th>
        <th scope="col" class="n">Events</th><th scope="col" class="n">Gaps</th>
        <th scope="col" class="n">Lost</th><th scope="col" class="n">Stored</th></tr></thead>
      <tbody>${s.trace.streams.map((stream, lane) => {
    const d = describe(s, timeline.inspect(s, lane, at));
    return html`<tr class=${lane === s.lane ? "selected" : ""}>
        <th scope="row"><button class="plain" @click=${() => { app.selectLane(lane); timeline.reveal(lane); }}>${stream.name}</button></th>
        <td>${stream.protocol}</td>
        <td>${[d.what, d.share, d.events, d.lost].filter(Boolean).join(", ") || "–"}</td>
        <td>${d.mode || "–"}</td>
        <td class="n">${grouped(stream.insns)}</td>
        <td class="n">${stream.hasTime && stream.timeIsNs ? duration(stream.timeLast - stream.timeFirst) : "–"}</td>
        <td class="n">${grouped(stream.events)}</td>
        <td class="n ${stream.gaps > 0 ? "warn" : ""}">${grouped(stream.gaps)}</td>
        <td class="n">${bytes(stream.lostBytes)}</td>
        <td class="n">${bytes(stream.storedBytes)}</td></tr>`;
  })}</tbody></table></div>
  </section>`;
}
