// SPDX-License-Identifier: MIT
// The colours used on the canvases: those from the style sheet and those of functions.
import {
  pageColour, parseHex, PRIVILEGE, rgb, type Colour, type Theme,
} from "../view/palette.ts";

const NAMES = [
  "ground", "stripe", "ink", "muted", "line", "accent", "lost", "warn", "exception", "event", "software",
  "mixed", "density", "depth", "depth2", "hit",
] as const;

export type Named = Record<(typeof NAMES)[number], Colour>;

export class Colours {
  readonly theme: Theme;
  readonly named: Named;
  private readonly functions: Colour[] = [];
  private readonly byName = new Map<string, Colour>();
  private readonly faints = new Map<number, Colour>();
  private readonly pages = new Map<number, Colour>();

  constructor(
    theme: Theme, private readonly nameOf: (id: number) => string, private readonly swatch: (name: string) => Colour,
  ) {
    this.theme = theme;
    const style = getComputedStyle(document.documentElement);
    this.named = Object.fromEntries(
      NAMES.map((n) => [n, parseHex(style.getPropertyValue(`--${n}`))])) as Named;
  }

  get privilege(): readonly Colour[] {
    return PRIVILEGE[this.theme];
  }

  /** `fn` as in a tile: id + 1, 0 for none, then by page. */
  code(fn: number, page: number): Colour {
    if (fn > 0) {
      return (this.functions[fn] ??= this.swatch(this.nameOf(fn - 1)));
    }
    if (page === 0) return this.named.mixed;
    let colour = this.pages.get(page);
    if (!colour) {
      colour = pageColour(page, this.theme);
      this.pages.set(page, colour);
    }
    return colour;
  }

  named_(name: string): Colour {
    let colour = this.byName.get(name);
    if (!colour) this.byName.set(name, colour = this.swatch(name));
    return colour;
  }

  /** A colour blended with the background by half: for what is everywhere. */
  faint(colour: Colour): Colour {
    let faint = this.faints.get(colour.rgba);
    if (!faint) {
      const g = this.named.ground.rgba;
      const half = (shift: number): number =>
        Math.round((((colour.rgba >> shift) & 255) + ((g >> shift) & 255)) / 2);
      faint = rgb(half(0), half(8), half(16));
      this.faints.set(colour.rgba, faint);
    }
    return faint;
  }
}
