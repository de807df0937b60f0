// SPDX-License-Identifier: MIT
// What the numbers of a lane count: time where the axis shows time, instructions where it shows those. Every table, share,
// width and length asks here, so that what stands beside the lanes is of the kind that their widths are.
import { isSoftware, type Stream } from "../data/model.ts";
import type { Axis } from "../base/scale.ts";

/** Is it time? Software trace has no instructions, and counts time wherever it has any. */
export function countsTime(axis: Axis, stream: Stream | undefined): boolean {
  return stream?.hasTime === true && (axis === "time" || isSoftware(stream.protocol));
}
