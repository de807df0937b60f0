// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import type { Colours } from "../src/timeline/colours.ts";
import { drawRuns, setFont } from "../src/timeline/labels.ts";
import type { LaneBox } from "../src/timeline/layout.ts";

/** Six pixels a letter, whatever the font. */
function canvas(): { readonly ctx: CanvasRenderingContext2D; readonly told: (readonly [string, number])[]; readonly fonts: string[] } {
  const told: (readonly [string, number])[] = [];
  const fonts: string[] = [];
  const ctx = {
    set font(font: string) { fonts.push(font); },
    measureText: (text: string) => ({ width: 6 * text.length }),
    fillText: (text: string, x: number) => { told.push([text, x]); },
    fillRect: () => {},
  } as unknown as CanvasRenderingContext2D;
  return { ctx, told, fonts };
}

const colours = { code: () => ({ ink: "black" }), named: { ground: { css: "white" } } } as unknown as Colours;
const box = { fn: { y: 0, h: 30 } } as unknown as LaneBox;

test("a run has its name once, also where most of a longer stretch is the same function", () => {
  const names = (own: readonly (readonly [number, number, number])[], most: readonly (readonly [number, number, number])[]): (readonly [string, number])[] => {
    const { ctx, told } = canvas();
    const runs = (all: typeof own): { x0: number; x1: number; fn: number }[] => all.map(([x0, x1, fn]) => ({ x0, x1, fn }));
    drawRuns(ctx, runs(own), 0, box, colours, (id) => ["checksum", "mix"][id]!, 1000, false, [], runs(most));
    return told;
  };
  assert.deepEqual(names([[0, 1000, 1]], [[0, 1000, 1]]), [["checksum", 5]]);
  assert.deepEqual(names([[-500, 1000, 1]], [[-500, 1000, 1]]), [["checksum", 5]]);
  // Behind a strip of another function there is one more.
  assert.deepEqual(names([[0, 400, 1], [400, 420, 2], [420, 500, 1]], [[0, 1000, 1]]), [["checksum", 5], ["checksum", 425], ["checksum", 505]]);
  assert.deepEqual(names([], [[0, 1000, 1]]), [["checksum", 5]]);
});

test("a font is set once for all that is written with it", () => {
  const { ctx, fonts } = canvas();
  const other = canvas();
  for (const [to, font] of [[ctx, "a"], [ctx, "a"], [ctx, "b"], [other.ctx, "b"], [ctx, "b"]] as const) setFont(to, font);
  assert.deepEqual([fonts, other.fonts], [["a", "b", "b"], ["b"]]);
});
