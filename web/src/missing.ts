// SPDX-License-Identifier: MIT
// Program images that a trace lacks: files that its setup names, as the traced machine called them, and
// addresses that were run where no file is known to have been.
import type { Hit } from "./model.ts";

/** Addresses this close belong to one image, most likely. */
const NEAR = 1n << 20n;

/** Addresses that were run without an image. */
export interface Missing {
  readonly from: bigint;
  readonly to: bigint; // the last one
  readonly times: number;
  readonly hit: Hit; // the first of them
}

/** Where a file was mapped. */
export interface Place {
  readonly from: bigint;
  readonly to: bigint; // behind the last address
  readonly context: string; // "0x8ca", "" if it is there whoever runs
  readonly name: string; // of the context, "" if nobody says
}

/** A file that was mapped and is not there. */
export interface MissingFile {
  readonly path: string;
  readonly buildId: string; // "" if not known
  readonly places: readonly Place[];
  readonly more: number; // places that are not told
}

type Json = Record<string, unknown>;
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const address = (value: unknown): bigint => (/^0x[0-9a-f]{1,16}$/i.test(text(value)) ? BigInt(text(value)) : 0n);

export function readMissing(told: unknown): MissingFile[] {
  return (Array.isArray(told) ? told as Json[] : []).filter((f) => f.there === false).map((f) => ({
    path: text(f.path) || text(f.file), buildId: text(f.build_id), more: Number(f.more ?? 0),
    places: (Array.isArray(f.places) ? f.places as Json[] : []).map((p) => ({
      from: address(p.address), to: p.length === undefined ? 1n << 64n : address(p.address) + address(p.length),
      context: text(p.context) || text(p.vmid), name: text(p.name),
    })),
  }));
}

/** Who mapped a file, as "walk 2250": numbers of Linux' processes are decimal. */
export function whoMapped(place: Place, decimal: boolean): string {
  if (place.context === "") return place.name;
  return [place.name || "process", decimal ? Number(place.context) : place.context].join(" ");
}

/** The files that may have been at an address; of a thread's stream ("thread.2250.walk") those of its process alone. */
export function filesAt(files: readonly MissingFile[], pc: string, stream: string): MissingFile[] {
  const at = address(pc);
  const own = /^thread\.(\d+)\./.exec(stream)?.[1];
  const mapped = (by: (p: Place) => boolean): MissingFile[] =>
    files.filter((f) => f.places.some((p) => p.from <= at && at < p.to && by(p)));
  const mine = own === undefined ? [] : mapped((p) => Number(p.context) === Number(own));
  return mine.length > 0 ? mine : mapped(() => true);
}

/** The same of hits, of which many are at one place: each is looked up once. */
function filesOf(files: readonly MissingFile[]): (hit: Hit) => readonly MissingFile[] {
  const known = new Map<string, readonly MissingFile[]>();
  return ({ pc, stream }) => {
    const key = `${pc} ${stream}`;
    let here = known.get(key);
    if (!here) known.set(key, here = filesAt(files, pc, stream));
    return here;
  };
}

/** Those that the trace ran in first. Of those without a build ID, which nobody can send, no others. */
export function byUse(files: readonly MissingFile[], hits: readonly Hit[]): MissingFile[] {
  const used = new Map(files.map((f) => [f, 0]));
  const at = filesOf(files);
  for (const hit of hits) for (const f of at(hit)) used.set(f, used.get(f)! + 1);
  return files.filter((f) => f.buildId !== "" || used.get(f)! > 0).sort((a, b) => used.get(b)! - used.get(a)!);
}

/** Neighbouring addresses together, but those that a missing file was mapped to. */
export function missingFrom(hits: readonly Hit[], files: readonly MissingFile[] = []): Missing[] {
  const known = filesOf(files);
  const sorted = hits.filter((h) => /^0x[0-9a-f]*[1-9a-f]/.test(h.pc) && known(h).length === 0)
    .map((hit) => ({ at: BigInt(hit.pc), hit })).sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  const out: { from: bigint; to: bigint; times: number; hit: Hit }[] = [];
  for (const { at, hit } of sorted) {
    const last = out[out.length - 1];
    if (last && at - last.to < NEAR) {
      last.to = at;
      last.times++;
    } else {
      out.push({ from: at, to: at, times: 1, hit });
    }
  }
  return out.sort((a, b) => b.times - a.times);
}
