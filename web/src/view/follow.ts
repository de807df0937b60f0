// SPDX-License-Identifier: MIT
// Following the live edge: the right edge of the view stays at the live edge, with the current zoom
// or with the newest N units in view. The edge moves in jumps; the view glides after it.
import { span, type Extent, type View } from "../base/scale.ts";

/** Empty space to the right of the edge, as a fraction of the span. */
export const AIR = 0.04;
/** Fraction of the remaining distance per frame. */
const GLIDE = 0.18;

/** The next frame's view. `newest`: 0 keeps the zoom. `glide`: otherwise it jumps. */
export function follow(view: View, extent: Extent, newest: number, glide: boolean): View {
  const wide = newest > 0 ? Math.max(8, newest) * (1 + AIR) : span(view);
  const target = extent.last + wide * AIR / (1 + AIR);
  const way = target - view.to;
  const width = span(view) + (wide - span(view)) * (glide ? GLIDE * 1.5 : 1);
  const settled = Math.abs(way) < wide / 4000 && Math.abs(width - wide) < wide / 4000;
  // Distances of more than a few screens are not animated.
  const jump = !glide || settled || Math.abs(way) > 4 * wide;
  const to = jump ? target : view.to + way * GLIDE;
  const size = jump ? wide : width;
  return { axis: view.axis, from: to - size, to };
}

/**
 * Is the edge more than a view's width beyond what is drawn? Then gliding would show empty space:
 * the view stays until the tiles of the next one are loaded, and moves in one step.
 */
export function hops(view: View, last: number, drawnTo: number): boolean {
  return last - drawnTo > span(view) * 0.9;
}

/** Has the view reached the target of follow()? */
export function settled(view: View, next: View): boolean {
  return view.from === next.from && view.to === next.to;
}
