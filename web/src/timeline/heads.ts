// SPDX-License-Identifier: MIT
// The heads of lanes and groups beside the plot: a tree that can be navigated, folded and arranged
// with keys and the pointer.
import { html, nothing, render, type TemplateResult } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import type { App } from "../view/app.ts";
import { ROOT } from "../view/arrange.ts";
import { short } from "../base/format.ts";
import { unitName } from "../data/model.ts";
import type { Session } from "../view/session.ts";
import { TOLD_DEPTH } from "../data/tile.ts";
import { FEW_ROWS, NO_LANE, STACK_ROW, type Band, type LaneBox } from "./layout.ts";
import { RULER_HEIGHT } from "./ruler.ts";

const DRAG_PX = 5;

/** Parts below a lane that can be removed. */
const PARTS = [["stack", "Call stack"], ["states", "Processes, modes"], ["counters", "Counters"]] as const;
type Part = (typeof PARTS)[number][0];

/** A line of the tree: a node, or a part of a lane as "STREAM/PART". */
interface Item {
  readonly id: string;
  readonly box: LaneBox;
  readonly part: Part | undefined;
}

/** Height of a lane's name and counts, and of the name of a band. */
const OWN_LINES = 44;
const BAND_NAME = 13;

/** "3 gaps"; "": none. */
function gapText(n: number): string {
  return n === 0 ? "" : `${short(n)} ${n === 1 ? "gap" : "gaps"}`;
}

export class Heads {
  readonly element = document.createElement("div");
  private shown: readonly unknown[] = [];
  private items: readonly Item[] = [];
  private at = ""; // the item that has the focus, or would get it
  private focused = false; // its element should have the focus
  private drag: { readonly id: string; readonly y: number; moved: boolean; steady: boolean } | undefined;

  constructor(private readonly app: App, private readonly reach: (box: LaneBox) => void) {
    const { element } = this;
    element.className = "heads";
    element.setAttribute("role", "tree");
    element.setAttribute("aria-label", "Lanes");
    element.addEventListener("keydown", (e) => this.key(e));
    element.addEventListener("focusin", (e) => {
      const id = (e.target as HTMLElement).dataset.id;
      if (id !== undefined && id !== this.at) {
        this.at = id;
        app.changed();
      }
    });
    element.addEventListener("pointerdown", (e) => this.down(e));
    element.addEventListener("pointermove", (e) => this.move(e));
    for (const end of ["pointerup", "pointercancel"]) element.addEventListener(end, () => this.end());
    element.addEventListener("click", (e) => this.click(e));
  }

  /** The node that keys act on: its own with the focus in the tree, otherwise the selected
   * lane's. */
  get node(): string | undefined {
    const s = this.app.session;
    return this.element.contains(document.activeElement) ? this.at.replace(/(?<=[^/])\/(stack|states|counters)$/, "") : s?.stream?.name;
  }

  draw(s: Session, boxes: readonly LaneBox[], depths: readonly number[]): void {
    if (this.shown[0] !== s) this.at = ""; // another trace: that of its selected lane
    // Nothing in it changes while the view moves.
    const now: unknown[] = [s, s.trace, s.lane, s.arrangement, ...s.overview.astray.values(), this.at, this.focused, ...[...s.open].sort(), "|", ...[...s.full].sort()];
    for (const box of boxes) now.push(box.node, box.y, box.h, box.stack.y, box.stack.h, box.states.h, box.counters.h, depths[box.lane]);
    if (this.drag) this.drag.steady = true;
    if (now.length === this.shown.length && now.every((x, i) => x === this.shown[i])) return;
    this.shown = now;
    this.items = boxes.flatMap((box) => [{ id: box.node!.id, box, part: undefined }, ...PARTS.flatMap(([part]) => (
      this.band(box, part).h > 0 ? [{ id: `${box.node!.id}/${part}`, box, part }] : []))]);
    if (!this.items.some((item) => item.id === this.at)) this.at = s.stream?.name ?? "";
    if (!this.items.some((item) => item.id === this.at)) this.at = this.items[0]?.id ?? "";
    render(repeat(this.items, (item) => item.id, (item) => (item.part ? this.part(s, item, item.part)
      : item.box.lane === NO_LANE ? this.group(s, item) : this.lane(s, item, depths[item.box.lane] ?? 0))), this.element);
    if (!this.focused) return;
    this.focused = false;
    this.element.querySelector<HTMLElement>(`[data-id="${CSS.escape(this.at)}"]`)?.focus({ preventScroll: true });
  }

  private band(box: LaneBox, part: Part): Band {
    return box[part];
  }

  // ---- lines -------------------------------------------------------------------------------

  private group(s: Session, { id, box }: Item): TemplateResult {
    const node = box.node!;
    const lost = node.lanes.reduce((n, lane) => n + s.trace.streams[lane]!.gaps, 0);
    const lanes = `${node.lanes.length} ${node.lanes.length === 1 ? "lane" : "lanes"}`;
    const gaps = node.folded ? gapText(lost) : "";
    return html`<div role="treeitem" class="group ${box.pinned ? "pinned" : ""}" data-id=${id} tabindex=${this.at === id ? 0 : -1} aria-level=${node.level}
        aria-expanded=${!node.folded} aria-selected="false" .style=${this.place(box.y, box.h, node.level)}>
      <button class="unfold" tabindex="-1" aria-hidden="true" aria-label=${`${node.folded ? "Show" : "Fold"} the lanes of ${node.name}`} @click=${() => this.app.tree.fold(id)}>${node.folded ? "▸" : "▾"}</button>
      <b>${node.name}</b> <span class="what">${lanes}</span>
      ${gaps ? html`<span class="gaps">${gaps}</span>` : nothing}${id === ROOT ? nothing : this.tools(s, id, node.name)}</div>`;
  }

  private lane(s: Session, { id, box }: Item, depth: number): TemplateResult {
    const stream = s.trace.streams[box.lane]!;
    const node = box.node!;
    const open = s.open.has(box.lane);
    const full = s.full.has(box.lane);
    const rows = Math.floor(box.stack.h / STACK_ROW);
    const parts = depth > 0 || box.states.h > 0 || box.counters.h > 0;
    const what = node.name === stream.name ? stream.device || stream.protocol : stream.name;
    const lacks = stream.insns === 0 && s.overview.astray.has(stream.name);
    const count = lacks ? "Add image" : `${short(stream.insns)} ${unitName(stream.protocol, stream.insns)}`;
    const gaps = gapText(stream.gaps);
    const levels = !open || depth <= FEW_ROWS || (!full && rows >= depth) ? ""
      : full ? "Fewer levels" : `${rows} of ${depth}${depth < TOLD_DEPTH ? "" : "+"} levels`;
    // The titles of its parts are written below its own lines.
    const room = Math.min(box.h, ...[box.stack, box.states, box.counters].map((b) => (b.h > 0 ? b.y : box.h)));
    return html`<div role="treeitem" class="head ${box.lane === s.lane ? "selected" : ""} ${box.pinned ? "pinned" : ""} ${room < 40 ? "small" : ""}"
        data-id=${id} data-states=${RULER_HEIGHT + box.y + box.states.y} data-curves=${box.counters.h} tabindex=${this.at === id ? 0 : -1} aria-level=${node.level}
        aria-expanded=${parts ? open : nothing} aria-selected=${box.lane === s.lane} .style=${this.place(box.y, box.h, node.level)}>
      <button class="fold" ?hidden=${!parts} aria-expanded=${open} tabindex="-1" aria-hidden="true"
        aria-label=${`Call stack of ${stream.name}`} @click=${() => this.app.tree.toggleLane(box.lane)}>${open ? "▾" : "▸"}</button>
      <div class="called"><div class="name">${node.name}</div>
      <div class="what">${what}</div></div>
      <div class="counts">${lacks ? html`<button class="deeper" @click=${() => this.addImage()}>${count}</button>` : html`<div class="count">${count}</div>`}
      ${gaps ? html`<div class="gaps">${gaps}</div>` : ""}</div>
      ${this.bands(box)}
      ${levels ? html`<button class="deeper levels" .style=${`top:${box.stack.y + 15}px`} aria-expanded=${full} tabindex="-1"
        title=${`Call stack of ${stream.name}: show ${full ? "fewer" : "all"} levels`} @click=${() => this.app.tree.toggleLane(box.lane, true)}
        >${levels}</button>` : ""}${s.trace.streams.length > 1 ? this.tools(s, id, node.name) : nothing}
    </div>`;
  }

  /** Names of the bands that lie below the lane's own lines, beside them. */
  private bands(box: LaneBox): TemplateResult {
    const name = (text: string, y: number, what: string): TemplateResult | typeof nothing => (y < OWN_LINES ? nothing
      : html`<span class="band" aria-hidden="true" title=${what} .style=${`top:${y}px`}>${text}</span>`);
    return html`${box.fn.h < BAND_NAME ? nothing : name("Functions", box.fn.y + box.fn.h - BAND_NAME, "What ran, stacked by share; above it exceptions, events and gaps")}
      ${box.density.h < BAND_NAME ? nothing : name("Modes, branches", box.privilege.y, "The line shows the privilege, the area below it branches per instruction")}`;
  }

  private part(s: Session, { id, box }: Item, part: Part): TemplateResult {
    const node = box.node!;
    const text = PARTS.find(([p]) => p === part)![1];
    // Below the lane's own head there is space for a word.
    const y = box.y + this.band(box, part).y;
    return html`<div role="treeitem" class="part ${box.pinned ? "pinned" : ""} ${box.lane === s.lane ? "selected" : ""}" data-id=${id} tabindex=${this.at === id ? 0 : -1}
        aria-level=${node.level + 1} aria-label=${`${text} of ${node.name}`} aria-selected="false" .style=${this.place(y, 13, node.level)} title=${`${text}; Del or ← removes it`}>
      <span>${text}</span><button tabindex="-1" aria-label=${`Remove ${text.toLowerCase()} from ${node.name}`} @click=${() => this.take(id)}>×</button></div>`;
  }

  private place(y: number, h: number, level: number): string {
    return `top:${RULER_HEIGHT + y}px;height:${h}px;--level:${Math.min(6, level - 1)}`;
  }

  /** For the pointer; there are keys for the same commands. Hidden from screen readers, as the signs that
   * fold are: their names would become parts of the line's name. */
  private tools(s: Session, id: string, name: string): TemplateResult {
    const node = s.node(id);
    const pinned = s.arrangement.pinned.includes(id);
    const alone = node !== undefined && s.arrangement.hidden.length > 0 && s.trace.streams.every((x, i) => node.lanes.includes(i) !== s.arrangement.hidden.includes(x.name));
    const tool = (key: string, label: string, on: boolean | undefined, path: string, act: () => void): TemplateResult => html`<button tabindex="-1"
      aria-label=${label} title=${`${label} (${key})`} aria-pressed=${on ?? nothing} @click=${act}><svg viewBox="0 0 12 12" aria-hidden="true"><path d=${path}></path></svg></button>`;
    return html`<span class="tools" aria-hidden="true">${tool("O", `Keep on top: ${name}`, pinned, "M4 1h4l-.6 4L9 7H3l1.6-2zM6 7v4", () => this.app.tree.pin(id))}
      ${tool("E", `Show only: ${name}`, alone, "M1 4V1h3M8 1h3v3M11 8v3H8M4 11H1V8", () => this.app.tree.alone(id))}
      ${tool("H", `Hide: ${name}`, undefined, "M2 2l8 8M10 2l-8 8", () => this.app.tree.hide(id))}</span>`;
  }

  private addImage(): void {
    this.app.setPanel("overview");
    requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById("image-file")?.focus()));
  }

  private take(id: string): void {
    const { box, part } = this.items.find((item) => item.id === id)!;
    this.go(box.node!.id);
    if (part === "stack") this.app.tree.toggleLane(box.lane);
    else this.app.tree.fold(id);
  }

  // ---- keys --------------------------------------------------------------------------------

  private go(id: string): void {
    const item = this.items.find((one) => one.id === id);
    if (!item) return;
    this.at = id;
    this.focused = this.element.contains(document.activeElement);
    if (item.part === undefined && item.box.lane !== NO_LANE) this.app.selectLane(item.box.lane);
    else this.reach(item.box);
    this.app.changed();
  }

  private key(e: KeyboardEvent): void {
    const s = this.app.session;
    const i = this.items.findIndex((item) => item.id === this.at);
    const item = this.items[i];
    if (!s || !item || e.altKey || e.ctrlKey || e.metaKey || e.shiftKey) return;
    if ((e.target as HTMLElement).closest("button") && (e.key === "Enter" || e.key === " ")) return;
    const node = item.box.node!;
    const open = item.box.lane === NO_LANE ? !node.folded : s.open.has(item.box.lane);
    const toggle = (): void => {
      if (item.part) this.take(item.id);
      else if (item.box.lane === NO_LANE) this.app.tree.fold(node.id);
      else this.app.tree.toggleLane(item.box.lane);
      this.focused = true;
    };
    switch (e.key) {
      case "ArrowDown": this.go(this.items[i + 1]?.id ?? ""); break;
      case "ArrowUp": this.go(this.items[i - 1]?.id ?? ""); break;
      case "Home": this.go(this.items[0]!.id); break;
      case "End": this.go(this.items.at(-1)!.id); break;
      case "ArrowRight":
        if (!open && !item.part) toggle();
        else if (this.below(item, this.items[i + 1])) this.go(this.items[i + 1]!.id);
        break;
      case "ArrowLeft":
        if (item.part) this.go(node.id);
        else if (open && this.below(item, this.items[i + 1])) toggle();
        else this.go(this.above(i));
        break;
      case "Delete": if (item.part) toggle(); break;
      case "Enter":
      case " ": toggle(); break;
      default: return;
    }
    e.preventDefault();
    e.stopPropagation();
  }

  private level(item: Item): number {
    return item.box.node!.level + (item.part ? 1 : 0);
  }

  private below(item: Item, next: Item | undefined): boolean {
    return next !== undefined && this.level(next) > this.level(item);
  }

  private above(i: number): string {
    const level = this.level(this.items[i]!);
    return this.items.slice(0, i).reverse().find((item) => this.level(item) < level)?.id ?? "";
  }

  // ---- pointer -----------------------------------------------------------------------------

  private idOf(e: Event): string | undefined {
    return (e.target as HTMLElement).closest<HTMLElement>("[data-id]")?.dataset.id;
  }

  private click(e: Event): void {
    const item = this.items.find((one) => one.id === this.idOf(e));
    if (!item || (e.target as HTMLElement).closest("button")) return;
    this.at = item.id;
    if (item.box.lane === NO_LANE) this.app.changed();
    else this.app.selectLane(item.box.lane);
  }

  private down(e: PointerEvent): void {
    const id = this.idOf(e);
    if (e.button !== 0 || id === undefined || (e.target as HTMLElement).closest("button") || this.items.find((item) => item.id === id)?.part) return;
    this.drag = { id, y: e.clientY, moved: false, steady: true };
  }

  /** A node moves immediately when it is dragged among its siblings. */
  private move(e: PointerEvent): void {
    const { drag } = this;
    const s = this.app.session;
    if (!drag || !s) return;
    if (!drag.moved) {
      if (Math.abs(e.clientY - drag.y) < DRAG_PX) return;
      drag.moved = true;
      this.element.setPointerCapture(e.pointerId);
      this.element.classList.add("dragging");
    }
    const node = s.node(drag.id);
    if (!node || !drag.steady) return;
    const y = e.clientY - this.element.getBoundingClientRect().top - RULER_HEIGHT;
    const at = node.siblings.indexOf(drag.id);
    const [before, after] = [this.span(s, node.siblings[at - 1]), this.span(s, node.siblings[at + 1])];
    const own = this.span(s, drag.id);
    // Beyond the far edge of its new place, so that it does not move back.
    const by = before && own && y < before[0] + Math.min(before[1] - before[0], own[1] - own[0]) ? -1
      : after && own && y > after[1] - Math.min(after[1] - after[0], own[1] - own[0]) ? 1 : 0;
    if (by === 0) return;
    drag.steady = false;
    this.app.tree.move(drag.id, by);
  }

  /** Extent of a node with everything in it. */
  private span(s: Session, id: string | undefined): [number, number] | undefined {
    const node = id === undefined ? undefined : s.node(id);
    if (!node) return undefined;
    const boxes = this.items.filter((item) => !item.part && (item.id === id || node.lanes.includes(item.box.lane))).map((item) => item.box);
    return boxes.length === 0 ? undefined : [Math.min(...boxes.map((b) => b.y)), Math.max(...boxes.map((b) => b.y + b.h))];
  }

  private end(): void {
    this.drag = undefined;
    this.element.classList.remove("dragging");
  }
}
