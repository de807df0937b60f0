// SPDX-License-Identifier: MIT
// Following the live edge: the right edge of the view is pinned to it, with the zoom as it is or
// with the newest N units in view. The edge comes in jumps; the view glides after it.
import { span, type Extent, type View } from "./scale.ts";

/** Air at the right of the edge, as a share of the span. */
export const AIR = 0.04;
/** The share of the remaining way that a frame goes. */
const GLIDE = 0.18;

/** The next frame's view. `newest`: 0 keeps the zoom. `glide`: else it jumps. */
export function follow(view: View, extent: Extent, newest: number, glide: boolean): View {
  const wide = newest > 0 ? Math.max(8, newest) * (1 + AIR) : span(view);
  const target = extent.last + wide * AIR / (1 + AIR);
  const way = target - view.to;
  const width = span(view) + (wide - span(view)) * (glide ? GLIDE * 1.5 : 1);
  const settled = Math.abs(way) < wide / 4000 && Math.abs(width - wide) < wide / 4000;
  // What is more than a few screens away is not worth watching pass by.
  const jump = !glide || settled || Math.abs(way) > 4 * wide;
  const to = jump ? target : view.to + way * GLIDE;
  const size = jump ? wide : width;
  return { axis: view.axis, from: to - size, to };
}

/**
 * Is the edge more than the view away from what is drawn? Then gliding would show emptiness:
 * the view stays until the tiles of the next one are here, and goes there in one step.
 */
export function hops(view: View, last: number, drawnTo: number): boolean {
  return last - drawnTo > span(view) * 0.9;
}

/** Does the view already show what follow() leads to? */
export function settled(view: View, next: View): boolean {
  return view.from === next.from && view.to === next.to;
}
