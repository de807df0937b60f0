// SPDX-License-Identifier: MIT
// Details of calls and call trees of ranges, as the server reports them.
import type { CallReply, Keys, ProfileReply, Whole } from "../../gen/answers.ts";
import { json, streamPath, tracePath } from "./api.ts";
import { absolute, epochOn, since, type Ref } from "../base/epoch.ts";
import type { Axis } from "../base/scale.ts";

export interface CallInfo {
  readonly name: string;
  readonly kind: string; // root, call, tail or exception
  readonly exception: number | undefined; // undefined: its number is unknown
  readonly interrupt: boolean;
  readonly depth: number;
  readonly deepest: number;
  readonly pc: string;
  readonly caller: string;
  readonly callerFrom: number | undefined;
  readonly from: number; // instructions
  readonly to: number;
  readonly self: number;
  readonly ended: boolean;
  readonly timeFrom: number | undefined;
  readonly timeTo: number | undefined;
  readonly timeLeast: number; // bounds of its duration
  readonly timeMost: number; // Infinity: not known
  readonly number: number | undefined;
  readonly all: {
    readonly calls: number; readonly finished: number; readonly total: number; readonly min: number;
    readonly max: number; readonly longest: number | undefined; readonly previous: number | undefined;
    readonly next: number | undefined;
  } | undefined;
}

const count = <T>(o: T, key: Keys<T, Whole>): number => Number(o[key] ?? 0);
const text = <T>(o: T, key: Keys<T, string>): string => (typeof o[key] === "string" ? o[key] as string : "");
const maybe = <T>(o: T, key: Keys<T, Whole>): number | undefined => (o[key] === undefined ? undefined : Number(o[key]));

/** The call at `depth` (undefined: the innermost) that is active at an instruction. */
export async function call(
  trace: Ref, stream: string, at: number, depth: number | undefined, signal: AbortSignal,
): Promise<CallInfo> {
  const where = `at=${at}${depth === undefined ? "" : `&depth=${depth}`}`;
  const o = await json(`${streamPath(trace.id, stream)}/call?${where}`, signal) as CallReply;
  const { all } = o;
  const time = (key: Keys<CallReply, Whole>): number | undefined => (o[key] === undefined ? undefined : since(trace.epoch, o[key]));
  return {
    name: text(o, "name"), kind: text(o, "kind"), exception: maybe(o, "exception"), interrupt: o.interrupt === true,
    depth: count(o, "depth"), deepest: count(o, "deepest"), pc: text(o, "pc"),
    caller: text(o, "caller"), callerFrom: maybe(o, "caller_from"), from: count(o, "from"),
    to: count(o, "to"), self: count(o, "self"), ended: o.ended === true,
    timeFrom: time("time_from"), timeTo: time("time_to"),
    timeLeast: count(o, "time_least"), timeMost: Number(o.time_most ?? Infinity), number: maybe(o, "number"),
    all: all && {
      calls: count(all, "calls"), finished: count(all, "finished"), total: count(all, "total"),
      min: count(all, "min"), max: count(all, "max"), longest: maybe(all, "longest"),
      previous: maybe(all, "previous"), next: maybe(all, "next"),
    },
  };
}

export interface TreeNode {
  readonly depth: number;
  readonly name: string;
  readonly total: number;
  readonly self: number;
  readonly calls: number;
}

export interface ProfileFunction {
  readonly name: string;
  readonly pc: string;
  readonly self: number;
  readonly total: number;
  readonly calls: number;
  readonly finished: number;
  readonly length: number;
}

export type Weight = "insns" | "time";

export interface Profile {
  /** Of all numbers: instructions, or time in the trace's unit. */
  readonly weight: Weight;
  readonly all: number; // their sum
  readonly truncated: boolean;
  /** A statistic: all numbers are samples instead of instructions. */
  readonly sampled: boolean;
  readonly nodes: readonly TreeNode[];
  readonly functions: readonly ProfileFunction[];
}

/** Profile of a stream, or of all. Without a range: everything. */
export async function profile(
  trace: Ref, stream: string | undefined, axis: Axis, range: readonly [number, number] | undefined,
  callers: boolean, weight: Weight, signal: AbortSignal, nodes = 0, // 0: as many as the server usually tells
): Promise<Profile> {
  const epoch = epochOn(trace, axis);
  const path = stream === undefined ? tracePath(trace.id) : streamPath(trace.id, stream);
  const where = range === undefined ? ""
    : `&unit=${axis}&from=${absolute(epoch, range[0])}&to=${absolute(epoch, range[1])}`;
  const o = await json(`${path}/profile?callers=${callers ? 1 : 0}&weight=${weight}${nodes > 0 ? `&nodes=${nodes}` : ""}${where}`, signal) as ProfileReply;
  return {
    weight: o.weight === "time" ? "time" : "insns", all: count(o, o.weight === "time" ? "ran" : "insns"), truncated: o.truncated === true, sampled: o.sampled === true,
    nodes: o.nodes.map((n) => ({
      depth: count(n, "depth"), name: text(n, "name"), total: count(n, "total"),
      self: count(n, "self"), calls: count(n, "calls"),
    })),
    functions: o.functions.map((f) => ({
      name: text(f, "name"), pc: text(f, "pc"), self: count(f, "self"), total: count(f, "total"),
      calls: count(f, "calls"), finished: count(f, "finished"), length: count(f, "length"),
    })),
  };
}

/** Position of a node in the picture: fractions of the width, and its parent. */
export interface Box {
  readonly left: number;
  readonly width: number;
  readonly parent: number; // -1: none
}

/** Compute the positions of a tree's nodes, each after its parent in the list. */
export function layout(nodes: readonly TreeNode[], whole: number): Box[] {
  const path: { index: number; next: number }[] = [];
  const boxes: Box[] = [];
  let roots = 0;
  nodes.forEach((node, index) => {
    path.length = Math.min(path.length, node.depth);
    const parent = path.at(-1);
    const left = parent ? parent.next : roots;
    const width = whole > 0 ? node.total / whole : 0;
    boxes.push({ left, width, parent: parent?.index ?? -1 });
    if (parent) parent.next += width;
    else roots += width;
    path.push({ index, next: left });
  });
  return boxes;
}
