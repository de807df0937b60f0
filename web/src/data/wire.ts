// SPDX-License-Identifier: MIT
// Reads protobuf messages field by field. The page has one kind, tiles: a library that knows all messages by their
// descriptors would be a tenth of what the page loads.

/** A field's number, its value as an integer (0 for bytes), and its bytes (none for an integer). */
export type Visit = (field: number, value: bigint, bytes: Uint8Array) => void;

const NONE = new Uint8Array(0);

class Reader {
  at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  get more(): boolean {
    return this.at < this.bytes.length;
  }

  take(n: number): Uint8Array {
    if (n > this.bytes.length - this.at) throw new RangeError("the message is cut off");
    this.at += n;
    return this.bytes.subarray(this.at - n, this.at);
  }

  /** An integer below 2^53 exactly, others as near as a number is. */
  number(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const b = this.bytes[this.at++];
      if (b === undefined || scale > 2 ** 63) throw new RangeError("an integer is cut off");
      value += (b & 127) * scale;
      if (b < 128) return value;
    }
  }

  big(): bigint {
    const begin = this.at;
    const value = this.number();
    if (value < 2 ** 53) return BigInt(value);
    let exact = 0n;
    for (let i = this.at - 1; i >= begin; i--) exact = (exact << 7n) | BigInt(this.bytes[i]! & 127);
    return BigInt.asUintN(64, exact);
  }
}

/** Visits each field of a message, in their order. Throws on invalid bytes. */
export function fields(message: Uint8Array, visit: Visit): void {
  const r = new Reader(message);
  while (r.more) {
    const key = r.number();
    const field = Math.floor(key / 8);
    if (key % 8 === 0) visit(field, r.big(), NONE);
    else if (key % 8 === 2) visit(field, 0n, r.take(r.number()));
    else if (key % 8 === 1 || key % 8 === 5) r.take(key % 8 === 1 ? 8 : 4); // tiles have none of fixed width
    else throw new RangeError(`field ${field} has no known type`);
  }
}

/** Copies packed integers to `out`, as many as it has room for. */
export function unpack<T extends Float64Array | Uint32Array | Uint16Array>(packed: Uint8Array, out: T): T {
  const r = new Reader(packed);
  for (let i = 0; r.more; i++) out[i] = r.number();
  return out;
}
