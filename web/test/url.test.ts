// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { AS_THEY_COME } from "../src/view/arrange.ts";
import { absolute, epochOf, exact, near, since } from "../src/base/epoch.ts";
import { decodePlace, emptyPlace, encodePlace, type Place } from "../src/view/url.ts";
import { generator } from "./random.ts";

test("the list and a bare trace", () => {
  assert.equal(encodePlace(emptyPlace()), "#/");
  assert.equal(encodePlace(emptyPlace("a b/ü")), "#/trace/a%20b%2F%C3%BC");
  assert.equal(decodePlace("#/trace/a%20b%2F%C3%BC").trace, "a b/ü");
  assert.equal(decodePlace("").trace, undefined);
});

test("everything that is in view goes there and back", () => {
  const { random, seed } = generator();
  const whole = (): number => Math.floor(2 ** (random() * 50));
  const some = (): string => String(BigInt.asUintN(63, BigInt(whole()) * BigInt(whole())));
  for (let i = 0; i < 1000; i++) {
    const select = whole();
    const place: Place = {
      trace: "rig-1.2_3", axis: random() < 0.5 ? "insn" : "time", usual: false, from: some(), to: some(),
      lane: random() < 0.5 ? undefined : "cs.10", at: random() < 0.5 ? undefined : some(),
      select: random() < 0.5 ? undefined : [String(select), String(select + 1 + whole())],
      open: random() < 0.5 ? undefined : random() < 0.5 ? [] : ["cs.10", "a,b &?#%"],
      full: random() < 0.5 ? [] : ["cs.10"], show: random() < 0.5 ? [] : ["states", "counters"],
      beside: random() < 0.5 ? [] : [{ trace: "a b/&", offset: random() < 0.5 ? undefined : -5n }, { trace: "c,d", offset: random() < 0.5 ? undefined : 7n }],
      seams: random() < 0.5 ? [] : [["5", "70"], ["100", "9223372036854775808"]],
      find: random() < 0.5 ? "" : "event:gap & ?#%", panel: random() < 0.5 ? "insns" : random() < 0.5 ? "stats" : "compare",
arrangement: random() < 0.5 ? AS_THEY_COME : { order: ["b,&", "a"], hidden: ["c"], pinned: ["d=?"], folded: ["/", "/a, b/c"], only: "x & y" },
      kinds: random() < 0.5 ? "" : "gap,note", alone: random() < 0.5 ? "" : "f(&, x)", with: random() < 0.5 ? "" : "run 2/cs.10 &?#%", sql: random() < 0.5 ? "" : "SELECT 'a &?#%'\n-- more", follow: random() < 0.7 ? undefined : random() < 0.5 ? 0 : 10000,
    };
    assert.deepEqual(decodePlace(encodePlace(place)), place, `seed ${seed} round ${i}`);
  }
});

test("deep zoom keeps fractions, wide views do not, of whatever epoch", () => {
  assert.equal(exact(0n, 100.123456, 0.004), "100.123");
  assert.equal(exact(0n, 0.4, 5e5), "0");
  const epoch = epochOf(2n ** 63n + 5n, 2n ** 63n + 10n ** 9n);
  assert.ok(epoch > 0n && 2n ** 63n - epoch < 2n ** 50n);
  const at = since(epoch, String(2n ** 63n + 5n));
  assert.equal(exact(epoch, at + 0.25, 0.004), "9223372036854775813.25");
  assert.equal(exact(epoch, at + 0.99999, 0.004), "9223372036854775814");
  assert.equal(near(epoch, "9223372036854775813.25"), at + 0.25);
  assert.equal(absolute(epoch, at + 0.25), 2n ** 63n + 5n);
  assert.equal(epochOf(0n, 2n ** 63n), 0n, "too far apart");
  assert.equal(epochOf(7n, 10n ** 15n), 0n, "exact without");
});

test("what cannot be read is as if absent", () => {
  for (const hash of ["#/trace/%E0%A4%A", "#/nonsense", "#trace/x", "#/trace/"]) {
    assert.equal(decodePlace(hash).trace, undefined, hash);
  }
  const place = decodePlace("#/trace/t?from=x&to=3&at=x&select=5-2&panel=zzz&follow=-1&axis=q&seams=9-2,x,3-");
  assert.deepEqual(place, emptyPlace("t"));
});

test("positions without an axis are instructions, otherwise the trace decides", () => {
  for (const query of ["at=5", "from=1&to=2", "select=3-9"]) assert.equal(decodePlace(`#/trace/t?${query}`).axis, "insn", query);
  for (const query of ["", "?lane=cs.10", "?panel=find&find=main"]) assert.equal(decodePlace(`#/trace/t${query}`).axis, undefined, query);
  assert.equal(decodePlace("#/trace/t?axis=time&at=5").axis, "time");
  const { axis, usual } = decodePlace("#/trace/t?axis=usual&at=5");
  assert.deepEqual([axis, usual], ["insn", true]);
});
