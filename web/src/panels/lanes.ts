// SPDX-License-Identifier: MIT
// The lanes as a table: what the timeline shows as a picture, for those who read.
import { html, nothing, type TemplateResult } from "lit-html";
import { AS_THEY_COME, inOrder, moveLane, toggled } from "../arrange.ts";
import type { App } from "../app.ts";
import type { Session } from "../session.ts";
import { setLabels } from "../change.ts";
import { describe } from "../describe.ts";
import { bytes, duration, grouped } from "../format.ts";
import type { Timeline } from "../timeline/timeline.ts";

/** A name that people give a lane is a label of its trace. */
async function call(app: App, trace: string, stream: string, name: string): Promise<void> {
  try {
    await setLabels(trace, { [`lane.${stream}`]: name.trim() === stream ? "" : name.trim() });
  } catch (error) {
    app.say(`The name was not taken: ${(error as Error).message}`);
  }
}

function tools(app: App, s: Session): TemplateResult {
  const { streams } = s.trace;
  const seen = s.lanes.length;
  const fold = (open: boolean): void => {
    s.fold(open ? streams.map((x) => x.name) : [], []);
    app.moved();
  };
  const usual = s.arrangement.order.length + s.arrangement.hidden.length + s.arrangement.pinned.length === 0 && s.arrangement.only === "";
  return html`<p class="buttons"><label>Only lanes with <input type="search" spellcheck="false" .value=${s.arrangement.only}
      @input=${(e: Event) => app.arrange({ only: (e.target as HTMLInputElement).value })}></label>
    <span class="muted">${seen < streams.length ? `${grouped(seen)} of ${grouped(streams.length)} shown` : `${grouped(seen)} shown`}</span>
    <button class="action" ?disabled=${usual} @click=${() => app.arrange(AS_THEY_COME)}>Show all as they come</button>
    <button class="action" @click=${() => fold(false)}>Close all call stacks</button>
    <button class="action" @click=${() => fold(true)}>Open all</button></p>`;
}

/** What is arranged of a lane. */
function place(app: App, s: Session, name: string): TemplateResult {
  const a = s.arrangement;
  const others = s.trace.streams.map((x) => x.name).filter((n) => n !== name);
  const alone = !a.hidden.includes(name) && others.length > 0 && others.every((n) => a.hidden.includes(n));
  const button = (text: string, label: string, on: boolean | undefined, act: () => void): TemplateResult => html`<button class="action"
    aria-label=${`${/[a-z]/.test(text) ? text : label} ${name}`} title=${label} aria-pressed=${on === undefined ? nothing : on} @click=${act}>${text}</button>`;
  return html`${button("▴", "Up", undefined, () => app.arrange(moveLane(s.trace.streams, a, name, -1)))}
    ${button("▾", "Down", undefined, () => app.arrange(moveLane(s.trace.streams, a, name, 1)))}
    ${button("Pin", "Keep on top", a.pinned.includes(name), () => app.arrange({ pinned: toggled(a.pinned, name) }))}
    ${button("Hide", "Hide", a.hidden.includes(name), () => app.arrange({ hidden: toggled(a.hidden, name) }))}
    ${button("Alone", "Show alone", alone, () => app.arrange({ hidden: alone ? [] : others }))}`;
}

export function laneTable(app: App, s: Session, timeline: Timeline): TemplateResult {
  const at = s.cursor ?? (s.view.from + s.view.to) / 2;
  const seen = new Set(s.lanes);
  const core = s.setup;
  return html`<section class="lanes" aria-label="Lanes">
    <div class="scroll" tabindex="0" role="region" aria-label="Table of lanes">${tools(app, s)}<table class="traces">
      <caption>Lanes of ${s.trace.rig || "this trace"}; “here” is ${s.cursor === undefined ? "the middle of the view" : "the cursor"}</caption>
      <thead><tr><th scope="col">Stream</th><th scope="col">Called</th><th scope="col">Place</th><th scope="col">Core</th><th scope="col">Protocol</th><th scope="col">Here</th>
        <th scope="col">Mode</th><th scope="col" class="n">Instructions</th><th scope="col" class="n">Time</th>
        <th scope="col" class="n">Events</th><th scope="col" class="n">Gaps</th>
        <th scope="col" class="n">Lost</th><th scope="col" class="n">Stored</th></tr></thead>
      <tbody>${inOrder(s.trace.streams, s.arrangement).map((lane) => {
    const stream = s.trace.streams[lane]!;
    const d = describe(s, timeline.inspect(s, lane, at));
    return html`<tr class=${`${lane === s.lane ? "selected" : ""} ${seen.has(lane) ? "" : "away"}`}>
        <th scope="row"><button class="plain" @click=${() => app.selectLane(lane)}>${stream.name}</button></th>
        <td><input class="called" aria-label=${`What ${stream.name} is called`} spellcheck="false" .value=${s.called(stream.name)}
          @change=${(e: Event) => void call(app, s.trace.id, stream.name, (e.target as HTMLInputElement).value)}></td>
        <td class="tools">${place(app, s, stream.name)}</td>
        <td>${core(stream.name)}</td>
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
