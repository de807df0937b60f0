// SPDX-License-Identifier: MIT
// Formats numbers for people.

/** 1234567 as "1,234,567". */
export function grouped(n: number | bigint): string {
  const digits = String(typeof n === "bigint" ? n : Math.trunc(n));
  return digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

const SI = ["", " k", " M", " G", " T", " P"];

/** Three significant digits: "812", "1.23 M", "45.6 G". */
export function short(n: number): string {
  let value = Math.abs(n);
  let unit = 0;
  while (value >= 999.5 && unit < SI.length - 1) {
    value /= 1000;
    unit++;
  }
  const digits = unit === 0 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${n < 0 ? "−" : ""}${value.toFixed(digits)}${SI[unit]}`;
}

/** Bytes in binary units: "1.5 MiB". */
export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = n;
  let unit = 0;
  while (value >= 1023.5 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value.toFixed(unit === 0 || value >= 99.95 ? 0 : 1)} ${units[unit]}`;
}

/** A length of time in ns: "812 ns", "1.23 ms", "45.6 s", "3 min 20 s"; `digits`: so many are known. */
export function duration(exact: number, digits = 3): string {
  const ns = digits < 3 ? Number(exact.toPrecision(digits)) : exact;
  if (ns >= 119.5e9) {
    const s = Math.round(ns / 1e9);
    if (s < 7200) return `${Math.floor(s / 60)} min ${s % 60} s`;
    return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  }
  for (const [scale, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]] as const) {
    if (ns >= scale * 0.9995) return `${significant(ns / scale, digits)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}

/** A duration of which bounds are known, with no more digits than these allow: two if they differ by more than a
 *  hundredth of it, the bounds themselves if by more than a tenth. `text` formats a number of units. */
export function bounded(value: number, least: number, most: number, text: (n: number, digits?: number) => string): string {
  if (most - least <= value / 100) return text(value);
  if (most - least <= value / 10) return `~ ${text(value, 2)}`;
  return most === Infinity ? `more than ${text(least)}` : `${text(least)} … ${text(most)}`;
}

/** The same for tables, whose shares are of the estimates: one digit if the bounds differ by more than a tenth. */
export function estimated(value: number, least: number, most: number, text: (n: number, digits?: number) => string): string {
  return most - least <= value / 10 ? bounded(value, least, most, text) : `~ ${text(value, 1)}`;
}

/** Format a position in ns exactly, in the unit with a non-zero integer part: "1.802 347 ms". */
export function exactTime(ns: number | bigint): string {
  const n = typeof ns === "bigint" ? ns : BigInt(Math.floor(ns));
  const digits = String(n);
  const unit = Math.min(3, Math.floor((digits.length - 1) / 3));
  if (unit === 0) return `${digits} ns`;
  const at = digits.length - 3 * unit;
  const rest = digits.slice(at).match(/\d{3}/g)!.join(" ");
  return `${grouped(BigInt(digits.slice(0, at)))}.${rest} ${["ns", "µs", "ms", "s"][unit]}`;
}

/** A time in ns that ends with zeros, without them: "124.14 ms". */
export function roundTime(ns: bigint): string {
  const text = exactTime(ns);
  return text.includes(".") ? text.replace(/\.?[0 ]+(?= [nµm]?s$)/, "") : text;
}

/** Format so many significant digits, if there are that many. */
export function significant(value: number, digits = 3): string {
  const rounded = Number(value.toPrecision(digits));
  const before = Math.max(1, Math.floor(Math.log10(Math.max(1, rounded))) + 1);
  return rounded.toFixed(Math.max(0, digits - before));
}

/** "3 s ago", "5 min ago", then the date. Both in ms since 1970. */
export function ago(then: number, now: number): string {
  const s = Math.max(0, Math.round((now - then) / 1000));
  if (s < 2) return "now";
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return new Date(then).toISOString().slice(0, 10);
}

export function percent(part: number, whole: number): string {
  if (whole <= 0) return "–";
  const p = (100 * part) / whole;
  return p > 0 && p < 0.1 ? "< 0.1 %" : `${p.toFixed(p >= 99.95 ? 0 : 1)} %`;
}

/** An event of the server in words: "exception irq 14 0000000000400078 <main+0x10>" as "irq 14 in main+0x10", a
 *  byte of a text as its letter. */
export function withNames(text: string): string {
  return text.replace(/^exception (.*) [0-9a-f]{8,16} <(.+?)>?$/, "$1 in $2")
    .replace(/^exception (.*) (?:0{8})?([0-9a-f]{8,16})$/, "$1 at $2")
    .replace(/^software (.*) ([2-7][0-9a-f]) text$/, (_, port: string, code: string) => `${port} “${String.fromCharCode(parseInt(code, 16))}”`)
    .replace(/^(software|note) /, "");
}

/** Hexadecimal digits of an address, padded to 8, or 16. */
export function addressDigits(pc: string): string {
  const digits = pc.replace(/^0x0*/, "");
  return digits.padStart(digits.length > 8 ? 16 : 8, "0");
}

/**
 * "0xffff000008081234" without the prefix common to all addresses of a machine, for narrow places.
 */
export function shortAddress(pc: string): string {
  const digits = pc.replace(/^0x/, "");
  return digits.length > 8 ? `…${digits.slice(-8)}` : `0x${digits}`;
}

/** The end of the bracket that opens at `at`; the end of the name if it does not close. */
function bracketEnd(name: string, at: number): number {
  let depth = 0;
  for (let i = at; i < name.length; i++) {
    const c = name[i]!;
    if ("<([{".includes(c)) depth++;
    else if (">)]}".includes(c) && !(c === ">" && name[i - 1] === "-") && --depth === 0) return i + 1;
  }
  return name.length;
}

const OPERATOR = /operator(\(\)|[<>=!+\-*/%^&|~,]+)/y;

/** Replace what is in each outer bracket of this kind by "…": "a<b<c>>(d)" as "a<…>(d)". */
function elided(name: string, open: string): string {
  let out = "";
  for (let i = 0; i < name.length;) {
    OPERATOR.lastIndex = i;
    const operator = /\w/.test(name[i - 1] ?? "") ? undefined : OPERATOR.exec(name)?.[0];
    if (operator !== undefined) {
      out += operator;
      i += operator.length;
    } else if (name[i] === open) {
      const end = bracketEnd(name, i);
      out += end - i <= 2 ? name.slice(i, end) : `${open}…${open === "<" ? ">" : ")"}`;
      i = end;
    } else {
      out += name[i++];
    }
  }
  return out;
}

/**
 * A name of C++ or Rust, and shorter forms of it, longest first: without template arguments, without
 * arguments, without what the function is in.
 */
export function shorterNames(name: string): string[] {
  const names = [name];
  if (!/[<(:]/.test(name)) return names;
  const templates = elided(name, "<");
  const bare = elided(templates, "(");
  const parts = bare.split("::");
  for (const shorter of [templates, bare, parts[parts.length - 1]!])
    if (shorter !== "" && shorter.length < names[names.length - 1]!.length) names.push(shorter);
  return names;
}

/** "el-.t32" as "t32": processors without levels have none. */
export function modeText(mode: string): string {
  return mode.replace(/^(el|ring)?-\./, "");
}
