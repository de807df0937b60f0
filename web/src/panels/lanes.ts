// SPDX-License-Identifier: MIT
// The lanes as a table: the content of the timeline as text.
import { html, nothing, type TemplateResult } from "lit-html";
import { AS_THEY_COME, toggled } from "../view/arrange.ts";
import type { App } from "../view/app.ts";
import type { Session } from "../view/session.ts";
import { setLabels } from "../data/change.ts";
import { describe } from "../timeline/describe.ts";
import { bytes, duration, grouped } from "../base/format.ts";
import type { Stream } from "../data/model.ts";
import type { Timeline } from "../timeline/timeline.ts";

/** Set a user-defined name of a lane, or its core, which is a label of its trace. */
async function call(app: App, trace: string, label: string, name: string, usual: string): Promise<void> {
  try {
    await setLabels(trace, { [label]: name.trim() === usual ? "" : name.trim() });
  } catch (error) {
    app.say(`The name was not changed: ${(error as Error).message}`);
  }
}

function tools(app: App, s: Session): TemplateResult {
  const { streams } = s.trace;
  const seen = rowsOf(s).seen.size;
  const fold = (open: boolean): void => {
    s.fold(open ? streams.map((x) => x.name) : [], []);
    app.moved();
  };
  const { order, hidden, pinned, folded, only } = s.arrangement;
  const usual = order.length + hidden.length + pinned.length + folded.length === 0 && only === "";
  return html`<p class="buttons"><label>Filter lanes <input type="search" spellcheck="false" .value=${s.arrangement.only}
      @input=${(e: Event) => app.tree.arrange({ only: (e.target as HTMLInputElement).value })}></label>
    <span class="muted">${seen < streams.length ? `${grouped(seen)} of ${grouped(streams.length)} shown` : `${grouped(seen)} shown`}</span>
    <button class="action" ?disabled=${usual} @click=${() => app.tree.arrange(AS_THEY_COME)}>Reset arrangement</button>
    <button class="action" @click=${() => fold(false)}>Close all call stacks</button>
    <button class="action" @click=${() => fold(true)}>Open all call stacks</button></p>`;
}

/** Arrangement controls of a lane. */
function place(app: App, s: Session, name: string): TemplateResult {
  const a = s.arrangement;
  const others = s.trace.streams.map((x) => x.name).filter((n) => n !== name);
  const alone = !a.hidden.includes(name) && others.length > 0 && others.every((n) => a.hidden.includes(n));
  const button = (text: string, label: string, on: boolean | undefined, act: () => void): TemplateResult => html`<button class="action"
    aria-label=${`${/[a-z]/.test(text) ? text : label} ${name}`} title=${label} aria-pressed=${on === undefined ? nothing : on} @click=${act}>${text}</button>`;
  return html`${button("▴", "Up", undefined, () => app.tree.move(name, -1))}
    ${button("▾", "Down", undefined, () => app.tree.move(name, 1))}
    ${button("Pin", "Keep on top", a.pinned.includes(name), () => app.tree.pin(name))}
    ${button("Hide", "Hide", a.hidden.includes(name), () => app.tree.arrange({ hidden: toggled(a.hidden, name) }))}
    ${button("Alone", "Show only this", alone, () => app.tree.arrange({ hidden: alone ? [] : others }))}`;
}

/** Lanes that are visible, and all lanes, from top to bottom. */
function rowsOf(s: Session): { seen: Set<number>; all: number[] } {
  const seen = s.rows.flatMap((node) => (node.lane !== undefined || node.folded ? node.lanes : []));
  return { seen: new Set(seen), all: [...new Set([...seen, ...s.trace.streams.keys()])] };
}

export function laneTable(app: App, s: Session, timeline: Timeline): TemplateResult {
  const at = s.cursor ?? (s.view.from + s.view.to) / 2;
  const core = ({ core, device }: Stream): string => [core, device && (core ? `(${device})` : device)].filter(Boolean).join(" ") || "–";
  const { seen, all } = rowsOf(s);
  return html`<section class="lanes" aria-label="Lanes">
    <div class="scroll" tabindex="0" role="region" aria-label="Table of lanes">${tools(app, s)}<table class="traces">
      <caption>Lanes of ${s.trace.rig || "this trace"}; “here” is ${s.cursor === undefined ? "the middle of the view" : "the cursor"}</caption>
      <thead><tr><th scope="col">Stream</th><th scope="col">Name</th><th scope="col">Arrange</th><th scope="col">Core</th><th scope="col">Protocol</th><th scope="col">Here</th>
        <th scope="col">Mode</th><th scope="col" class="n">Instructions</th><th scope="col" class="n">Time</th>
        <th scope="col" class="n">Events</th><th scope="col" class="n">Gaps</th>
        <th scope="col" class="n">Lost</th><th scope="col" class="n">Stored</th></tr></thead>
      <tbody>${all.map((lane) => {
    const stream = s.trace.streams[lane]!;
    const d = describe(s, timeline.under.inspect(s, lane, at));
    return html`<tr class=${`${lane === s.lane ? "selected" : ""} ${seen.has(lane) ? "" : "away"}`}>
        <th scope="row"><button class="plain" @click=${() => app.selectLane(lane)}>${stream.name}</button></th>
        <td><input class="called" aria-label=${`Name of ${stream.name}`} spellcheck="false" .value=${s.called(stream.name)}
          @change=${(e: Event) => void call(app, s.trace.id, `lane.${stream.name}`, (e.target as HTMLInputElement).value, stream.name)}></td>
        <td class="tools">${place(app, s, stream.name)}</td>
        <td><input class="called" aria-label=${`Core or group of ${stream.name}`} title="Separate levels with slashes: cluster 0 / core 1" spellcheck="false"
          .value=${s.trace.labels[`core.${stream.name}`] ?? ""} placeholder=${core(stream)}
          @change=${(e: Event) => void call(app, s.trace.id, `core.${stream.name}`, (e.target as HTMLInputElement).value, "")}></td>
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
