// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import test from "node:test";
import { decodePlace, emptyPlace, encodePlace, type Place } from "../src/url.ts";
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
  for (let i = 0; i < 1000; i++) {
    const from = whole();
    const select = whole();
    const place: Place = {
      trace: "rig-1.2_3", axis: random() < 0.5 ? "insn" : "time", from, to: from + 2000 + whole(),
      lane: random() < 0.5 ? undefined : "cs.10", at: random() < 0.5 ? undefined : whole(),
      select: random() < 0.5 ? undefined : [select, select + 1 + whole()],
      find: random() < 0.5 ? "" : "event:gap & ?#%", panel: random() < 0.5 ? "insns" : "stats",
      follow: random() < 0.7 ? undefined : random() < 0.5 ? 0 : 10000,
    };
    assert.deepEqual(decodePlace(encodePlace(place)), place, `seed ${seed} round ${i}`);
  }
});

test("deep zoom keeps fractions, wide views do not", () => {
  const place = { ...emptyPlace("t"), from: 100.123456, to: 108.654321 };
  const back = decodePlace(encodePlace(place));
  assert.ok(Math.abs(back.from! - place.from) < 0.01 && Math.abs(back.to! - place.to) < 0.01);
  assert.match(encodePlace({ ...place, from: 0.4, to: 1e9 }), /from=0&to=1000000000$/);
});

test("what cannot be read is as if absent", () => {
  for (const hash of ["#/trace/%E0%A4%A", "#/nonsense", "#trace/x", "#/trace/"]) {
    assert.equal(decodePlace(hash).trace, undefined, hash);
  }
  const place = decodePlace("#/trace/t?from=9&to=3&at=x&select=5-2&panel=zzz&follow=-1&axis=q");
  assert.deepEqual(place, emptyPlace("t"));
});
