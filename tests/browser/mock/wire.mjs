// SPDX-License-Identifier: MIT
// tracelake.v1.Tile encoded by hand: a check of the bytes that is independent of the code under
// test.

class Writer {
  constructor() {
    this.bytes = [];
  }

  varint(n) {
    let rest = BigInt(n);
    while (rest > 0x7fn) {
      this.bytes.push(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    this.bytes.push(Number(rest));
    return this;
  }

  number(field, n) {
    return n ? this.varint(field << 3).varint(n) : this;
  }

  block(field, bytes) {
    this.varint((field << 3) | 2).varint(bytes.length);
    for (const b of bytes) this.bytes.push(b);
    return this;
  }

  packed(field, values) {
    const inner = new Writer();
    for (const v of values) inner.varint(v);
    return this.block(field, inner.bytes);
  }
}

export function encodeTile(tile) {
  const w = new Writer();
  w.number(1, tile.axis === "time" ? 1 : 0).number(2, tile.level).number(3, tile.index)
    .number(4, tile.bucket).number(5, tile.first).number(6, tile.sealed ? 1 : 0)
    .number(7, tile.generation);
  for (const lane of tile.lanes) {
    const l = new Writer();
    l.number(1, lane.lane).packed(2, lane.insns).block(3, lane.coverage).packed(4, lane.fn)
      .block(5, lane.share).packed(6, lane.fn2).block(7, lane.share2).block(8, lane.distinct)
      .packed(9, lane.page).block(10, lane.privilege).block(11, lane.branches)
      .packed(12, lane.events).packed(13, lane.eventCount).block(14, lane.flags)
      .block(15, lane.depthMin).block(16, lane.depthMax);
    if (lane.behindFrom !== undefined) l.varint(19 << 3).varint(lane.behindFrom);
    w.block(8, l.bytes);
  }
  return Buffer.from(w.bytes);
}
