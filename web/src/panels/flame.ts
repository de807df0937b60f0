// SPDX-License-Identifier: MIT
// A call tree as a flame graph, and as an expandable list for people who cannot see the picture or
// use a pointer.
import { html, nothing, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import { layout, type Box, type Profile, type TreeNode } from "../data/calls.ts";
import { timeIsNs } from "../data/model.ts";
import { duration, grouped, percent, short } from "../base/format.ts";

const ROW = 18;
const LEAST = 0.002; // fraction of the width: narrower boxes are not drawn
const LEVELS = 40;
const ROWS = 400;

export class Flame {
  private zoom = -1; // the node that fills the width; -1: all
  private readonly open = new Set<number>();
  private drawn: { profile: Profile; boxes: Box[] } | undefined;

  constructor(private readonly app: App) {}

  /** A number of the profile with its unit. */
  amount(p: Profile, n: number): string {
    if (p.weight === "insns") return `${grouped(n)} ${p.sampled ? "samples" : "instructions"}`;
    return this.app.session && timeIsNs(this.app.session.trace) ? duration(n) : `${grouped(n)} ticks`;
  }

  reset(): void {
    this.zoom = -1;
    this.open.clear();
  }

  /** `here`: the function at the cursor, which is marked. `wide`: the picture is elsewhere. */
  view(profile: Profile, callers: boolean, here: string, wide: boolean): TemplateResult {
    const boxes = this.laid(profile);
    if (profile.nodes.length === 0) return html`<p class="muted hint">There are no instructions in this range.</p>`;
    return html`${wide ? nothing : this.picture(profile, here)}${this.list(profile, boxes, callers)}
      ${profile.truncated ? html`<p class="muted hint">Call paths with ${profile.weight === "time" ? "little time" : "few instructions"} are omitted.</p>` : nothing}`;
  }

  private laid(profile: Profile): readonly Box[] {
    if (this.drawn?.profile !== profile) this.drawn = { profile, boxes: layout(profile.nodes, profile.all) };
    return this.drawn.boxes;
  }

  // ---- the picture -------------------------------------------------------------------------

  picture(p: Profile, here: string): TemplateResult {
    const boxes = this.laid(p);
    const zoom = this.zoom < p.nodes.length ? this.zoom : -1;
    const window = zoom >= 0 ? boxes[zoom]! : { left: 0, width: 1, parent: -1 };
    const above = new Set<number>();
    for (let i = zoom; i >= 0; i = boxes[i]!.parent) above.add(i);
    let deepest = 0;
    const drawn = p.nodes.map((node, i) => {
      const box = boxes[i]!;
      const left = above.has(i) ? 0 : (box.left - window.left) / window.width;
      const width = above.has(i) ? 1 : box.width / window.width;
      if (node.depth >= LEVELS || width < LEAST || left > 1 - LEAST / 2 || left < -LEAST / 2) return nothing;
      deepest = Math.max(deepest, node.depth);
      const marked = node.name !== "" && (node.name === here || node.name === this.app.swatches.highlight);
      return this.node(p, node, i, left, width, `${above.has(i) && i !== zoom ? "faint" : ""} ${marked ? "at" : ""}`);
    });
    return html`<div class="flame" aria-hidden="true" .style=${`height:${(deepest + 1) * ROW}px`}>${drawn}</div>
      ${zoom >= 0 ? this.chosen(p, p.nodes[zoom]!) : nothing}`;
  }

  /** What the function of the chosen node leads to in the lanes. */
  private chosen(p: Profile, node: TreeNode): TemplateResult {
    const { app } = this;
    const on = app.swatches.highlight === node.name;
    return html`<p class="buttons"><b>${node.name || "unnamed code"}</b> <span class="muted">${this.amount(p, node.total)}</span>
      ${node.name === "" ? nothing : html`<button class="action" aria-pressed=${on} title="Only this function has its colour in the lanes"
        @click=${() => app.highlight(on ? "" : node.name)}>Highlight</button>
        <button class="action" @click=${() => app.lookFor(`call:${node.name}`)}>Find its calls</button>`}
      <button class="action" @click=${() => { this.zoom = -1; app.changed(); }}>Show all</button></p>`;
  }

  private node(p: Profile, node: TreeNode, i: number, left: number, width: number, cls: string): TemplateResult {
    const { css, ink } = this.app.swatch(node.name);
    const style = `left:${(100 * left).toFixed(3)}%;width:${(100 * width).toFixed(3)}%;top:${node.depth * ROW}px;`
      + `background:${css};color:${ink}`;
    return html`<div class=${cls} .style=${style} title=${`${node.name || "unnamed code"}
${this.amount(p, node.total)} (${percent(node.total, p.all)}), ${this.amount(p, node.self)} self, ${grouped(node.calls)} calls`}
      @click=${() => { this.zoom = this.zoom === i ? -1 : i; this.app.changed(); }}>${width > 0.06 ? node.name || "–" : ""}</div>`;
  }

  // ---- the list ----------------------------------------------------------------------------

  private list(p: Profile, boxes: readonly Box[], callers: boolean): TemplateResult {
    const shown: number[] = [];
    p.nodes.forEach((_, i) => {
      const { parent } = boxes[i]!;
      if (shown.length < ROWS && (parent < 0 || (this.open.has(parent) && shown.includes(parent)))) shown.push(i);
    });
    const row = (i: number): TemplateResult => {
      const node = p.nodes[i]!;
      const inner = p.nodes[i + 1]?.depth === node.depth + 1;
      const name = node.name || "unnamed code";
      const toggle = (): void => {
        if (!this.open.delete(i)) this.open.add(i);
        this.app.changed();
      };
      return html`<tr><th scope="row" .style=${`padding-left:${14 + 12 * node.depth}px`}>${inner
        ? html`<button class="plain" aria-expanded=${this.open.has(i)} @click=${toggle}><span class="twist" aria-hidden="true">${this.open.has(i) ? "▾" : "▸"}</span>${name}</button>`
        : html`<span class="twist"></span>${name}`}</th>
        <td class="n" title=${this.amount(p, node.total)}>${percent(node.total, p.all)}</td>
        <td class="n" title=${this.amount(p, node.self)}>${percent(node.self, p.all)}</td>
        <td class="n">${node.calls > 0 ? short(node.calls) : "–"}</td></tr>`;
    };
    return html`<table class="figures tree"><caption>${callers ? "Callers" : "Call tree"}</caption>
      <thead><tr><th scope="col">Function</th><th scope="col" class="n">Total</th>
        <th scope="col" class="n">Self</th><th scope="col" class="n">Calls</th></tr></thead>
      <tbody>${shown.map(row)}</tbody></table>
      ${shown.length === ROWS ? html`<p class="muted hint">Only the first ${ROWS} rows are shown: collapse some to see others.</p>` : nothing}`;
  }
}
