// SPDX-License-Identifier: MIT
// A synthetic trace of any length: what is executed at an instruction is derived from its index by hashing, so that
// any part can be generated directly and is always the same.

const KERNEL = `el1_irq gic_handle_irq handle_domain_irq tick_sched_timer hrtimer_interrupt
run_timer_softirq update_process_times scheduler_tick __schedule pick_next_task_fair finish_task_switch
do_idle cpuidle_enter_state el0_sync do_el0_svc vfs_read vfs_write ksys_read ext4_file_read_iter
generic_file_read_iter copy_page_to_iter filemap_get_pages ext4_map_blocks submit_bio blk_mq_submit_bio
tcp_sendmsg tcp_write_xmit ip_queue_xmit dev_queue_xmit tcp_v4_rcv napi_poll netif_receive_skb
handle_mm_fault do_anonymous_page alloc_pages get_page_from_freelist kmem_cache_alloc kfree`.split(/\s+/);
const USER = `main parse_request dispatch handle_get handle_put lookup_key insert_key btree_search
btree_split compress_block decompress_block hash_update sha256_block inflate_fast deflate_slow
json_parse_value json_parse_string format_response write_all read_full worker_loop queue_pop queue_push
matrix_multiply fft_butterfly convolve normalise accumulate quantise encode_frame decode_frame`.split(/\s+/);
const LEAF = `memcpy memset memcmp strlen __spin_lock __spin_unlock rcu_read_lock malloc free
__aeabi_uldivmod bit_reverse crc32_le list_add atomic_fetch_add`.split(/\s+/);
export const NAMES = [...KERNEL, ...USER, ...LEAF];
const ID = new Map(NAMES.map((name, id) => [name, id]));

/** Instructions in a block, and the nanoseconds of idle time after it. */
const BLOCK = 2 ** 22;
const IDLE = 2 ** 20;
const PERIOD = BLOCK + IDLE;
/** Everything begins and ends at multiples of this many instructions. */
const GRAIN = 128;
const IRQ_EVERY = 2 ** 16;
const IRQ_LENGTH = 1024;

function stir(h, word) {
  h = Math.imul(h ^ word, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return h ^ h >>> 16;
}

const FIRST = 0x9e3779b9;
const stirBoth = (h, part) => stir(stir(h, part >>> 0), Math.floor(part / 2 ** 32) >>> 0);

export function hash(...parts) {
  return parts.reduce(stirBoth, FIRST) >>> 0;
}

/** The hash of three numbers: it decides everything here, millions of times. */
const hash3 = (a, b, c) => stirBoth(stirBoth(stirBoth(FIRST, a), b), c) >>> 0;

const pick = (list, h) => list[h % list.length];

/** The call stack at an instruction, outermost first, as ids. */
export function stackAt(lane, i) {
  const block = Math.floor(i / BLOCK);
  const user = hash3(lane, block, 1) % 10 < 6;
  const stack = [ID.get(user ? "main" : "el0_sync")];
  const task = hash3(lane, block, 2);
  stack.push(ID.get(user ? pick(["worker_loop", "dispatch", "encode_frame"], task) : "do_el0_svc"));
  const phase = Math.floor(i / 2 ** 18);
  const pool = user ? USER : KERNEL;
  stack.push(ID.get(pool[(hash3(lane, phase, 3) + task) % pool.length]));
  const part = Math.floor(i / 2 ** 12);
  const local = hash3(lane, part, 4);
  if (local % 3 > 0) {
    const begin = hash3(lane, phase, 5) % pool.length;
    stack.push(ID.get(pool[(begin + (local % 4)) % pool.length]));
  }
  const grain = Math.floor(i / GRAIN);
  if (hash3(lane, grain >> 1, 6) % 100 < 35) stack.push(ID.get(pick(LEAF, hash3(lane, grain >> 2, 7))));
  if (inIrq(lane, i)) {
    const into = i % IRQ_EVERY;
    stack.push(ID.get("el1_irq"));
    if (into >= 128 && into < 896) stack.push(ID.get("gic_handle_irq"));
    if (into >= 256 && into < 768) stack.push(ID.get(pick(KERNEL.slice(3, 8), hash3(lane, i >> 16, 8))));
  }
  return stack;
}

function inIrq(lane, i) {
  return i % IRQ_EVERY < IRQ_LENGTH && hash3(lane, Math.floor(i / IRQ_EVERY), 9) % 3 === 0;
}

export function exceptionAt(lane, i) {
  return i % IRQ_EVERY === 0 && inIrq(lane, i);
}

/** After some blocks, trace is lost. */
function gapBehind(lane, block) {
  return hash3(lane, block, 10) % 9 === 0;
}

export function gapAt(lane, i) {
  return i > 0 && i % BLOCK === 0 && gapBehind(lane, i / BLOCK - 1);
}

function privilegeAt(lane, i) {
  if (inIrq(lane, i)) return 1;
  const block = Math.floor(i / BLOCK);
  if (hash3(lane, block, 11) % 17 === 0) return 2;
  return hash3(lane, block, 1) % 10 < 6 ? 0 : 1;
}

export function timeOf(lane, i) {
  return lane * 500000 + Math.floor(i / BLOCK) * PERIOD + (i % BLOCK);
}

/** The last instruction at or before a time. */
export function insnAt(lane, time) {
  const t = Math.max(0, time - lane * 500000);
  return Math.floor(t / PERIOD) * BLOCK + Math.min(BLOCK - 1, Math.floor(t % PERIOD));
}

const SAMPLES = 24;

/** The two most frequent functions etc. of instructions [from, to), from samples. */
function summarise(lane, from, to) {
  const n = Math.min(SAMPLES, to - from);
  const counts = new Map();
  const privilege = [0, 0, 0, 0];
  let [least, most] = [255, 0];
  for (let k = 0; k < n; k++) {
    const i = from + Math.floor(((k + 0.5) * (to - from)) / n);
    const stack = stackAt(lane, i);
    const fn = stack[stack.length - 1];
    counts.set(fn, (counts.get(fn) ?? 0) + 1);
    privilege[privilegeAt(lane, i)]++;
    least = Math.min(least, stack.length);
    most = Math.max(most, stack.length);
  }
  const top = [...counts].sort((a, b) => b[1] - a[1]);
  const share = (k) => (top[k] ? Math.round((255 * top[k][1]) / n) : 0);
  return {
    fn: top[0] ? top[0][0] + 1 : 0, share: share(0), fn2: top[1] ? top[1][0] + 1 : 0,
    share2: share(1), distinct: Math.round(Math.log2(Math.max(1, counts.size))),
    privilege: privilege.map((p) => Math.round((255 * p) / n)), least, most,
    branches: to - from === 1 ? (branchAt(lane, from) ? 255 : 0) : 35 + (hash(top[0]?.[0] ?? 0) % 40),
  };
}

function branchAt(lane, i) {
  return hash3(lane, i, 12) % 6 === 0;
}

function exceptions(lane, from, to) {
  const first = Math.ceil(from / IRQ_EVERY);
  const last = Math.ceil(to / IRQ_EVERY);
  if (last - first > 64) return Math.round((last - first) / 3);
  let n = 0;
  for (let k = first; k < last; k++) if (exceptionAt(lane, k * IRQ_EVERY)) n++;
  return n;
}

/** One bucket of a lane: the instructions that it has so far on this axis. */
export function bucket(lane, axis, from, width, insns) {
  const timed = axis === "time";
  const a = timed ? insnFrom(lane, from) : from;
  const b = Math.min(insns, timed ? insnFrom(lane, from + width) : from + width);
  const out = {
    insns: Math.max(0, b - a), coverage: 0, fn: 0, share: 0, fn2: 0, share2: 0, distinct: 0, page: 0,
    privilege: [0, 0, 0, 0], branches: 0, events: 0, eventCount: 0, flags: 0, least: 0, most: 0,
  };
  if (timed) {
    const t0 = from - lane * 500000;
    const first = Math.max(0, Math.floor((t0 - BLOCK - IDLE / 2) / PERIOD));
    const last = Math.min(Math.floor(insns / BLOCK) - 1, Math.floor((t0 + width) / PERIOD), first + 40);
    for (let block = first; block <= last; block++) {
      const start = block * PERIOD + BLOCK;
      if (gapBehind(lane, block) && start < t0 + width && start + IDLE / 2 > t0) out.flags |= 2;
    }
  } else {
    const first = Math.max(1, Math.ceil(from / BLOCK));
    for (let block = first; block * BLOCK < Math.min(b, from + 64 * BLOCK); block++) {
      if (gapBehind(lane, block - 1)) out.flags |= 2;
    }
  }
  if (b <= a) return out;
  Object.assign(out, summarise(lane, a, b));
  out.coverage = timed ? Math.max(1, Math.min(255, Math.round((255 * (b - a)) / width))) : 255;
  out.page = 0xffff000008080 + out.fn;
  out.eventCount = exceptions(lane, a, b);
  out.events = out.eventCount > 0 ? 1 : 0;
  if (hash3(lane, Math.floor(a / 100000), 13) % 40 === 0) {
    out.events |= 8;
    out.eventCount++;
  }
  return out;
}

function insnFrom(lane, time) {
  const t = time - lane * 500000;
  if (t <= 0) return 0;
  return Math.floor(t / PERIOD) * BLOCK + Math.min(BLOCK, Math.floor(t % PERIOD));
}

const TEXTS = ["ldr x0, [x1, #16]", "add x2, x2, #1", "stp x29, x30, [sp, #-32]!", "cmp x0, #0",
  "mov x19, x0", "ldrb w3, [x4], #1", "and x5, x5, #0xff", "str x1, [x2, x3, lsl #3]", "nop",
  "madd x0, x1, x2, x3"];
const BRANCHES = ["b.ne", "cbz x0,", "b.lo", "tbnz w1, #3,", "bl"];

export function addressOf(id) {
  return 0xffff000008080000n + BigInt(id) * 0x400n;
}

export function hex(address) {
  return `0x${address.toString(16).padStart(16, "0")}`;
}

export function insnRow(lane, i) {
  const stack = stackAt(lane, i);
  const fn = stack[stack.length - 1];
  const pc = addressOf(fn) + BigInt((i % 128) * 4);
  const h = hash(fn, i % 128);
  const events = [];
  if (gapAt(lane, i)) events.push("gap overflow");
  if (exceptionAt(lane, i)) events.push("exception irq 14");
  return {
    insn: i, pc: hex(pc), encoding: (h | 0x10000000).toString(16).padStart(8, "0").slice(-8),
    text: branchAt(lane, i) ? `${pick(BRANCHES, h)} ${hex(pc - 64n)}` : pick(TEXTS, h),
    function: NAMES[fn], mode: `el${privilegeAt(lane, i)}.ns.a64`, time: timeOf(lane, i), events,
  };
}

export function slices(lane, axis, from, to, insns) {
  const timed = axis === "time";
  const a = timed ? insnFrom(lane, from) : from;
  const b = Math.min(insns, timed ? insnFrom(lane, to) : to);
  const where = (i) => (timed ? timeOf(lane, i) : i);
  const out = [];
  const open = [];
  const close = (depth, i) => {
    while (open.length > depth) {
      const slice = open.pop();
      slice.to = timed ? timeOf(lane, i - 1) + 1 : i;
      if (out.length < 5000) out.push(slice);
    }
  };
  // A long range is sampled, as the server does: calls too short to be sampled are left out.
  const step = GRAIN * Math.max(1, Math.ceil((b - a) / (1024 * GRAIN)));
  for (let i = Math.floor(a / step) * step; i < b && out.length <= 4096; i += step) {
    const stack = stackAt(lane, i);
    let same = 0;
    while (same < open.length && same < stack.length && open[same].function === stack[same]) same++;
    // Leaf functions and interrupt handlers are entered anew each time.
    close(same, i);
    for (let depth = same; depth < stack.length; depth++) {
      open.push({ depth, from: where(i), to: 0, function: stack[depth], name: NAMES[stack[depth]] });
    }
  }
  close(0, b);
  return {
    slices: out.slice(0, 4096).map(({ depth, from: first, to: end, name }) => ({ depth, from: first, to: end, name })),
    truncated: step > GRAIN || out.length > 4096,
  };
}

const FUNCTION_REACH = 2 ** 24; // distance from a position in which functions are searched for
const EVENT_REACH = 2 ** 28;

/** The contents of a search: a kind of event, a function's name, an address. */
function wanted({ q, event, call }) {
  if (event !== undefined) return { kinds: event.split(",") };
  const text = q?.replace(/^event:/, "") ?? "";
  if (["gap", "exception", "software"].includes(text)) return { kinds: [text] };
  const name = call ?? text.replace(/^call:/, "");
  if (ID.has(name)) return { id: ID.get(name) };
  const address = /^0x[0-9a-f]+/.exec(text)?.[0];
  return address ? { id: Number((BigInt(address) - addressOf(0)) / 0x400n) } : {};
}

function* hitsOf(lane, what, from, to) {
  if (what.kinds?.includes("gap")) {
    for (let i = Math.max(1, Math.ceil(from / BLOCK)) * BLOCK; i < to; i += BLOCK) if (gapAt(lane, i)) yield [i, "gap overflow"];
  }
  if (what.kinds?.includes("exception")) {
    for (let i = Math.ceil(from / IRQ_EVERY) * IRQ_EVERY; i < to; i += IRQ_EVERY) if (exceptionAt(lane, i)) yield [i, "exception irq 14"];
  }
  if (what.id === undefined) return;
  let before = -1;
  for (let i = Math.floor(from / GRAIN) * GRAIN; i < to; i += GRAIN) {
    const stack = stackAt(lane, i);
    const fn = stack[stack.length - 1];
    if (fn === what.id && before !== fn && i >= from) yield [i, NAMES[fn]];
    before = fn;
  }
}

/** Search all lanes as the server does: rare things everywhere, the rest within reach. */
export function find(streams, query) {
  const what = wanted(query);
  const near = streams.findIndex((s) => s.name === query.near);
  const at = Number(query.at ?? -1);
  if (query.from !== undefined) streams = streams.map((s) => ({ ...s, insns: Math.min(s.insns, Number(query.to)) }));
  const time = near >= 0 ? timeOf(near, at) : 0;
  const gaps = what.kinds?.join() === "gap";
  const reach = gaps ? Infinity : what.kinds ? EVENT_REACH : FUNCTION_REACH;
  const hits = [];
  streams.forEach((s, lane) => {
    const here = near < 0 ? 0 : insnAt(lane, time);
    for (const [i, text] of hitsOf(lane, what, Math.max(0, here - reach), Math.min(s.insns, here + reach))) {
      hits.push({
        insn: i, time: timeOf(lane, i), has_time: true, byte: Math.floor(i / 9), pc: hex(addressOf(what.id ?? 0)),
        stream: s.name, lane, text,
      });
    }
  });
  const order = (a, b) => a.time - b.time || a.lane - b.lane || a.insn - b.insn;
  hits.sort(order);
  const mark = { time, lane: near, insn: at };
  const backward = query.backward === "1";
  const told = near < 0 ? hits : hits.filter((h) => (backward ? order(h, mark) < 0 : order(h, mark) > 0));
  if (backward) told.reverse();
  const limit = Number(query.limit ?? 100);
  const first = told[0];
  return {
    what: query.q ?? query.event ?? `calls of ${query.call}`, hits: told.slice(0, limit), more: told.length > limit,
    ...(query.count === "1" ? { total: hits.length, before: first ? hits.filter((h) => order(h, first) < 0).length : 0 } : {}),
  };
}

/** What is worth a look. */
export function extremes([s]) {
  const at = IRQ_EVERY * 3;
  const told = { stream: s.name, at, has_time: true, time_unit_ns: true };
  return {
    left_out: 0,
    extremes: [{ ...told, kind: "interrupt", name: NAMES[1], exception: 14, length: 48000, usual: 12000 },
      { ...told, kind: "gap", name: "", reasons: ["overflow"], length: 30000, usual: 0, time_from: timeOf(0, at), time_to: timeOf(0, at) + 30000 }],
  };
}

/** The number of hits in each column of a range. */
export function hits(streams, name, q, axis, from, to, columns) {
  const { hits: found } = find(streams, { q, limit: Infinity });
  const own = found.filter((h) => h.stream === name).map((h) => (axis === "time" ? h.time : h.insn));
  const end = Math.min(to, 1 + own.reduce((most, at) => Math.max(most, at), from));
  const out = new Array(columns).fill(0);
  for (const at of own) if (at >= from && at < end) out[Math.floor(((at - from) * columns) / (end - from))]++;
  return { from, to: end, total: out.reduce((a, b) => a + b, 0), hits: out };
}

export function stats(lane, from, to) {
  const n = Math.min(4096, to - from);
  const counts = new Map();
  for (let k = 0; k < n; k++) {
    const stack = stackAt(lane, from + Math.floor(((k + 0.5) * (to - from)) / n));
    const fn = stack[stack.length - 1];
    counts.set(fn, (counts.get(fn) ?? 0) + 1);
  }
  const scaled = (c) => Math.round((c * (to - from)) / n);
  const total = to - from;
  return {
    insns: total,
    functions: [...counts].sort((a, b) => b[1] - a[1]).map(([id, c]) => ({
      id, name: NAMES[id], pc: hex(addressOf(id)), insns: scaled(c), calls: Math.ceil(scaled(c) / 300),
    })),
    mix: { branch: Math.round(total * 0.17), taken: Math.round(total * 0.11), load: Math.round(total * 0.24), store: Math.round(total * 0.12) },
    items: { exception: exceptions(lane, from, to) },
    gaps: { overflow: Math.floor(to / 4e7) },
    modes: { "el0.ns.a64": Math.round(total * 0.6), "el1.ns.a64": Math.round(total * 0.4) },
  };
}

/** Own times of functions between two times: each instruction takes as long as the others. */
export function ownTimes(lane, from, to) {
  const { insns, functions } = stats(lane, insnAt(lane, from), insnAt(lane, to) + 1);
  const own = (n) => Math.round(((to - from) * n) / insns);
  return {
    about: { ran: to - from }, all: functions.length,
    functions: functions.map((f) => ({
      name: f.name, pc: f.pc, calls: f.calls, self: f.insns, self_time: { value: own(f.insns), least: own(f.insns), most: own(f.insns) },
    })),
  };
}

/** Profile of the whole of a stream by own time: functions without the tree of calls. */
export function profile(lane, insns) {
  const { about, functions } = ownTimes(lane, timeOf(lane, 0), timeOf(lane, Math.max(0, insns - 1)));
  return {
    weight: "time", ran: about.ran, insns, truncated: true, nodes: [],
    functions: functions.map((f) => ({ name: f.name, pc: f.pc, self: f.self_time.value, total: f.self_time.value, calls: f.calls, finished: f.calls, length: 0 })),
  };
}
