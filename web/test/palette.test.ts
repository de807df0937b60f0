// SPDX-License-Identifier: MIT
// Colours of functions: contrast, and how far apart they are, also for people who are colour-blind.
import assert from "node:assert/strict";
import test from "node:test";
import {
  contrast, functionColour, greyColour, GROUND, hash, pageColour, paleColour, palette, PALETTE_SIZE, parseHex, PRIVILEGE, type Colour, type Theme,
} from "../src/view/palette.ts";
import { RANKS, Swatches } from "../src/view/swatches.ts";

const THEMES: readonly Theme[] = ["light", "dark"];

/** Full severity, for linear RGB. Source: Machado, Oliveira, Fernandes, "A physiologically-based model for simulation of
 * color vision deficiency", 2009. */
const VISIONS: Readonly<Record<string, readonly (readonly number[])[]>> = {
  usual: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

/** Minimum distances in OKLab of the first so many functions, by rank, under each vision and in each theme. 0.02 is what
 * can just be told apart side by side. */
const LEAST: readonly (readonly [number, number])[] = [[4, 0.13], [6, 0.115], [8, 0.06], [RANKS, 0.042], [PALETTE_SIZE, 0.04]];

const dot = (row: readonly number[], v: readonly number[]): number => row.reduce((sum, x, i) => sum + x * v[i]!, 0);

function seen({ rgba }: Colour, vision: readonly (readonly number[])[]): number[] {
  const linear = [0, 8, 16].map((shift) => {
    const c = ((rgba >> shift) & 255) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  const rgb = vision.map((row) => Math.min(1, Math.max(0, dot(row, linear))));
  const lms = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]]
    .map((row) => Math.cbrt(dot(row, rgb)));
  return [[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]]
    .map((row) => dot(row, lms));
}

/** Distance of the two that are nearest, under the vision for which that is least. */
function nearest(colours: readonly Colour[]): number {
  return Math.min(...Object.values(VISIONS).map((vision) => {
    const all = colours.map((c) => seen(c, vision));
    return Math.min(...all.flatMap((a, i) => all.slice(0, i).map((b) => Math.hypot(...a.map((x, k) => x - b[k]!)))));
  }));
}

test("frequent functions are told apart, also by people who are colour-blind", () => {
  for (const theme of THEMES) {
    for (const [n, least] of LEAST) {
      const got = nearest(palette(theme).slice(0, n));
      assert.ok(got >= least, `${theme}, the first ${n}: ${got.toFixed(4)} instead of ${least}`);
    }
    // Powers are, too, and nothing of a program looks like a fault.
    assert.ok(nearest(PRIVILEGE[theme]) >= 0.04, `${theme}: ${nearest(PRIVILEGE[theme])}`);
    const faults = { light: ["#c6283a", "#a15c00"], dark: ["#ff6b74", "#f0b455"] }[theme].map(parseHex);
    for (const power of PRIVILEGE[theme]) for (const fault of faults) assert.ok(nearest([power, fault]) >= 0.06, `${theme}: ${power.css} and ${fault.css}`);
  }
});

test("colours keep 3:1 to the ground and carry text at 4.5:1", () => {
  const names = Array.from({ length: 400 }, (_, i) => `f${i}`);
  for (const theme of THEMES) {
    const all = [...palette(theme), ...names.flatMap((n) => [paleColour(n, theme), greyColour(n, theme)]), ...[1, 2, 3, 99].map((p) => pageColour(p, theme)), ...PRIVILEGE[theme]];
    for (const { css, ink } of all) {
      assert.ok(contrast(css, GROUND[theme]) >= 3, `${theme} ${css} on the ground: ${contrast(css, GROUND[theme])}`);
      assert.ok(contrast(css, ink) >= 4.5, `${theme} text on ${css}: ${contrast(css, ink)}`);
    }
  }
});

test("a name has one colour, and similar names spread over the palette", () => {
  assert.equal(functionColour("memcpy", "dark"), functionColour("memcpy", "dark"));
  const used = new Set(Array.from({ length: 200 }, (_, i) => hash(`func_${i}`) % PALETTE_SIZE));
  assert.equal(used.size, PALETTE_SIZE);
});

test("every function has a colour: the most frequent ones the strongest, the same in all views", () => {
  const swatches = new Swatches();
  const names = Array.from({ length: 100 }, (_, i) => `f${i}`);
  swatches.rank(names);
  const strong = new Set(palette("light"));
  names.forEach((name, i) => assert.equal(strong.has(swatches.of(name, "light")), i < RANKS, name));
  assert.equal(new Set(names.slice(0, RANKS).map((n) => swatches.of(n, "light"))).size, RANKS);
  assert.ok(new Set(names.slice(RANKS).map((n) => swatches.of(n, "light"))).size > 12, "the others differ, too");
  const before = names.map((n) => swatches.of(n, "light"));
  swatches.rank([...names].reverse().slice(70).reverse()); // it grew, and nothing changed places
  assert.deepEqual(names.map((n) => swatches.of(n, "light")), before);
  swatches.setHighlight("f3");
  assert.equal(swatches.of("f3", "light"), before[3]);
  assert.equal(swatches.of("f90", "light"), greyColour("f90", "light"));
});
