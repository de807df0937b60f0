// SPDX-License-Identifier: MIT
// Program images missing from a trace: files named in its setup, with the path they have on the
// traced machine, and executed addresses for which no file is known.
import type { Hit } from "./model.ts";

/** Addresses this close most likely belong to one image. */
const NEAR = 1n << 20n;

/** Addresses executed without an image. */
export interface Missing {
  readonly from: bigint;
  readonly to: bigint; // the last one
  readonly times: number;
  readonly hit: Hit; // the first hit among them
}

/** A mapping of a file. */
export interface Place {
  readonly from: bigint;
  readonly to: bigint; // end address, exclusive
  readonly context: string; // "0x8ca", "" if it is mapped in all contexts
  readonly name: string; // of the context, "" if there is none
}

/** A file that was mapped and is missing. */
export interface MissingFile {
  readonly path: string;
  readonly buildId: string; // "" if not known
  readonly places: readonly Place[];
  readonly more: number; // number of further mappings
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

/** Who mapped a file, as "walk 2250": numbers of Linux processes are decimal. */
export function whoMapped(place: Place, decimal: boolean): string {
  if (place.context === "") return place.name;
  return [place.name || "process", decimal ? Number(place.context) : place.context].join(" ");
}

/**
 * The files that may have been mapped at an address; for a thread's stream ("thread.2250.walk")
 * only those of its process.
 */
export function filesAt(files: readonly MissingFile[], pc: string, stream: string): MissingFile[] {
  const at = address(pc);
  const own = /^thread\.(\d+)\./.exec(stream)?.[1];
  const mapped = (by: (p: Place) => boolean): MissingFile[] =>
    files.filter((f) => f.places.some((p) => p.from <= at && at < p.to && by(p)));
  const mine = own === undefined ? [] : mapped((p) => Number(p.context) === Number(own));
  return mine.length > 0 ? mine : mapped(() => true);
}

/** The same for hits, many of which are at one address: each is looked up once. */
function filesOf(files: readonly MissingFile[]): (hit: Hit) => readonly MissingFile[] {
  const known = new Map<string, readonly MissingFile[]>();
  return ({ pc, stream }) => {
    const key = `${pc} ${stream}`;
    let here = known.get(key);
    if (!here) known.set(key, here = filesAt(files, pc, stream));
    return here;
  };
}

/**
 * Those in which the trace ran first. Files without a build ID, which cannot be uploaded, only if
 * used.
 */
export function byUse(files: readonly MissingFile[], hits: readonly Hit[]): MissingFile[] {
  const used = new Map(files.map((f) => [f, 0]));
  const at = filesOf(files);
  for (const hit of hits) for (const f of at(hit)) used.set(f, used.get(f)! + 1);
  return files.filter((f) => f.buildId !== "" || used.get(f)! > 0).sort((a, b) => used.get(b)! - used.get(a)!);
}

/** Merge neighbouring addresses, except those that a missing file was mapped to. */
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
