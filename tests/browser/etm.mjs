// SPDX-License-Identifier: MIT
// A small ETMv4 trace source for captures in which every instruction and time is known. Source of
// the packets: Arm IHI 0064, "Trace packets".
import fs from "node:fs";
import path from "node:path";

export const CODE = 0x80000;
/** Instructions in the loop that is executed: each E atom is one iteration. */
export const ROUND = 4;
const NOP = 0xd503201f;
const BACK = 0x17fffffd; // b -12

export class Etm {
  constructor() {
    this.bytes = [];
    this.sync();
  }

  sync() {
    this.bytes.push(...Array(11).fill(0), 0x80, 0x01, 0x01, 0x00);
    return this;
  }

  /** Tracing starts or resumes. */
  on() {
    const at = BigInt(CODE);
    const byte = (n) => Number((at >> BigInt(n)) & 0xffn);
    this.bytes.push(0x04, 0x85, (CODE >> 2) & 0x7f, (CODE >> 9) & 0x7f,
      ...[16, 24, 32, 40, 48, 56].map(byte), 0x31);
    return this;
  }

  run(insns) {
    for (let i = 0; i < insns / ROUND; i++) this.bytes.push(0xf7);
    return this;
  }

  time(ticks) {
    let rest = BigInt(ticks);
    this.bytes.push(0x02);
    for (let i = 0; i < 8; i++, rest >>= 7n) this.bytes.push(Number(rest & 0x7fn) | 0x80);
    this.bytes.push(Number(rest & 0xffn));
    return this;
  }

  overflow() {
    this.bytes.push(0x00, 0x05);
    return this.sync().on();
  }

  /** Write trace, program and setup to files. Returns the arguments for `tracelake push`. */
  write(dir, name, { clock = 0, image = true } = {}) {
    const file = (end) => path.join(dir, name + end);
    fs.writeFileSync(file(".etm"), Buffer.from(this.bytes));
    const code = Buffer.alloc(4 * ROUND);
    [NOP, NOP, NOP, BACK].forEach((insn, i) => code.writeUInt32LE(insn, 4 * i));
    fs.writeFileSync(file(".bin"), code);
    fs.writeFileSync(file(".ini"), `[trace]\nformat=etm4\n${clock > 0 ? `clock=${clock}\n` : ""}
[source cs.10]\nprotocol=etm4\nid=0x10\ntype=ETM4.2\ncore=Cortex-A53
TRCCONFIGR=0x801\nTRCIDR0=0x28000EA1\nTRCIDR1=0x4100F403\nTRCIDR2=0x488\n`);
    return ["--format", "etm4,id=0x10", "--config", file(".ini"),
      ...(image ? ["--image", `${file(".bin")}@0x${CODE.toString(16)}`] : []), file(".etm")];
  }
}
