// SPDX-License-Identifier: MIT
// A canvas with its context, and several of them as one picture.
import type { Colours } from "./colours.ts";
import { fitted, SANS, setFont } from "./labels.ts";

export interface Surface {
  readonly canvas: HTMLCanvasElement;
  readonly ctx: CanvasRenderingContext2D;
}

export function surface(label: string): Surface {
  const canvas = document.createElement("canvas");
  canvas.className = label;
  const ctx = canvas.getContext("2d");
  if (!ctx) throw new Error("This browser has no 2D canvas.");
  return { canvas, ctx };
}

/** Save canvases that lie over each other as a PNG file, with the lanes' names at their left. Lengths are CSS pixels. */
export function savePicture(
  title: string, left: number, width: number, names: readonly { name: string; y: number }[],
  layers: readonly { canvas: HTMLCanvasElement; y: number }[], height: number, colours: Colours,
): void {
  const dpr = window.devicePixelRatio || 1;
  const { canvas, ctx } = surface("picture");
  canvas.width = Math.round((left + width) * dpr);
  canvas.height = Math.round(height * dpr);
  ctx.fillStyle = colours.named.ground.css;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  for (const layer of layers) ctx.drawImage(layer.canvas, left * dpr, layer.y * dpr);
  ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
  ctx.textBaseline = "top";
  ctx.fillStyle = colours.named.ink.css;
  setFont(ctx, `600 13px ${SANS}`);
  ctx.fillText(fitted(ctx, title, left - 20), 10, 14);
  for (const { name, y } of names) ctx.fillText(fitted(ctx, name, left - 30), 20, y + 4);
  canvas.toBlob((blob) => {
    if (!blob) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${title}.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
}
