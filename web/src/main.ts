// SPDX-License-Identifier: MIT
// Assembles the page: panels with lit-html, the timeline beside them, one paint per frame.
import { html, nothing, render, type TemplateResult } from "lit-html";
import { App } from "./view/app.ts";
import { describe, widthText } from "./timeline/describe.ts";
import { duration, short } from "./base/format.ts";
import { match } from "./view/keys.ts";
import { timeIsNs, unitName } from "./data/model.ts";
import { PRIVILEGE, type Theme } from "./view/palette.ts";
import { CommandBox } from "./panels/commands.ts";
import { Divider } from "./panels/divider.ts";
import { Header } from "./panels/header.ts";
import { later, Lazy } from "./panels/lazy.ts";
import { Lengths } from "./panels/lengths.ts";
import { traceList } from "./panels/list.ts";
import { ListTools } from "./panels/listtools.ts";
import { boundedText } from "./panels/reach.ts";
import { Side, TABS } from "./panels/side.ts";
import { span } from "./base/scale.ts";
import type { Session } from "./view/session.ts";
import { foldedText, seamText } from "./timeline/seams.ts";
import { Timeline } from "./timeline/timeline.ts";

/** Replaced by style.css at build time: opening the page needs no further request. */
declare const STYLE_SHEET: string;
const sheet = new CSSStyleSheet();
sheet.replaceSync(STYLE_SHEET);
document.adoptedStyleSheets = [sheet];

const root = document.getElementById("app")!;
const dark = matchMedia("(prefers-color-scheme: dark)");
const app = new App(paint);
const timeline = new Timeline(app);
const header = new Header(app, toggleTheme, () => timeline.focus());
const side = new Side(app);
const tools = new ListTools(app);
const box = new CommandBox(app, command, TABS, () => timeline.save(app.session));
const lengths = new Lengths(app);
const table = new Lazy(app, async () => {
  const { laneTable } = await later();
  return { view: (s: Session) => laneTable(app, s, timeline) };
}, nothing);
const help = new Lazy<[string]>(app, async () => {
  const { helpDialog } = await later();
  return { view: (protocol: string) => helpDialog(protocol, () => { app.help = false; app.changed(); }) };
}, nothing);
const divider = new Divider(() => app.changed());
let opened: Session | undefined;
let listed = false; // the list of traces was shown last

function chosenTheme(): Theme {
  const stored = localStorage.getItem("theme");
  return stored === "light" || stored === "dark" ? stored : dark.matches ? "dark" : "light";
}

function applyTheme(): void {
  app.theme = chosenTheme();
  const { dataset, style } = document.documentElement;
  dataset.theme = app.theme;
  PRIVILEGE[app.theme].forEach((colour, level) => style.setProperty(`--p${level}`, colour.css));
  app.changed();
}

function toggleTheme(): void {
  const other: Theme = app.theme === "dark" ? "light" : "dark";
  // If the choice equals the system's theme, follow the system again.
  if ((other === "dark") === dark.matches) localStorage.removeItem("theme");
  else localStorage.setItem("theme", other);
  applyTheme();
}

/** "gap overflow, 3 of 5", as long as the cursor is there. */
function stepText(s: Session): string {
  const { step } = s;
  return step && step.cursor === s.cursor && step.lane === s.lane ? `${step.text}, ${step.list.position}` : "";
}

function status(s: Session): TemplateResult {
  const hover = timeline.hover ?? (s.cursor !== undefined ? timeline.under.inspect(s, s.lane, s.cursor) : undefined);
  const d = hover && describe(s, hover);
  const { first, last } = s.extent;
  const wide = span({ ...s.view, from: Math.max(s.view.from, first), to: Math.min(s.view.to, last) });
  const units = new Set(s.trace.streams.filter((x) => x.insns > 0).map((x) => unitName(x.protocol)));
  const folded = foldedText(s, timeline.plotWidth);
  const size = s.view.axis === "insn" ? units.size === 0 ? "" : `${short(wide)} ${units.size === 1 ? [...units][0] : "insns"}`
    : timeIsNs(s.trace) ? duration(wide) : `${short(wide)} ticks`;
  const cell = (name: string, text: string, cls = ""): TemplateResult | typeof nothing =>
    text === "" ? nothing : html`<span class=${`cell ${cls}`} title=${name}>${text}</span>`;
  return html`${d ? html`${cell("Lane", d.lane, "lane")}${cell("Function", d.what, "strong")}${cell("Share", d.share)}
      ${cell("Position", d.where, "num")}${cell("Width of the bucket under the pointer", d.width && `in ${d.width}`, "num muted")}
      ${cell("Mode", d.mode)}${cell("Events", d.events)}${cell("Lost", d.lost, "bad")}` : nothing}
    <span class="grow"></span>
    ${cell("Result of the last step", stepText(s), "num")}
    ${cell("Width of the view", size && `${size} in view${folded && `, ${folded}`}`, "num muted")}
    <span class="busy ${app.settled && !timeline.late ? "" : "on"}" aria-hidden="true"></span>`;
}

/** Description of what is under the pointer, next to it. The status line has the details. */
function tip(s: Session): TemplateResult | typeof nothing {
  const hover = timeline.hover;
  if (!hover || timeline.dragging || hover.y < 24) return nothing;
  const seam = timeline.seamAt(hover.x);
  const hit = timeline.under.sliceAt(hover.x, hover.y);
  const inlined = hit ? undefined : timeline.under.inlinedAt(hover.x, hover.y);
  const d = describe(s, hover);
  const length = hit && hit.whole ? lengths.of(s, hit.lane, hit.slice) : undefined;
  const [title, detail] = seam ? [seamText(s, seam), "folded away: a click shows it"] : hit
    ? [hit.slice.name || "unnamed code", length ? boundedText(s, length) : `${hit.whole ? "" : "more than "}${widthText(s, hit.slice.to - hit.slice.from) || "1 insn"}`]
    : inlined ? [inlined.fn, `inlined, ${widthText(s, inlined.to - inlined.from) || "1 insn"}`]
    : [d.what, [d.share, d.mode].filter(Boolean).join(" · ")];
  if (title === "") return nothing;
  const right = hover.x > timeline.plotWidth - 260;
  const style = `top:${Math.round(hover.y + 16)}px;${right ? `right:${Math.round(timeline.plotWidth - hover.x + 12)}px`
    : `left:${Math.round(hover.x + 12)}px`}`;
  return html`<div class="tip" aria-hidden="true" .style=${style}><b>${title}</b>${detail ? html`<span>${detail}</span>` : nothing}
    ${hit || inlined || seam ? nothing : [d.lost, d.events].filter(Boolean).map((t) => html`<span class=${t === d.lost ? "bad" : ""}>${t}</span>`)}</div>`;
}

function tracePage(s: Session): TemplateResult {
  return html`<main class="trace ${app.panel === "none" ? "wide" : ""}">
    ${timeline.element}${app.panel === "none" ? nothing : divider.view()}${side.view(s)}
    <p id="timeline-help" class="hidden">W and S zoom, A and D pan, comma and full stop step through
      the trace, square brackets jump to events, question mark shows all keys.</p>
    ${app.table ? table.view(s) : nothing}
    </main><footer id="status"></footer>`;
}

function paint(pointed: boolean): void {
  const s = app.session;
  if (s && pointed) {
    timeline.drawOver(s);
    details(s);
    return;
  }
  document.title = s ? `${s.trace.id} – tracelake` : "tracelake";
  render(html`${header.view()}
    ${s ? tracePage(s) : traceList(app, tools)}
    ${box.open ? box.view() : nothing}
    ${app.help ? help.view(s?.stream?.protocol ?? "") : nothing}
    <div class="hidden" role="status" aria-live="polite">${app.announced}</div>`, root);
  keepFocus(s);
  if (!s) return;
  timeline.draw();
  details(s);
}

/** If the focused element is gone, move the focus to its replacement. */
function keepFocus(s: Session | undefined): void {
  const lost = document.activeElement === null || document.activeElement === document.body;
  if (s !== opened && lost) {
    if (s && listed) timeline.focus();
    else if (!s && opened) document.getElementById(`trace-${opened.trace.id}`)?.focus();
  }
  opened = s;
  // A link to a trace does not show the list first.
  if (s) listed = false;
  else if (!location.hash.startsWith("#/trace/")) listed = true;
}

/** Content that follows the pointer. */
function details(s: Session): void {
  render(status(s), document.getElementById("status")!);
  render(tip(s), timeline.tips);
}

/** Key commands for a lane or a group. */
function arrange(what: "laneHigher" | "laneLower" | "pinLane" | "aloneLane" | "hideLane", node: string | undefined): void {
  if (node === undefined) return;
  if (what === "laneHigher") app.tree.move(node, -1);
  else if (what === "laneLower") app.tree.move(node, 1);
  else if (what === "pinLane") app.tree.pin(node);
  else if (what === "aloneLane") app.tree.alone(node);
  else app.tree.hide(node);
}

function command(e: KeyboardEvent): void {
  const target = (e.target ?? document.body) as HTMLElement;
  const typing = target.closest("input, select, textarea") !== null;
  const binding = match(e);
  if (!binding || e.defaultPrevented) return;
  if (typing && !(e.ctrlKey || e.metaKey)) return;
  const dialog = document.querySelector<HTMLDialogElement>("dialog[open]");
  if (dialog) {
    if (binding.command === "help" && !typing) dialog.close();
    return;
  }
  const s = app.session;
  switch (binding.command) {
    case "help": app.help = !app.help; break;
    case "theme": toggleTheme(); break;
    case "commands": box.toggle(); break;
    case "escape":
      if (app.table) app.table = false;
      else if (app.swatches.highlight !== "") app.highlight("");
      else app.select(undefined);
      break;
    default:
      if (!s || app.help) return;
      switch (binding.command) {
        case "search": header.focusSearch(); break;
        case "range": timeline.bar.field.focus(); break;
        case "follow":
          if (s.trace.state !== "live" && s.trace.state !== "decoding") return;
          app.follow(app.following === undefined ? 0 : undefined);
          break;
        case "axis": app.toggleAxis(); break;
        case "note": app.noting.write(); break;
        case "bookmark": void app.noting.bookmark(); break;
        case "noteForward": app.noting.next(1); break;
        case "noteBack": app.noting.next(-1); break;
        case "states":
        case "counters": app.tree.toggleSub(binding.command); break;
        case "panel": app.setPanel(app.panel === "none" ? "insns" : "none"); break;
        case "laneHigher":
        case "laneLower":
        case "pinLane":
        case "aloneLane":
        case "hideLane": arrange(binding.command, timeline.node); break;
        case "everyLane":
          app.everyLane = !app.everyLane;
          app.say(app.everyLane ? "Events, gaps and calls of all lanes." : "Events, gaps and calls of the selected lane.");
          break;
        case "allLanes": app.tree.arrange({ hidden: [], only: "" }); break;
        case "table": app.table = !app.table; break;
        case "gapForward": void app.finder.jump("gap", 1); break;
        case "gapBack": void app.finder.jump("gap", -1); break;
        case "callForward": void app.finder.jump("call", 1); break;
        case "callBack": void app.finder.jump("call", -1); break;
        case "eventForward": void app.finder.jump("event", 1); break;
        case "eventBack": void app.finder.jump("event", -1); break;
        case "hitForward": void app.finder.next(1); break;
        case "hitBack": void app.finder.next(-1); break;
        default:
          // Other keys belong to the timeline, wherever the focus is, unless they have a meaning
          // there.
          if (target.closest("button, a, [role=listbox], [role=tablist], [role=tree], [role=region], ol")
            && /Arrow|Enter|Home|End/.test(e.code)) return;
          if (target.id !== "timeline") timeline.key(e);
          return;
      }
  }
  e.preventDefault();
  app.changed();
}

dark.addEventListener("change", applyTheme);
// Several keys may arrive between two frames: each acts on the result of the previous one.
window.addEventListener("keydown", () => app.flush(), { capture: true });
// The effect of a choice or click is drawn before anything is typed into a field.
window.addEventListener("change", () => app.flush());
window.addEventListener("click", () => app.flush());
window.addEventListener("keydown", command);
applyTheme();
app.start();
