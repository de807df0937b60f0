// SPDX-License-Identifier: MIT
// Colours of functions. A name has the same colour in every trace and on every visit: its hash
// selects an entry of a fixed palette. There is one palette per theme. Every colour has a contrast
// of at least 3:1 to the theme's background and of 4.5:1 to its label.

export type Theme = "light" | "dark";

export interface Colour {
  readonly css: string; // "#rrggbb"
  readonly rgba: number; // 0xAABBGGRR, as in a little-endian Uint32 view of ImageData
}

export const PALETTE_SIZE = 24;

/** Background of the colours. */
export const GROUND: Record<Theme, string> = { light: "#ffffff", dark: "#101418" };
/** Text colour on the palette's colours. */
export const INK: Record<Theme, string> = { light: "#070b10", dark: "#0b0e11" };

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
  return { css: `#${hex}`, rgba: ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0 };
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
  const { rgba } = parseHex(css);
  return 0.2126 * linear(rgba & 255) + 0.7152 * linear((rgba >> 8) & 255)
    + 0.0722 * linear((rgba >> 16) & 255);
}

export function contrast(a: string, b: string): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

// Neighbouring hues differ in lightness, so that they can be distinguished by colour-blind users.
function make(theme: Theme): Colour[] {
  const out: Colour[] = [];
  for (let i = 0; i < PALETTE_SIZE; i++) {
    const hue = (i * 360) / PALETTE_SIZE + 10;
    const step = i % 3;
    out.push(theme === "light" ? oklch([0.65, 0.595, 0.62][step]!, [0.105, 0.1, 0.115][step]!, hue)
      : oklch([0.76, 0.66, 0.84][step]!, [0.095, 0.105, 0.075][step]!, hue));
  }
  return out;
}

const PALETTES: Record<Theme, Colour[]> = { light: make("light"), dark: make("dark") };

export function palette(theme: Theme): readonly Colour[] {
  return PALETTES[theme];
}

export function functionColour(name: string, theme: Theme): Colour {
  return PALETTES[theme][hash(name) % PALETTE_SIZE]!;
}

/** Greys for functions that share a colour, so that neighbours can be distinguished. */
export function greyColour(name: string, theme: Theme): Colour {
  return GREYS[theme][hash(name) % GREYS[theme].length]!;
}

const GREYS: Record<Theme, readonly Colour[]> = {
  light: [0.66, 0.64, 0.62].map((l) => oklch(l, 0.012, 250)),
  dark: [0.59, 0.62, 0.65].map((l) => oklch(l, 0.012, 250)),
};

/** Code without a symbol: by page, less saturated, so that the two are not confused. */
export function pageColour(page: number, theme: Theme): Colour {
  const hue = (hash(page.toString(16)) % 12) * 30;
  return theme === "light" ? oklch(0.62, 0.035, hue) : oklch(0.7, 0.035, hue);
}

/** Privilege 0..3: EL0..3, U S H M, ring 0..3. None of them is the red used for lost trace. */
export const PRIVILEGE: Record<Theme, readonly Colour[]> = {
  light: [oklch(0.62, 0.04, 240), oklch(0.64, 0.14, 60), oklch(0.56, 0.11, 175), oklch(0.52, 0.18, 340)],
  dark: [oklch(0.62, 0.05, 240), oklch(0.78, 0.13, 70), oklch(0.76, 0.12, 175), oklch(0.7, 0.17, 340)],
};
