// SPDX-License-Identifier: MIT
// A server in a folder of its own with captures in it: a finished one, real ones where the data is available, and one
// that is being pushed.
import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { build, root } from "./harness.mjs";
import { missingTrace } from "./gaps.mjs";
import { writeCapture } from "./osd.mjs";

const DATA = process.env.TL_DATA ?? path.join(root, "../shared/data");
const READY_MS = 120000;

let tries = 0;

/**
 * A port below those that the kernel gives to clients, and above those of other tests; concurrent ones look at
 * different numbers.
 */
export function freePort() {
  return new Promise((resolve) => {
    const port = 28000 + (process.pid * 37 + tries++) % 4000;
    const probe = net.createServer();
    probe.on("error", () => resolve(freePort()));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(port)));
  });
}

const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** close() ends everything that it started. */
export class Lab {
  constructor() {
    this.dir = fs.mkdtempSync(path.join(os.tmpdir(), "tracelake-browser-"));
    this.children = [];
  }

  spawn(program, args) {
    const log = path.join(this.dir, `${path.basename(program)}-${this.children.length}.log`);
    const fd = fs.openSync(log, "w");
    const child = spawn(path.join(build, program), args, { stdio: ["ignore", fd, fd] });
    fs.closeSync(fd);
    const ended = new Promise((resolve) => {
      child.on("exit", (code, signal) => resolve(code ?? signal));
      child.on("error", (error) => resolve(String(error)));
    });
    const one = { child, ended, log: () => fs.readFileSync(log, "utf8").slice(-3000) };
    this.children.push(one);
    return one;
  }

  /** Run a program to its end; throws if it fails. */
  async run(program, args) {
    const one = this.spawn(program, args);
    const status = await one.ended;
    if (status !== 0) throw new Error(`${program} ${args.join(" ")}: ${status}\n${one.log()}`);
  }

  async start(...options) {
    const [port, tls] = [await freePort(), await freePort()];
    this.url = `http://127.0.0.1:${port}`;
    this.tls = `https://127.0.0.1:${tls}`;
    const server = this.spawn("tracelake", ["serve", "--data", path.join(this.dir, "data"),
      "--listen", `127.0.0.1:${port}`, "--listen-tls", `127.0.0.1:${tls}`, ...options]);
    let status;
    void server.ended.then((s) => { status = s; });
    for (const until = Date.now() + READY_MS; ;) {
      if (status !== undefined) throw new Error(`the server ended: ${status}\n${server.log()}`);
      const ready = await fetch(`${this.url}/readyz`).then((r) => r.ok, () => false);
      if (ready) return;
      if (Date.now() > until) throw new Error(`the server is not ready\n${server.log()}`);
      await sleep(100);
    }
  }

  rig(kind, trace, more) {
    return ["--kind", kind, "--server", this.url, "--rig", `rig-${kind}`, "--trace", trace, "--quiet", ...more];
  }

  /** Push a complete simulated capture. Returns the name of the trace. */
  async finished() {
    await this.run("tracelake-rig", this.rig("etm", "finished", ["--rate", "2000000", "--bytes", "3000000", "--seed", "7"]));
    await this.sealed("finished");
    return "finished";
  }

  /** Push a simulated Cortex-M whose DWT reports interrupts and accesses. Returns the name of the trace. */
  async cortex() {
    await this.run("tracelake-rig", this.rig("cortex-m", "cortex", ["--rate", "2000000", "--bytes", "200000", "--seed", "3"]));
    await this.sealed("cortex");
    return "cortex";
  }

  /**
   * Push a simulated capture of a kind, with files of what was executed (flow text) and of the program. `clock`: ticks
   * a second; `slack`: ticks between two timestamps that refine others.
   */
  async truth(kind, seed) {
    const id = `truth-${kind}`;
    const [truth, elf, config] = ["truth", "elf", "ini"].map((end) => path.join(this.dir, `${id}.${end}`));
    const bytes = { etm: 200000, pt: 100000, di: 200000, "cortex-m": 100000 }[kind];
    await this.run("tracelake-rig", this.rig(kind, id, ["--rate", "20000000", "--bytes", String(bytes), "--seed", String(seed), "--truth", truth, "--image", elf, "--config", config]));
    await this.sealed(id);
    const setup = fs.readFileSync(config, "utf8");
    const number = (key) => Number(new RegExp(`^${key}=(\\S+)`, "m").exec(setup)?.[1] ?? 0);
    // Mini time counters tick with the crystal, and may come a period late.
    const slack = kind === "pt" ? 2 * 2 ** number("MTC_FREQ") * number("CPUID_15_EBX") / number("CPUID_15_EAX") : 0;
    return { id, truth, elf, clock: number("clock"), slack };
  }

  /** Call `body` with the name of a trace that grows until it returns. */
  async whileLive(body) {
    const rig = this.spawn("tracelake-rig", this.rig("etm", "live", ["--rate", "200000", "--seed", "8"]));
    await this.until("live", (t) => t.streams.some((s) => Number(s.insns) > 0));
    await body("live");
    rig.child.kill("SIGTERM");
    await rig.ended;
  }

  /** Push a buffer of a real capture of a board. Returns undefined if it is not available. */
  async real(name, buffer, kind = "snapshots") {
    const folder = path.join(DATA, "coresight", kind, name);
    if (!fs.existsSync(folder)) return undefined;
    await this.run("tracelake", ["push", "--server", this.url, "--trace", name, "--buffer", buffer, "--snapshot", folder]);
    // Each buffer becomes a trace of its own.
    const all = await fetch(`${this.url}/api/v1/traces`).then((r) => r.json());
    const { id } = all.find((t) => t.id.startsWith(name));
    await this.sealed(id);
    return id;
  }

  /**
   * Push a recorded STF trace of code without symbols. Returns undefined if it is not available.
   */
  async recorded(name) {
    const file = path.join(DATA, "stf", name);
    return fs.existsSync(file) ? this.pushed("recorded", ["--format", "stf", file]) : undefined;
  }

  /**
   * Push a recording of Linux without its code. Returns the trace and the location of the code;
   * undefined if it is not available.
   */
  async recording(name) {
    const folder = path.join(DATA, "perf");
    if (!fs.existsSync(folder)) return undefined;
    const nowhere = path.join(this.dir, "nowhere");
    return {
      symfs: path.join(folder, "symfs"),
      bare: await this.pushed("bare", ["--symfs", nowhere, "--buildid-dir", nowhere, path.join(folder, "pt", `${name}.data`)]),
    };
  }

  /** Push a capture with the arguments from its writer. Returns the name of the trace. */
  async pushed(id, args) {
    await this.run("tracelake", ["push", "--server", this.url, "--trace", id, ...args]);
    await this.sealed(id);
    return id;
  }

  /** Two traces of the same path, through programs that differ in an instruction. */
  async samePath() {
    const args = missingTrace().write(this.dir, "same");
    await this.pushed("same", args);
    const file = path.join(this.dir, "same.bin");
    const code = fs.readFileSync(file);
    code.writeUInt32LE(0xd503203f, 4); // yield instead of nop
    fs.writeFileSync(file, code);
    return ["same", await this.pushed("other", args)];
  }

  /** A trace with a source in its setup that sends nothing, and bytes that are no trace. */
  async undecoded() {
    const [bytes, setup, garbage] = ["silent.bin", "silent.ini", "garbage.bin"].map((name) => path.join(this.dir, name));
    await this.run("tracelake-rig", this.rig("etm", "complete", ["--rate", "2000000", "--bytes", "100000", "--save", bytes, "--config", setup]));
    fs.appendFileSync(setup, "\n[source cs.20]\nprotocol=itm\nid=0x20\ndevice=ITM_9\n");
    fs.writeFileSync(garbage, Buffer.alloc(2048, 0x55));
    return { silent: await this.pushed("silent", ["--config", setup, bytes]), garbage: await this.pushed("garbage", ["--format", "etm4", garbage]) };
  }

  /** An Open SoC Debug capture with every kind of module. */
  async osd() {
    const file = path.join(this.dir, "osd.di");
    writeCapture(file);
    await this.run("tracelake", ["push", "--server", this.url, "--trace", "osd", "--format", "di,clock=50000000", file]);
    await this.sealed("osd");
    return "osd";
  }

  sealed(id) {
    return this.until(id, (t) => t.state === "sealed" || t.state === "failed");
  }

  async until(id, wanted, seconds = READY_MS / 1000) {
    let last;
    for (const end = Date.now() + 1000 * seconds; Date.now() < end; await sleep(200)) {
      last = await fetch(`${this.url}/api/v1/traces/${id}`).then((r) => (r.ok ? r.json() : undefined), () => undefined);
      if (last && wanted(last)) return last;
    }
    throw new Error(`${id} did not get ready: ${JSON.stringify(last)}\n${this.children[0].log()}`);
  }

  async close() {
    for (const { child } of this.children) child.kill("SIGTERM");
    const gone = Promise.all(this.children.map((c) => c.ended));
    await Promise.race([gone, sleep(10000)]);
    for (const { child } of this.children) child.kill("SIGKILL");
    fs.rmSync(this.dir, { recursive: true, force: true });
  }
}
