// SPDX-License-Identifier: MIT
// The small modules: LRU, keys, numbers, colours, search text, following.
import assert from "node:assert/strict";
import test from "node:test";
import { follow } from "../src/view/follow.ts";
import { bounded, bytes, duration, estimated, exactTime, grouped, percent, short, shorterNames, withNames } from "../src/base/format.ts";
import { BINDINGS, GROUPS, match, shownKeys } from "../src/view/keys.ts";
import { Lru } from "../src/base/lru.ts";
import { executed, extentOf, privilegeName, readFound, readFunctions, readInsns, readStats, readTrace, unitName } from "../src/data/model.ts";
import { functionColour } from "../src/view/palette.ts";
import type { View } from "../src/base/scale.ts";
import { Swatches } from "../src/view/swatches.ts";
import { distance, nearNames, parseSearch, suggestions } from "../src/view/search.ts";
import { poles } from "../src/timeline/flags.ts";

test("names of C++ and Rust become shorter", () => {
  assert.deepEqual(shorterNames("main"), ["main"]);
  assert.deepEqual(shorterNames("std::map<int, std::pair<a, b> >::find(int const&)"), [
    "std::map<int, std::pair<a, b> >::find(int const&)", "std::map<…>::find(int const&)", "std::map<…>::find(…)",
    "find(…)",
  ]);
  assert.deepEqual(shorterNames("a::operator<<(b<c>)"), [
    "a::operator<<(b<c>)", "a::operator<<(…)", "operator<<(…)",
  ]);
  assert.deepEqual(shorterNames("core::fmt::write"), ["core::fmt::write", "write"]);
  assert.deepEqual(shorterNames("f()"), ["f()"]);
  assert.deepEqual(shorterNames("((<<"), ["((<<", "(…)"]);
});

test("the name of an event's place stands for its address", () => {
  assert.equal(withNames("exception irq 53 00000000080001a4 <main+0x10>"), "irq 53 in main+0x10");
  assert.equal(withNames("exception svc 1 ffff000008081234 <std::map<int, a<b>>::at+0x4>"), "svc 1 in std::map<int, a<b>>::at+0x4");
  assert.equal(withNames("exception irq 53 00000000080001a4"), "irq 53 at 080001a4");
  assert.equal(withNames("software itm 0 66 text"), "itm 0 “f”");
  assert.equal(withNames("write 0x5 by main at 0x20000100, 4 bytes: ticks"), "write 0x5 by main at 0x20000100, 4 bytes: ticks");
});

test("LRU forgets what was not used for longest", () => {
  const dropped: string[] = [];
  const lru = new Lru<string, number>(2, (key) => dropped.push(key));
  lru.set("a", 1);
  lru.set("b", 2);
  lru.get("a");
  lru.set("c", 3);
  assert.deepEqual(dropped, ["b"]);
  assert.deepEqual([...lru.keys()], ["a", "c"]);
  lru.peek("a");
  lru.set("d", 4);
  assert.equal(lru.has("a"), false);
  lru.set("c", 5);
  assert.equal(lru.size, 2);
  assert.equal(lru.get("c"), 5);
});

const press = (code: string, key: string, more = {}): Parameters<typeof match>[0] =>
  ({ code, key, shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, ...more });

test("letters go by place: W on an AZERTY keyboard is Z there", () => {
  assert.equal(match(press("KeyW", "z"))?.command, "zoomIn");
  assert.equal(match(press("KeyA", "q"))?.command, "panLeft");
});

test("modifiers tell keys apart, and leave the browser's own alone", () => {
  assert.equal(match(press("KeyF", "f"))?.command, "follow");
  assert.equal(match(press("KeyF", "f", { ctrlKey: true }))?.command, "search");
  assert.equal(match(press("KeyN", "N", { shiftKey: true }))?.command, "hitBack");
  assert.equal(match(press("KeyN", "n"))?.command, "hitForward");
  assert.equal(match(press("Slash", "?", { shiftKey: true }))?.command, "help");
  assert.equal(match(press("KeyS", "s", { ctrlKey: true })), undefined);
  assert.equal(match(press("KeyD", "d", { altKey: true })), undefined);
  assert.equal(match(press("KeyQ", "x")), undefined);
});

test("every command is on the help page, once, with its keys", () => {
  const helped = GROUPS.flatMap((g) => g.commands.map((c) => c.command));
  assert.equal(new Set(helped).size, helped.length);
  assert.deepEqual(new Set(helped), new Set(BINDINGS.map((b) => b.command)));
  for (const command of helped) assert.ok(shownKeys(command).length > 0);
});

test("numbers", () => {
  assert.equal(grouped(1234567), "1,234,567");
  assert.equal(grouped(123), "123");
  assert.deepEqual([0, 999, 1000, 12345, 999999, 1e9, 2.5e12].map(short),
    ["0", "999", "1.00 k", "12.3 k", "1.00 M", "1.00 G", "2.50 T"]);
  assert.deepEqual([0, 1023, 1024, 1536, 5e9].map(bytes), ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "4.7 GiB"]);
  assert.deepEqual([bounded(167, 0, 5e4, duration), bounded(1e6, 99e4, 105e4, duration), bounded(5, 5, Infinity, duration),
    bounded(100, 95, 105, duration), bounded(100, 94, 105, duration)],
  ["0 ns … 50.0 µs", "~ 1.0 ms", "more than 5 ns", "~ 100 ns", "94 ns … 105 ns"]);
  assert.equal(bounded(1234567, 1230000, 1240000, duration), "1.23 ms");
  assert.deepEqual([estimated(3456, 0, 171000, duration), estimated(3456, 3300, 3500, duration), estimated(3456, 3455, 3457, duration), estimated(970, 0, 2000, duration)], ["~ 3 µs", "~ 3.5 µs", "3.46 µs", "~ 1 µs"]);
  assert.deepEqual([5, 1500, 2.5e6, 61e9, 200e9, 8000e9].map((ns) => duration(ns)),
    ["5 ns", "1.50 µs", "2.50 ms", "61.0 s", "3 min 20 s", "2 h 13 min"]);
  assert.deepEqual([0, 812, 1500, 1802347, 1234567890, 12345678901234n].map(exactTime),
    ["0 ns", "812 ns", "1.500 µs", "1.802 347 ms", "1.234 567 890 s", "12,345.678 901 234 s"]);
  assert.deepEqual([percent(1, 3), percent(1, 1), percent(1, 1e6), percent(0, 0)], ["33.3 %", "100 %", "< 0.1 %", "–"]);
});

test("pixels are the colour's bytes in memory order", () => {
  const { css, rgba } = functionColour("main", "light");
  const memory = new Uint8Array(Uint32Array.of(rgba).buffer);
  assert.equal(css, `#${[...memory.subarray(0, 3)].map((b) => b.toString(16).padStart(2, "0")).join("")}`);
  assert.equal(memory[3], 255);
});

test("what is typed into the search box", () => {
  assert.deepEqual(parseSearch("  "), { kind: "none" });
  assert.deepEqual(parseSearch("#1,234"), { kind: "goto", insn: 1234 });
  for (const [text, ns] of [["12.5 ms", 12500000n], ["1,000.802 347 ms", 1000802347n], ["7ns", 7n], ["2s", 2000000000n], ["1.5us", 1500n],
    ["3 µs", 3000n], ["9223372036854775807 ns", 9223372036854775807n], ["0.0000000019 s", 1n]] as const) {
    assert.deepEqual(parseSearch(text), { kind: "time", at: ns, ns: true }, text);
  }
  assert.deepEqual(parseSearch("1,000 ticks"), { kind: "time", at: 1000n, ns: false });
  for (const other of ["ms", "5", "0x5s", "5 mss", "irqs"]) assert.equal(parseSearch(other).kind, "query", other);
  assert.deepEqual(parseSearch(" main+0x10 "), { kind: "query", text: "main+0x10" });
  for (const wrong of ["#", "#x"]) assert.equal(parseSearch(wrong).kind, "error", wrong);
});

test("names that someone may have meant", () => {
  assert.equal(distance("memcpy", "memcpy", 2), 0);
  assert.equal(distance("memcyp", "memcpy", 2), 1, "swapped");
  assert.equal(distance("mmcpy", "memcpy", 2), 1);
  assert.equal(distance("", "memcpy", 9), 6);
  assert.equal(distance("abcdef", "uvwxyz", 2), 3, "too far");
  const names = ["memcpy", "memset", "main", "__memcpy", "strcpy", "schedule"];
  assert.deepEqual(nearNames("memcyp", names, 2), ["__memcpy", "memcpy"]);
  assert.deepEqual(nearNames("call:shedule+0x10", names, 5), ["schedule"]);
  assert.deepEqual(nearNames("x", names, 5), []);
  assert.deepEqual(nearNames("something else", names, 5), []);
});

test("suggestions: what begins with it before what contains it", () => {
  const names = ["do_memcpy", "memcpy", "memset", "main"];
  assert.deepEqual(suggestions("mem", names, 9), ["memcpy", "memset", "do_memcpy"]);
  assert.deepEqual(suggestions("event:e", names, 9), ["event:exception", "event:event"]);
  assert.deepEqual(suggestions("0x1", names, 9), []);
});

test("following ends with the edge in view, keeping the zoom or showing the newest", () => {
  const extent = { first: 0, last: 1e6 };
  let view: View = { axis: "insn", from: 899000, to: 901000 };
  assert.equal(follow(view, extent, 0, true).to - 1e6 < 2000, true);
  view = { axis: "insn", from: 998500, to: 999500 };
  for (let i = 0; i < 200; i++) view = follow(view, extent, 0, true);
  assert.ok(view.to > 1e6 && view.to < 1e6 + 60, String(view.to));
  assert.ok(Math.abs(view.to - view.from - 1000) < 1);
  const newest = follow(view, extent, 5000, false);
  assert.ok(newest.from < 995001 && newest.to > 1e6);
});

test("what the server tells is read leniently", () => {
  const t = readTrace({
    id: "a", state: "LIVE", created_ns: "1767225600000000000", tile_base: { time: 12 },
    streams: [{ name: "cs.10", insns: "5000", has_time: true, time_first: 100, time_last: 900 }, null],
  });
  assert.equal(t.state, "live");
  assert.equal(t.createdMs, 1767225600000);
  assert.deepEqual(t.tileBase, { insn: 0, time: 12 });
  assert.deepEqual(extentOf(t, "insn"), { first: 0, last: 5000 });
  assert.deepEqual(extentOf(t, "time"), { first: 100, last: 901 });
  for (const nonsense of [undefined, null, 7, "x", [], {}]) {
    assert.deepEqual(readTrace(nonsense).streams, []);
    assert.deepEqual(readFunctions(nonsense), []);
    assert.deepEqual(readFound(nonsense).hits, []);
    assert.deepEqual(readInsns(nonsense), []);
    assert.deepEqual(readStats(nonsense).functions, []);
  }
});

test("counts from 2^53 on come as texts", () => {
  const stats = readStats({ insns: "9007199254740992", taken: "18014398509481984", mix: { plain: "9007199254740994" } });
  assert.equal(stats.insns, 2 ** 53);
  assert.deepEqual(stats.groups.map((g) => g.rows),
    [[{ name: "plain", count: 2 ** 53 + 2 }], [{ name: "taken", count: 2 ** 54 }]]);
});

test("instructions of a trace: not software trace, and a thread's only once", () => {
  const trace = readTrace({
    id: "t",
    streams: [
      { name: "pt.0", protocol: "pt", insns: 700 }, { name: "thread.12.walk", protocol: "pt", insns: 500 },
      { name: "cs.20", protocol: "stm", insns: 30 }, { name: "di.0.1", protocol: "osd-ctm", insns: 4 },
      { name: "event.switch", protocol: "perf-events", insns: 90 },
    ],
  });
  assert.equal(executed(trace), 704);
});

test("privilege is called what the architecture calls it", () => {
  assert.deepEqual([unitName("etm4"), unitName("osd-stm"), unitName("itm")], ["insns", "records", "records"]);
  assert.deepEqual([unitName("etm4", 1), unitName("osd-ctm", 1), unitName("itm", 1), unitName("osd-ctm", 0)], ["insn", "branch", "record", "branches"]);
  assert.deepEqual([privilegeName("etm4", 1), privilegeName("pt", 3), privilegeName("osd-ctm", 0)], ["EL1", "ring 3", "U"]);
});

test("flow text becomes words, and repeats are counted", () => {
  const [row] = readInsns([{
    insn: 4, pc: "0x10", function: "main+0x1c",
    events: ["G no-image", "G no-image", "G sync 1453", "X irq 14 ffffffc000592b64", "R", "O", "M el1.ns.a64",
      "C 1 -", "S stm 41.0 1000", "V 3", "A transaction start", "plain words"],
  }]);
  assert.deepEqual([row!.fn, row!.offset], ["main", "+0x1c"]);
  assert.deepEqual(row!.events, ["gap: no-image ×2", "gap: sync (1453)", "exception irq 14", "return from exception",
    "trace on", "mode el1.ns.a64", "context 1 -", "stm 41.0: 1000", "event 3", "transaction start", "plain words"]);
});

test("what runs in two traces beside each other is alike, what runs in one only has a colour, too", () => {
  const swatches = new Swatches();
  swatches.rank(["main", "copy"]);
  assert.deepEqual(swatches.beside("copy", "dark"), swatches.of("copy", "dark"));
  assert.deepEqual(swatches.beside("other", "dark"), functionColour("other", "dark"));
  assert.notDeepEqual(swatches.of("other", "dark"), functionColour("other", "dark"));
  swatches.setHighlight("copy");
  assert.deepEqual(swatches.beside("other", "dark"), swatches.of("other", "dark"));
});

test("flags that crowd have no poles, which would hide the lane", () => {
  assert.deepEqual(poles([]), []);
  assert.deepEqual(poles([-5, 20, 28, 37, 80]), [true, false, false, true, true]);
  assert.ok(!poles(Array.from({ length: 500 }, (_, i) => 1.3 * i)).includes(true));
});
