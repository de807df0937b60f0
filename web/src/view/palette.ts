// SPDX-License-Identifier: MIT
// Colours of functions. The most frequent ones get the first entries of a fixed palette, whose order
// puts those farthest apart first, also for people who are colour-blind (test/palette.test.ts). Every
// other name has a paler colour, by its hash: the same in every trace and on every visit. There is one
// palette per theme. Every colour has a contrast of at least 3:1 to the theme's background and of
// 4.5:1 to its label.

export type Theme = "light" | "dark";

export interface Colour {
  readonly css: string; // "#rrggbb"
  readonly rgba: number; // 0xAABBGGRR, as in a little-endian Uint32 view of ImageData
  readonly ink: string; // of text on it
}

/** Background of the colours. */
export const GROUND: Record<Theme, string> = { light: "#ffffff", dark: "#101418" };
/** Text on light colours, and on dark ones. */
const INKS = ["#070b10", "#ffffff"] as const;
/** Up to this luminance white has more contrast than black. */
const DARK = 0.186;

/** FNV-1a, 32 bits, over UTF-16 code units. */
export function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  }
  // The low bits of FNV are weak for short, similar names.
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
  return (h ^ (h >>> 13)) >>> 0;
}

function linear(channel: number): number {
  const c = channel / 255;
  return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
}

function gamma(value: number): number {
  const c = Math.min(Math.max(value, 0), 1);
  return Math.round(255 * (c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055));
}

/**
 * Convert OKLCH to a colour; out-of-gamut channels are clipped. Source: Ottosson, "Oklab", 2020.
 */
export function oklch(l: number, chroma: number, hue: number): Colour {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l3 = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m3 = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s3 = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return rgb(
    gamma(4.0767416621 * l3 - 3.3077115913 * m3 + 0.2309699292 * s3),
    gamma(-1.2684380046 * l3 + 2.6097574011 * m3 - 0.3413193965 * s3),
    gamma(-0.0041960863 * l3 - 0.7034186147 * m3 + 1.707614701 * s3),
  );
}

export function rgb(r: number, g: number, b: number): Colour {
  const hex = ((r << 16) | (g << 8) | b).toString(16).padStart(6, "0");
  const rgba = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  return { css: `#${hex}`, rgba, ink: INKS[luminanceOf(rgba) > DARK ? 0 : 1] };
}

/** "#rrggbb" or "#rgb". */
export function parseHex(css: string): Colour {
  let digits = css.trim().replace("#", "");
  if (digits.length === 3) digits = [...digits].map((d) => d + d).join("");
  const n = Number.parseInt(digits, 16);
  return rgb((n >> 16) & 255, (n >> 8) & 255, n & 255);
}

/** WCAG 2 relative luminance. */
export function luminance(css: string): number {
  return luminanceOf(parseHex(css).rgba);
}

function luminanceOf(rgba: number): number {
  return 0.2126 * linear(rgba & 255) + 0.7152 * linear((rgba >> 8) & 255)
    + 0.0722 * linear((rgba >> 16) & 255);
}

export function contrast(a: string, b: string): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

// Entries of one number have the same hue in both themes. Lightness differs as much as hue: it is what
// colour-blind people tell most of them apart by.
const PALETTES: Record<Theme, readonly Colour[]> = {
  light: [
    "#695ec2", "#b0902c", "#803200", "#564467", "#399b9b", "#926530", "#3d3e9c", "#8d6fbe",
    "#4c50b0", "#8a3785", "#8c851a", "#006ea4", "#6c5e15", "#6b2b84", "#1c6e51", "#74364b",
    "#607854", "#6c967c", "#3083a0", "#8d6c89", "#704c35", "#84537f", "#b37d50", "#8f8fb8",
  ].map(parseHex),
  dark: [
    "#9a93fc", "#f6d476", "#aa5830", "#7b688d", "#7edddc", "#c99864", "#5e65c7", "#c9abff",
    "#757ee3", "#bb65b5", "#c8c160", "#469fd8", "#998a47", "#9252ad", "#4f9b7c", "#9c5a6f",
    "#93ac86", "#aad7bb", "#6cbcdb", "#c6a3c2", "#9b745c", "#b682b1", "#f6bd8e", "#d3d3fe",
  ].map(parseHex),
};

export const PALETTE_SIZE = PALETTES.light.length;

export function palette(theme: Theme): readonly Colour[] {
  return PALETTES[theme];
}

/** By name, for what has no rank. */
export function functionColour(name: string, theme: Theme): Colour {
  return PALETTES[theme][hash(name) % PALETTE_SIZE]!;
}

/** Of a function that is not among the most frequent ones: by name, and paler than theirs. */
export function paleColour(name: string, theme: Theme): Colour {
  return PALES[theme][hash(name) % PALE_SIZE]!;
}

const PALE_SIZE = 24;
/** Neighbouring hues differ in lightness, too. */
function pales(lightness: readonly number[]): Colour[] {
  return Array.from({ length: PALE_SIZE }, (_, i) => oklch(lightness[i % lightness.length]!, 0.055, (i * 360) / PALE_SIZE));
}

const PALES: Record<Theme, readonly Colour[]> = { light: pales([0.64, 0.6, 0.53]), dark: pales([0.62, 0.7, 0.79]) };

/** Greys for everything but what is highlighted, so that neighbours can be distinguished. */
export function greyColour(name: string, theme: Theme): Colour {
  return GREYS[theme][hash(name) % GREYS[theme].length]!;
}

const GREYS: Record<Theme, readonly Colour[]> = {
  light: [0.66, 0.64, 0.62].map((l) => oklch(l, 0.012, 250)),
  dark: [0.59, 0.62, 0.65].map((l) => oklch(l, 0.012, 250)),
};

/** Code without a symbol: by page, almost grey, so that the two are not confused. */
export function pageColour(page: number, theme: Theme): Colour {
  const hue = (hash(page.toString(16)) % 12) * 30;
  return theme === "light" ? oklch(0.62, 0.025, hue) : oklch(0.7, 0.025, hue);
}

/** By power, 0..3: from U, EL0 and ring 3 to M, EL3 and ring 0. None is a colour of faults. */
export const PRIVILEGE: Record<Theme, readonly Colour[]> = {
  light: [oklch(0.66, 0.03, 240), oklch(0.58, 0.1, 190), oklch(0.47, 0.17, 262), oklch(0.33, 0.14, 285)],
  dark: [oklch(0.53, 0.03, 240), oklch(0.74, 0.1, 195), oklch(0.63, 0.16, 262), oklch(0.88, 0.08, 290)],
};
