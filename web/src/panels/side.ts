// SPDX-License-Identifier: MIT
// The panel at the right with its tabs, and the instructions around the cursor.
import { html, nothing, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import type { Session } from "../view/session.ts";
import { timeText } from "../timeline/describe.ts";
import { grouped } from "../base/format.ts";
import { isSoftware } from "../data/model.ts";
import type { Panel } from "../view/url.ts";
import { span } from "../base/scale.ts";
import { InsnList } from "./insnlist.ts";
import { later, Lazy } from "./lazy.ts";
import { OverviewPanel } from "./overview.ts";
import { exactText } from "./reach.ts";
import { sourceLink } from "./sourcelink.ts";

export const TABS: readonly (readonly [Panel, string])[] = [
  ["overview", "Overview"],
  ["insns", "Instructions"],
  ["source", "Source"],
  ["log", "Log"],
  ["events", "Events"],
  ["calls", "Calls"],
  ["interrupts", "Interrupts"],
  ["stats", "Statistics"],
  ["find", "Search"],
  ["together", "Cores"],
  ["sql", "SQL"],
  ["notes", "Notes"],
  ["compare", "Compare"],
];

/** Icons of the tabs, 16 × 16. */
const ICONS: Readonly<Partial<Record<Panel, string>>> = {
  overview: "M2.5 13.5V8M6.2 13.5v-11M9.8 13.5V6M13.5 13.5v-4",
  insns: "M2 4h12M2 8h12M2 12h8",
  source: "M5.5 4L2 8l3.5 4M10.5 4L14 8l-3.5 4",
  log: "M2 3h12v10H2zM4.5 6l2 2-2 2M8 10.5h3.5",
  events: "M9 1.5L3.5 9H8l-1 5.5L12.5 7H8z",
  calls: "M2 3.5h12v3H2zM2 6.5h8v3H2zM2 9.5h5v3H2z",
  interrupts: "M2 11h4V4l4 7h4M10 4h4M10 4v3",
  sql: "M3 4c0-2 10-2 10 0v8c0 2-10 2-10 0zM3 4c0 2 10 2 10 0M3 8c0 2 10 2 10 0",
  stats: "M12 3H4l4.5 5L4 13h8",
  find: "M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 0 0 0-9M10.3 10.3L14 14",
  together: "M2 4h5M9 4h5M2 8h8M12 8h2M2 12h3M7 12h7",
  notes: "M3 2.5h10v11H3zM5.5 6h5M5.5 9h5",
  compare: "M2.5 3h4v10h-4zM9.5 3h4v10h-4z",
};

/** A wait is told from this part of the view on. */
const SEEN = 0.004;

export class Side {
  private readonly list: InsnList;
  private readonly overview: OverviewPanel;
  private readonly tail: Lazy;
  private readonly lazy: ReadonlyMap<Panel, Lazy>;

  constructor(private readonly app: App) {
    this.list = new InsnList(app);
    this.overview = new OverviewPanel(app);
    this.tail = new Lazy(app, async () => new (await later()).TailPanel(app));
    this.lazy = new Map<Panel, Lazy>([
      ["calls", new Lazy(app, async () => new (await later()).CallsPanel(app))],
      ["source", new Lazy(app, async () => new (await later()).SourcePanel(app))],
      ["find", new Lazy(app, async () => new (await later()).FindPanel(app))],
      ["events", new Lazy(app, async () => new (await later()).EventsPanel(app))],
      ["log", new Lazy(app, async () => new (await later()).LogPanel(app))],
      ["notes", new Lazy(app, async () => new (await later()).NotesPanel(app))],
      ["together", new Lazy(app, async () => new (await later()).TogetherPanel(app))],
      ["interrupts", new Lazy(app, async () => new (await later()).InterruptsPanel(app))],
      ["stats", new Lazy(app, async () => new (await later()).StatsPanel(app))],
      ["sql", new Lazy(app, async () => new (await later()).SqlPanel(app))],
      ["compare", new Lazy(app, async () => new (await later()).ComparePanel(app))],
    ]);
  }

  view(s: Session): TemplateResult | typeof nothing {
    const { app } = this;
    this.overview.note(s);
    if (app.panel === "none") return nothing;
    const index = TABS.findIndex(([id]) => id === app.panel);
    const key = (e: KeyboardEvent): void => {
      const to = { ArrowDown: index + 1, ArrowRight: index + 1, ArrowUp: index - 1, ArrowLeft: index - 1, Home: 0, End: -1 }[e.key];
      if (to === undefined) return;
      e.preventDefault();
      const next = TABS[(to + TABS.length) % TABS.length]!;
      app.setPanel(next[0]);
      document.getElementById(`tab-${next[0]}`)?.focus();
    };
    const body = this.lazy.get(app.panel)?.view(s) ?? (app.panel === "overview" ? this.overview.view(s) : this.insns(s));
    return html`<aside class="side" aria-label="Details">
      <div class="tabs"><button class="close" aria-label="Close the panel" title="Close the panel" @click=${() => app.setPanel("none")}>×</button>
        <div role="tablist" aria-label="Details" aria-orientation="vertical" @keydown=${key}>
        ${TABS.map(([id, text]) => html`<button role="tab" id=${`tab-${id}`} aria-selected=${id === app.panel}
          aria-controls="tabpanel" tabindex=${id === app.panel ? 0 : -1}
          @click=${() => app.setPanel(id)}><svg viewBox="0 0 16 16" aria-hidden="true"><path d=${ICONS[id] ?? ""}></path></svg>${text}</button>`)}</div>
      </div>
      <div class="tabpanel" id="tabpanel" role="tabpanel" aria-labelledby=${`tab-${app.panel}`}>${body}</div>
    </aside>${this.lazy.get(app.panel)?.below(s) ?? nothing}`;
  }

  private insns(s: Session): TemplateResult | typeof nothing {
    const stream = s.stream;
    if (!stream) return html`<p class="muted hint">This trace has no streams yet.</p>`;
    // At the edge nothing is clicked on.
    if (this.app.following !== undefined && s.cursor === undefined) return this.tail.view(s);
    if (s.cursorInsn === undefined) return html`<p class="muted hint">Click in a lane to see what was executed there.</p>`;
    return html`${this.details(s)}${this.list.view(s)}`;
  }

  /** What lies between an instruction and the next one, if that is seen and the cursor is in it. */
  private wait(s: Session, at: number, time: number): string {
    const next = s.insns(s.lane)?.get(at + 1);
    if (s.view.axis !== "time" || !next || next.time === undefined || s.cursor! <= time || s.cursor! >= next.time) return "";
    const long = next.time - time;
    if (long < span(s.view) * SEEN) return "";
    const events = next.events.filter((e) => !e.startsWith("timestamp"));
    const what = events.length > 0 ? `${events.join(", ")}, after` : "waits for";
    return `${what} ${exactText(s, long)}, until ${timeText(s, next.time, s.stream?.timeIsNs ?? true)}`;
  }

  private details(s: Session): TemplateResult {
    const at = s.cursorInsn;
    if (at === undefined) return html``;
    const row = s.insns(s.lane)?.get(at);
    const time = s.position?.time ?? row?.time;
    const ns = s.stream?.timeIsNs ?? true;
    // Messages are not executed anywhere.
    const software = isSoftware(s.stream?.protocol ?? "");
    const executed: (readonly [string, unknown])[] = [
      ["Function", row === undefined ? "…" : row.fn === "" ? "–" : html`<span class="swatch"
        .style=${`background:${this.app.swatch(row.fn).css}`}></span>${row.fn}<span class="muted">${row.offset}</span>`],
      ["PC", html`<code>${row?.pc ?? "…"}</code>`],
    ];
    const fields: (readonly [string, unknown])[] = [
      ...(software ? [] : executed),
      [software ? "Record" : "Instruction", grouped(at)],
      ["Time", time === undefined ? "–" : timeText(s, time, ns)],
      ...(row?.file ? [["Source", sourceLink(this.app, row)] as const] : []),
      ...(software ? [] : [["Mode", row?.mode || "–"] as const]),
      ["Trace byte", s.position ? grouped(s.position.byte) : "…"],
    ];
    if (row && row.events.length > 0) fields.push(["Preceded by", row.events.join(", ")]);
    const wait = time === undefined ? "" : this.wait(s, at, time);
    if (wait !== "") fields.push(["Then", wait]);
    return html`<dl class="details">${fields.map(([k, v]) => html`<div><dt>${k}</dt><dd>${v}</dd></div>`)}</dl>`;
  }
}
