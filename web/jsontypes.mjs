// SPDX-License-Identifier: MIT
// TypeScript types of the server's JSON, made of the .proto files by the rules that proto/json has (its head, and that of
// proto/tracelake/v1/lookups.proto). The page names members of answers by them, so that a member that is misspelled, or
// no longer there, is an error of the type check. Types only: the page does not grow by them.

// Of google/protobuf/descriptor.proto.
const Type = { DOUBLE: 1, INT64: 3, UINT64: 4, INT32: 5, BOOL: 8, STRING: 9, MESSAGE: 11, UINT32: 13, ENUM: 14 };
const REPEATED = 3;

const ABSENT_IF_EMPTY = new Set(["inlined", "events", "silent", "records", "cycles", "cycle_insns", "time"]);
const SCALARS = new Map([
  [Type.STRING, "string"], [Type.BOOL, "boolean"], [Type.DOUBLE, "number"], [Type.UINT32, "number"], [Type.INT32, "number"],
  [Type.UINT64, "Whole"], [Type.INT64, "Whole"],
]);

const endsWith = (name, word) => name === word || name.endsWith(`_${word}`);
const memberName = (name) => (name === "timed" ? "has_time" : endsWith(name, "begin") ? `${name.slice(0, -"begin".length)}from` : name);
const isAddress = (name) => endsWith(name, "pc") || name === "context" || name === "vmid";
/** ".tracelake.v1.CallReply.Kind" as "CallReply_Kind". */
const typeName = (full) => full.replace(/^\.tracelake\.v1\./, "").replaceAll(".", "_");

/** Words of an enum: lower case, without what all names begin with up to a "_". */
function words(values) {
  const names = values.map((v) => v.name);
  let same = names[0].length;
  while (names.length > 1 && names.some((n) => n.slice(0, same) !== names[0].slice(0, same))) same--;
  while (same > 0 && names[0][same - 1] !== "_") same--;
  return names.map((n) => `"${n.slice(same).toLowerCase().replaceAll("_", "-")}"`).join(" | ");
}

/** undefined: bytes, which JSON does not have. */
function valueType(field) {
  if (field.type === Type.MESSAGE || field.type === Type.ENUM) return typeName(field.typeName);
  if (field.type === Type.UINT64 && isAddress(field.name)) return "string";
  return SCALARS.get(field.type);
}

/** A member of an interface; "" for none. */
function member(field, maps) {
  const map = maps.get(field.typeName);
  const type = map ? valueType(map) : valueType(field);
  if (type === undefined || (field.name === "at" && field.type === Type.MESSAGE)) return "";
  const repeated = field.label === REPEATED;
  const whole = map ? `Readonly<Record<string, ${type}>>` : repeated ? `readonly ${type.includes(" ") ? `(${type})` : type}[]` : type;
  const optional = repeated ? ABSENT_IF_EMPTY.has(field.name)
    : Object.hasOwn(field, "oneofIndex") || field.type === Type.MESSAGE || field.type === Type.INT32;
  return `  readonly ${memberName(field.name)}${optional ? "?" : ""}: ${whole};\n`;
}

function message(m, prefix, out) {
  const name = prefix + m.name;
  const maps = new Map(m.nestedType.filter((n) => n.options?.mapEntry)
    .map((n) => [`.tracelake.v1.${name.replaceAll("_", ".")}.${n.name}`, n.field[1]]));
  const base = m.field.find((f) => f.name === "at" && f.type === Type.MESSAGE);
  const members = [...m.field].sort((a, b) => a.number - b.number).map((f) => member(f, maps)).join("");
  out.push(`export interface ${name}${base ? ` extends ${typeName(base.typeName)}` : ""} {\n${members}}\n`);
  for (const e of m.enumType) out.push(`export type ${name}_${e.name} = ${words(e.value)};\n`);
  for (const n of m.nestedType) if (!n.options?.mapEntry) message(n, `${name}_`, out);
}

/** The text of a module, of the bytes of a FileDescriptorSet; `require` finds packages. */
export function jsonTypes(bytes, require) {
  const { fromBinary } = require("@bufbuild/protobuf");
  const { FileDescriptorSetSchema } = require("@bufbuild/protobuf/wkt");
  const out = [`// Made by web/jsontypes.mjs of proto/tracelake/v1.
/** An integer; from 2^53 on in decimal. */
export type Whole = number | string;
/** The same where no number comes near 2^53. */
export type Small<T> = [Whole] extends [T] ? Exclude<T, string>
  : T extends readonly (infer E)[] ? readonly Small<E>[] : T extends object ? { readonly [K in keyof T]: Small<T[K]> } : T;
/** The same where the server always says all of it. */
export type All<T> = T extends readonly (infer E)[] ? readonly All<E>[]
  : T extends object ? { readonly [K in keyof T]-?: All<T[K]> } : T;
/** Members of T whose values are such. */
export type Keys<T, V> = { [K in keyof T]-?: Exclude<T[K], undefined> extends V ? K : never }[keyof T] & string;
`];
  for (const file of fromBinary(FileDescriptorSetSchema, bytes).file) {
    if (file.package !== "tracelake.v1") continue;
    for (const e of file.enumType) out.push(`export type ${e.name} = ${words(e.value)};\n`);
    for (const m of file.messageType) message(m, "", out);
  }
  return out.join("\n");
}
