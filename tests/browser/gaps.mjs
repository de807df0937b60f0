// SPDX-License-Identifier: MIT
// What is missing, and when: a trace in which every instruction and time is known, at several zoom levels and on both
// axes, near zero and beyond the precision of a double.
import assert from "node:assert/strict";
import { Etm } from "./etm.mjs";
import { cssColour, inBothThemes, open, place, settle, shot } from "./harness.mjs";

/** [from, to) by time, and what happens there. */
const TRUTH = [[1000, 2000, "running"], [2000, 5000, "lost"], [5000, 6000, "running"],
  [6000, 9000, "untraced"], [9000, 10000, "running"]];
export const FAR = 2n ** 63n;
/** Instructions before which trace is missing. */
const LOST_AT = 440;
const OFF_AT = 880;

export function missingTrace(begin = 0n) {
  const at = (t) => begin + BigInt(t);
  return new Etm().on().time(at(1000)).run(400).time(at(2000)).run(40).overflow().run(40)
    .time(at(5000)).run(400).time(at(6000)).on().time(at(9000)).run(400).time(at(10000));
}

/** It waits from 2000 to 5000, at instruction 399. */
export function waitingTrace() {
  return new Etm().on().time(1000n).run(400).time(2000n).time(5000n).run(400).time(6000n);
}

/**
 * The appearance of columns in the middle of the single lane's function band, which fills the
 * window.
 */
export async function columns(page, all) {
  const { named, seen } = await page.evaluate((xs) => {
    const style = getComputedStyle(document.documentElement);
    const canvas = document.querySelector("canvas.base");
    const height = document.querySelector(".head").offsetHeight - 24;
    const column = (x) => {
      const { data } = canvas.getContext("2d").getImageData(x, 40, 1, height);
      return Array.from({ length: height }, (_, i) =>
        `#${((data[4 * i] << 16) | (data[4 * i + 1] << 8) | data[4 * i + 2]).toString(16).padStart(6, "0")}`);
    };
    return {
      named: Object.fromEntries(["lost", "density", "ground", "stripe"].map((n) => [n, style.getPropertyValue(`--${n}`).trim()])),
      seen: xs.map((x) => column(Math.round(x))),
    };
  }, all);
  return seen.map((column) => {
    const band = column.slice(0, 28);
    if (band.filter((c) => c === named.lost).length >= 4) return "lost";
    if (new Set(band).size === 1 && band[0] !== named.ground && band[0] !== named.stripe) return "running";
    return column.filter((c) => c === named.density).length === 1 ? "untraced" : `unclear: ${[...new Set(column)].join(" ")}`;
  });
}

export const truth = (t) => TRUTH.find(([from, to]) => t >= from && t < to)?.[2];

export async function gapChecks(suite, { server, trace, far, full, waits }) {
  const base = server.replace(/\/$/, "");
  await suite.check("gaps: a click in a wait shows what waits, and for how long", {}, async (page) => {
    await open(page, base, `#/trace/${waits}?axis=time&from=1000&to=6000&panel=insns`);
    const plot = await page.locator("#timeline").boundingBox();
    for (const [part, insn] of [[0.15, /(29|30)\d/], [0.3, /399/], [0.7, /399/], [0.9, /(59|60)\d/]]) {
      await page.mouse.click(plot.x + plot.width * part, plot.y + 50);
      await page.waitForFunction((wanted) => new RegExp(wanted).test(document.querySelector(".insn.here")?.textContent ?? ""), insn.source);
      await settle(page);
      const details = await page.textContent(".details");
      if (insn.source === "399") assert.match(details, /Thenwaits for 3\.0\d* µs, until 4\.000 µs/);
      else assert.doesNotMatch(details, /Then/);
    }
  });

  const at = (id, begin) => async (page, from, to) => {
    const text = (t) => String(BigInt(t) + begin);
    await open(page, base, `#/trace/${id}?axis=time&from=${text(from)}&to=${text(to)}&panel=none`);
    return page.evaluate(() => document.querySelector(".plot").clientWidth);
  };

  for (const [id, begin, what] of [[trace, 0n, ""], [far, FAR, ", beyond 2^63"]]) {
    const see = at(id, begin);
    await suite.check(`gaps: lost, running and not traced by time${what}`, {}, async (page) => {
      const width = await see(page, 1000, 10000);
      const parts = TRUTH.flatMap(([from, to, state]) => [0.06, 0.2, 0.8, 0.94].map((part) => [from + (to - from) * part, state]));
      await inBothThemes(page, `gaps-${begin === 0n ? "near" : "far"}`, async () => {
        const seen = await columns(page, parts.map(([t]) => ((t - 1000) / 9000) * width));
        parts.forEach(([t, state], i) => assert.equal(seen[i], state, `at ${t}`));
      });
    });

    await suite.check(`gaps: each edge is where it was, at six zooms${what}`, {}, async (page) => {
      for (const edge of [2000, 5000, 6000, 9000]) {
        for (const span of [6000, 1600, 400, 100, 32, 10]) {
          const width = await see(page, edge - span / 2, edge + span / 2);
          const beside = [-40, -6, 6, 40];
          const seen = await columns(page, beside.map((by) => width / 2 + by));
          beside.forEach((by, i) => assert.equal(seen[i], truth(edge + (by / width) * span), `${edge}, ${span} in view, ${by} px`));
        }
      }
    });

    await suite.check(`gaps: a place in the gap is told with its width and reason${what}`, {}, async (page) => {
      await open(page, base, `#/trace/${id}?axis=time&from=${begin + 1000n}&to=${begin + 11000n}&at=${begin + 3000n}`);
      await page.waitForFunction(() => /overflow/.test(document.querySelector("#status").textContent));
      const text = await page.textContent("#status");
      assert.match(text, /trace lost/);
      assert.match(text, begin === 0n ? /2\.000 µs.*≤ 3\.00 µs, overflow/s : /2,000 ticks.*≤ 3\.00 k ticks, overflow/s);
      await page.waitForSelector(".insn.here");
      // Executed last before it, and what comes after the gap.
      assert.match(await page.textContent(".insn.here"), /439/);
      await page.waitForFunction((text) => new RegExp(text).test(document.querySelector(".details").textContent),
        begin === 0n ? "Then.*overflow.*after 3\\.00 µs, until 4\\.000 µs" : "Then.*overflow.*after 3,000 ticks, until 4,000 ticks");
      await page.click(".clock");
      const own = begin === 0n ? /5\.000 µs/ : /9,223,372,036,854,780,808 ticks/;
      await page.waitForFunction((time) => new RegExp(time).test(document.querySelector(".details").textContent), own.source);
      assert.match(await page.textContent("#status"), begin === 0n ? /3\.000 µs/ : /9,223,372,036,854,778,808 ticks/);
      assert.equal((await place(page)).query.get("at"), String(begin + 3000n));
    });
  }

  await suite.check("gaps: lengths by reason are those of the truth", {}, async (page) => {
    await open(page, base, `#/trace/${trace}`);
    await page.waitForFunction(() => /overflow\s*1\s*≤ 3\.00 µs\s*≤ 3\.00 µs/.test(document.querySelector("table.lengths")?.textContent ?? ""));
    const ask = async (from, to) => (await (await page.request.get(`${base}/api/v1/traces/${trace}/streams/cs.10/stats?from=${from}&to=${to}`)).json()).lost;
    assert.deepEqual(await ask(0, LOST_AT - 10), {});
    assert.deepEqual(await ask(LOST_AT - 10, LOST_AT + 10), { overflow: { n: 1, total: 3000, longest: 3000, longest_at: 2000 } });
    assert.deepEqual(await ask(LOST_AT + 10, LOST_AT + 20), {});
    // The longest one is shown when it is clicked on.
    await page.click("table.lengths tr:has-text('overflow') td button");
    await page.waitForFunction(() => /axis=time/.test(location.hash) && /select=2000-5000/.test(location.hash));
    await settle(page);
    const { from, to } = await place(page);
    assert.ok(from < 2000 && from >= -1000 && to > 5000 && to <= 8000, `${from} to ${to}`);
  });

  await suite.check("gaps: no label of the ruler is cut off", { fresh: true }, async (page) => {
    await page.addInitScript(() => {
      window.labels = [];
      const fill = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function noted(text, x, y, ...more) {
        if (this.canvas.matches?.("canvas.base") && y === 12) window.labels.push([text, x, x + this.measureText(text).width]);
        return fill.call(this, text, x, y, ...more);
      };
    });
    for (let i = 0; i < 12; i++) { // at every distance from the edges
      const width = await at(trace, 0n)(page, 1000 + 37 * i, 9000 + 37 * i);
      const labels = await page.evaluate(() => window.labels.splice(0));
      assert.ok(labels.length > 2, "labels");
      for (const [text, from, to] of labels) assert.ok(from >= 0 && to <= width, `${text} from ${from} to ${to} of ${width}`);
    }
  });

  await suite.check("gaps: by instructions they lie between two of them", {}, async (page) => {
    for (const [before, colour] of [[LOST_AT, "lost"], [OFF_AT, "muted"]]) {
      for (const span of [10, 24, 60]) {
        await open(page, base, `#/trace/${trace}?from=${before - span / 2}&to=${before + span / 2}&panel=none`);
        const css = await cssColour(page, colour);
        const found = await page.evaluate(({ css: wanted, h }) => {
          const canvas = document.querySelector("canvas.base");
          const { data } = canvas.getContext("2d").getImageData(0, h, canvas.width, 1);
          const out = [];
          for (let x = 0; x < canvas.width; x++) {
            const c = `#${((data[4 * x] << 16) | (data[4 * x + 1] << 8) | data[4 * x + 2]).toString(16).padStart(6, "0")}`;
            if (c === wanted) out.push(x);
          }
          return { out, width: canvas.width };
        }, { css, h: 50 });
        assert.deepEqual(found.out, [Math.round(found.width / 2)], `in front of ${before}, ${span} in view`);
      }
    }
    await shot(page, "gaps-insns");
  });

  await suite.check("gaps: no label is cut by a gap", { fresh: true }, async (page) => {
    await page.addInitScript(() => {
      window.labels = [];
      const fill = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function noted(text, x, y, ...more) {
        if (this.canvas.matches?.("canvas.base")) window.labels.push([text, x, x + this.measureText(text).width, y]);
        return fill.call(this, text, x, y, ...more);
      };
    });
    const lane = "cs.12";
    const { hits: gaps } = await (await page.request.get(`${base}/api/v1/traces/${full}/streams/${lane}/find?event=gap&limit=1000`)).json();
    assert.ok(gaps.length > 1);
    let labels = 0;
    for (const [i, span] of [60, 400, 4000, 40000].entries()) {
      const from = Math.max(0, gaps[i % gaps.length].insn - span / 2);
      await page.emulateMedia({ colorScheme: "light" });
      await open(page, base, `#/trace/${full}?axis=insn&from=${from}&to=${from + span}&panel=none&show=states`);
      await page.evaluate(() => { window.labels.length = 0; });
      await page.emulateMedia({ colorScheme: "dark" }); // draws it anew
      await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
      await settle(page);
      const { all, width } = await page.evaluate((name) => {
        const head = [...document.querySelectorAll(".head")].find((e) => e.dataset.id.endsWith(name));
        const [top, bottom] = [head.offsetTop, head.offsetTop + head.offsetHeight];
        return { all: window.labels.filter(([, , , y]) => y > Math.max(24, top) && y < bottom), width: document.querySelector(".plot").clientWidth };
      }, lane);
      labels += all.length;
      for (const gap of gaps) {
        const x = Math.round(((gap.insn - from) / span) * width);
        for (const [text, x0, x1] of all) assert.ok(x1 <= x - 1 || x0 >= x + 2, `${text} from ${x0} to ${x1}, a gap at ${x}, ${span} in view`);
      }
      await shot(page, `gaps-labels-${span}`);
    }
    assert.ok(labels > 10, `${labels} labels`);
  });
}
