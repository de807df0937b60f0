// SPDX-License-Identifier: MIT
// What people type to say what they want to see: "1.5 ms", "59.7ms:+200us", "1K:2K", "main", "main : gap". Only read
// here; panels/viewfield.ts finds the places.
import { parseTime } from "./search.ts";

export type Spot =
  | { readonly kind: "time"; readonly at: bigint; readonly ns: boolean } // as times are shown; else ticks
  | { readonly kind: "insn"; readonly at: number }
  | { readonly kind: "name"; readonly text: string }; // anything that can be searched for

export type Wish =
  | { readonly kind: "whole" }
  | { readonly kind: "spot"; readonly at: Spot }
  /** undefined: the trace's begin or end; `length`: `to` counts from `from`. */
  | { readonly kind: "range"; readonly from: Spot | undefined; readonly to: Spot | undefined; readonly length: boolean }
  | { readonly kind: "error"; readonly text: string };

const error = (text: string): Wish => ({ kind: "error", text });

/** Words that what is searched for may begin with, and "::" of C++ are no separators. */
const COLON = /(?<!^\s*(?:event|call|symbol|pc|op|opcode|text)|:):(?!:)/i;
const BETWEEN = /\s*(?:\.\.+|…|–|—)\s*|\s+(?:to|-)\s+/;
const NUMBER = /^[\d,_\s]*\d[\d,_\s]*(?:\.[\d\s]+)?$/;
const UNIT = /\d\s*(ticks?|[nuµμm]?s)$/i;
const TIMES: Readonly<Record<string, number>> = { k: 1e3, m: 1e6, g: 1e9 };

/** The two sides, undefined if there is one. */
function sides(text: string): [string, string] | undefined {
  for (const separator of [BETWEEN, COLON, /(?<=\d\s*[a-zµμ]*\s*)-(?=\s*\d)/i]) {
    const found = separator.exec(text);
    if (found) return [text.slice(0, found.index).trim(), text.slice(found.index + found[0].length).trim()];
  }
  return undefined;
}

function spot(text: string): Spot | string {
  const time = parseTime(text);
  if (time) return time;
  const [, digits, unit = ""] = /^#?\s*([\d,_\s]*\d(?:\.[\d\s]+)?)\s*([kmg])?(?:\s*insns?)?$/i.exec(text) ?? [];
  if (digits !== undefined) {
    const at = Number(digits.replace(/[,_\s]/g, "")) * (TIMES[unit.toLowerCase()] ?? 1);
    return Number.isSafeInteger(Math.round(at)) && Math.abs(at - Math.round(at)) < 1e-6 ? { kind: "insn", at: Math.round(at) }
      : `“${text}” is no whole number of instructions. Times have a unit: ${text} ms.`;
  }
  if (/^\d/.test(text) && !/^0x[0-9a-f]/i.test(text)) return `“${text}” is no time (1.5 ms), no instruction (1,000 or 1K), and no name.`;
  return { kind: "name", text };
}

/** A number without a unit is a time if the other side is one. */
function withUnit(text: string, other: string): string {
  const unit = NUMBER.test(text) && UNIT.exec(other)?.[1];
  return unit ? `${text}${unit}` : text;
}

/** `known`: is it the name of a function? Such a name may contain anything. */
export function parseRange(input: string, known: (name: string) => boolean): Wish {
  const text = input.trim();
  if (text === "" || /^(all|whole)$/i.test(text)) return { kind: "whole" };
  const two = known(text) ? undefined : sides(text);
  if (!two) {
    const at = known(text) ? { kind: "name", text } as const : spot(text);
    return typeof at === "string" ? error(at) : { kind: "spot", at };
  }
  const length = two[1].startsWith("+");
  const right = length ? two[1].slice(1).trim() : two[1];
  if (two[0] === "" && right === "") return { kind: "whole" };
  if (length && (two[0] === "" || right === "")) return error("Type where it begins, and how long it is: 59.7ms:+200us.");
  const from = two[0] === "" ? undefined : spot(withUnit(two[0], right));
  const to = right === "" ? undefined : spot(withUnit(right, two[0]));
  for (const side of [from, to]) if (typeof side === "string") return error(side);
  const range = { kind: "range", from: from as Spot | undefined, to: to as Spot | undefined, length } as const;
  return ordered(range) ? range : error(length ? "A length is an amount above 0: +200us, +1K." : `The end, ${right}, is not after the begin, ${two[0]}.`);
}

function ordered({ from, to, length }: Wish & { kind: "range" }): boolean {
  if (length) return to !== undefined && to.kind !== "name" && to.at > 0;
  if (from?.kind === "time" && to?.kind === "time") return from.at < to.at;
  return from?.kind !== "insn" || to?.kind !== "insn" || from.at < to.at;
}
