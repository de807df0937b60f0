// SPDX-License-Identifier: MIT
// Notes on their lanes: a flag at the position, on a pole if there is room, a bracket over a range,
// the first words if there is room.
import { noteSpan } from "../data/notes.ts";
import { toPixel } from "../base/scale.ts";
import type { Session } from "../view/session.ts";
import type { Colours } from "./colours.ts";
import { fitted, SANS, setFont } from "./labels.ts";
import type { LaneBox } from "./layout.ts";

const FLAG = 9;

/** Which flags, from left to right, have a pole over the lane: where they crowd, poles would hide it. */
export function poles(at: readonly number[]): boolean[] {
  return at.map((x, i) => x - (at[i - 1] ?? -Infinity) >= FLAG && (at[i + 1] ?? Infinity) - x >= FLAG);
}

export function drawFlags(
  ctx: CanvasRenderingContext2D, s: Session, boxes: readonly LaneBox[], scroll: number, ruler: number, width: number, colours: Colours,
): void {
  const { hit, ground, ink } = colours.named;
  setFont(ctx, `500 10.5px ${SANS}`);
  ctx.textBaseline = "middle";
  for (const box of boxes) {
    const { name } = s.trace.streams[box.lane]!;
    const notes = s.notes.list.filter((n) => n.stream === name)
      .map((note) => ({ note, span: noteSpan(note, s.view.axis) }))
      .filter((n) => n.span !== undefined).map(({ note, span }) => ({
        note, x0: toPixel(s.view, width, span![0]), x1: toPixel(s.view, width, span![1] + (s.view.axis === "insn" ? 1 : 0)),
      })).sort((a, b) => a.x0 - b.x0);
    const y = ruler + box.y - scroll;
    if (y + box.h < ruler) continue;
    const tall = poles(notes.map((n) => n.x0));
    notes.forEach(({ note, x0, x1 }, i) => {
      if (x1 < 0 || x0 > width) return;
      const x = Math.round(x0);
      ctx.fillStyle = hit.css;
      if (note.to > note.at && x1 - x0 > 3) ctx.fillRect(Math.max(0, x0), y + 1, Math.min(width, x1) - Math.max(0, x0), 2);
      if (tall[i]) ctx.fillRect(x, y + 1, 1, box.marks.h + box.fn.y - box.marks.y + box.fn.h);
      ctx.beginPath();
      ctx.moveTo(x, y + 1);
      ctx.lineTo(x + FLAG, y + 1 + FLAG / 2);
      ctx.lineTo(x, y + 1 + FLAG);
      ctx.fill();
      if (note.text === "") return;
      const room = Math.min(width, notes[i + 1]?.x0 ?? width) - x - FLAG - 10;
      const text = room > 24 ? fitted(ctx, note.text.split("\n")[0]!, Math.min(220, room)) : "";
      if (text === "") return;
      const wide = ctx.measureText(text).width;
      ctx.fillStyle = ground.css;
      ctx.globalAlpha = 0.85;
      ctx.fillRect(x + FLAG + 1, y, wide + 6, 12);
      ctx.globalAlpha = 1;
      ctx.fillStyle = ink.css;
      ctx.fillText(text, x + FLAG + 4, y + 6.5);
    });
  }
}
