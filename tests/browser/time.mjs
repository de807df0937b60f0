// SPDX-License-Identifier: MIT
// Time first: the axis that a trace opens on, where its times count from, and what links say of both.
import assert from "node:assert/strict";
import { accessible, inBothThemes, open, place, settle } from "./harness.mjs";

async function json(page, base, path) {
  const reply = await page.request.get(`${base}/api/v1/${path}`, { ignoreHTTPSErrors: true });
  assert.equal(reply.status(), 200, path);
  return reply.json();
}

/** As the page writes a time in ns: "9.334 847 ms". */
function written(ns) {
  const digits = String(ns);
  const unit = Math.min(3, Math.floor((digits.length - 1) / 3));
  if (unit === 0) return `${digits} ns`;
  const at = digits.length - 3 * unit;
  return `${Number(digits.slice(0, at)).toLocaleString("en-US")}.${digits.slice(at).match(/\d{3}/g).join(" ")} ${["ns", "µs", "ms", "s"][unit]}`;
}

/** Open a trace by a link that says no axis. */
async function bare(page, base, hash) {
  await page.goto(`${base}/${hash}`);
  await page.waitForSelector("#timeline");
  await settle(page);
}

const axisOf = (page) => page.textContent(".segmented button[aria-pressed=true]");
const told = (page, name) => page.evaluate((n) => [...document.querySelectorAll(".details div")]
  .find((d) => d.querySelector("dt").textContent === n)?.querySelector("dd").textContent, name);

export async function timeChecks(suite, { server, trace, cortex, late }) {
  const base = server.replace(/\/$/, "");

  await suite.check("time: it is the axis, unless instructions were chosen for the trace or a link says so", {}, async (page) => {
    await bare(page, base, `#/trace/${trace}`);
    assert.equal(await axisOf(page), "Time");
    await page.click(".segmented button:has-text('Instructions')");
    await page.waitForFunction(() => location.hash.includes("axis=insn"));
    await page.goto(`${base}/#/`);
    await page.waitForSelector("table.traces");
    await bare(page, base, `#/trace/${trace}`);
    assert.equal(await axisOf(page), "Instructions", "it is remembered");
    await bare(page, base, `#/trace/${trace}?axis=time`);
    assert.equal(await axisOf(page), "Time", "a link says so");
    await page.focus("#timeline");
    for (const axis of ["insn", "time"]) {
      await page.keyboard.press("KeyT");
      await page.waitForFunction((a) => location.hash.includes(`axis=${a}`), axis);
    }
    // Each press acts on the one before, even if its place on the axis is still looked for.
    await page.keyboard.press("KeyZ");
    await settle(page);
    for (const [presses, axis] of [[2, "Time"], [3, "Instructions"], [1, "Time"]]) {
      await page.evaluate((n) => {
        for (let i = 0; i < n; i++) document.querySelector("#timeline").dispatchEvent(new KeyboardEvent("keydown", { code: "KeyT", key: "t", bubbles: true }));
      }, presses);
      await settle(page);
      assert.equal(await axisOf(page), axis, `after ${presses} quick presses`);
      assert.ok((await place(page)).hash.includes(`axis=${axis === "Time" ? "time" : "insn"}`));
    }
    await page.goto(`${base}/#/`);
    await page.waitForSelector("table.traces");
    await bare(page, base, `#/trace/${trace}`);
    assert.equal(await axisOf(page), "Time", "chosen again");
    // Links without an axis have instructions.
    await bare(page, base, `#/trace/${trace}?from=1000&to=9000&at=5000`);
    assert.equal(await axisOf(page), "Instructions");
    assert.equal(await told(page, "Instruction"), "5,000");
    // What is told by instructions may be shown on the usual axis.
    await bare(page, base, `#/trace/${trace}?axis=usual&lane=cs.10&from=1000&to=9000&at=5000`);
    await page.waitForFunction(() => location.hash.includes("axis=time"));
    const path = `traces/${trace}/streams/cs.10`;
    const [from, at, to] = await Promise.all([1000, 5000, 9000].map(async (n) => (await json(page, base, `${path}/locate?unit=insn&at=${n}`)).time));
    const there = await place(page);
    assert.deepEqual([there.from, there.at, there.to], [from, at, to]);
    // Each lane that executes has times.
    await bare(page, base, `#/trace/${cortex}`);
    assert.equal(await axisOf(page), "Time");
  });

  await suite.check("time: a call under the pointer tells the bounds of its duration", {}, async (page) => {
    const { streams } = await json(page, base, `traces/${trace}`);
    const stream = streams.find((x) => x.has_time && Number(x.insns) > 0);
    const path = `traces/${trace}/streams/${stream.name}`;
    const call = await json(page, base, `${path}/call?at=${Math.floor(Number(stream.insns) / 2)}`);
    const [from, to] = [Number(call.time_from), Number(call.time_to)];
    const air = Math.max(20, Math.ceil((to - from) / 4));
    await open(page, base, `#/trace/${trace}?axis=time&lane=${stream.name}&from=${from - air}&to=${to + air}&panel=none`);
    const box = await page.locator("#timeline").boundingBox();
    const label = await page.getByText("Call stack", { exact: true }).first().boundingBox();
    await page.mouse.move(box.x + box.width / 2, label.y + label.height / 2 + 15 * Number(call.depth));
    const [least, most] = [Number(call.time_least), Number(call.time_most)];
    const pattern = most - least <= (to - from) / 100 ? "^[^…~]+$" : most - least <= (to - from) / 10 ? "~" : "…|more than";
    await page.waitForFunction(([name, p]) => document.querySelector(".tip b")?.textContent === name && new RegExp(p).test(document.querySelector(".tip span").textContent), [call.name, pattern]);
  });

  await suite.check("time: what is written counts from the trace's start, or is its clock's; links are absolute", {}, async (page) => {
    const { streams } = await json(page, base, `traces/${late}`);
    const zero = Math.min(...streams.map((s) => Number(s.time_first)));
    const { time, insn } = await json(page, base, `traces/${late}/streams/cs.10/locate?unit=insn&at=500`);
    assert.ok(zero > 0 && time > zero);
    const hash = `#/trace/${late}?axis=time&at=${time}&from=${time - 500}&to=${time + 500}`;
    await open(page, base, hash);
    const where = () => page.textContent("#status .cell[title=Position]");
    await page.waitForFunction(() => /\d/.test(document.querySelector(".details")?.textContent ?? ""));
    assert.equal(await where(), written(time - zero));
    await inBothThemes(page, "time");
    await page.getByRole("button", { name: "Clock" }).click();
    await page.waitForSelector(".clock[aria-pressed=true]");
    assert.equal(await where(), written(time));
    const now = await place(page);
    assert.deepEqual([now.at, now.from, now.to], [time, time - 500, time + 500]);
    await accessible(page);
    await page.reload();
    await page.waitForSelector(".clock[aria-pressed=true]");
    assert.equal(await where(), written(time), "it stays so");
    // The same place by instructions, with what is selected.
    const to = await json(page, base, `traces/${late}/streams/cs.10/locate?unit=insn&at=${insn + 200}`);
    await open(page, base, `${hash}&select=${time}-${to.time}`);
    await page.focus("#timeline");
    await page.keyboard.press("KeyT");
    await page.waitForFunction(() => location.hash.includes("axis=insn"));
    const there = await place(page);
    const [first, last] = there.query.get("select").split("-").map(Number);
    const exact = await Promise.all([time, to.time].map((at) => json(page, base, `traces/${late}/streams/cs.10/locate?unit=time&at=${at}`)));
    assert.deepEqual([first, last], exact.map((p) => p.insn));
    assert.ok(there.from < first && there.to > first);
  });

  await suite.check("time: Z fits what is chosen, then what is around it; Back and Forward go through the jumps", {}, async (page) => {
    const path = `traces/${trace}/streams/cs.10`;
    const { hits } = await json(page, base, `${path}/find?call=checksum&limit=2`);
    const inner = await json(page, base, `${path}/call?at=${hits[1].insn + 1}`);
    const outer = await json(page, base, `${path}/call?at=${hits[1].insn + 1}&depth=${inner.depth - 1}`);
    const { streams } = await json(page, base, `traces/${trace}`);
    const own = streams.find((s) => s.name === "cs.10");
    await open(page, base, `#/trace/${trace}?lane=cs.10&from=0&to=4000000&at=${inner.from + 1}&panel=calls`);
    const start = await place(page);
    await page.focus("#timeline");
    const shows = async ([from, to]) => {
      // With a little space at each side, at least eight instructions.
      await page.waitForFunction(([a, b]) => {
        const query = new URLSearchParams(location.hash.split("?")[1]);
        const [x, y] = [Number(query.get("from")), Number(query.get("to") ?? Infinity)];
        return x <= a && y >= b && y - x < Math.max(10, (b - a) * 1.3);
      }, [from, to]);
      return place(page);
    };
    await page.keyboard.press("KeyZ");
    const first = await shows([inner.from, inner.to]);
    await page.keyboard.press("KeyZ");
    const second = await shows([outer.from, outer.to]);
    assert.ok(second.to - second.from > first.to - first.from);
    for (let i = 0; i < 20 && (await place(page)).to < own.insns; i++) {
      const { hash } = await place(page);
      await page.getByRole("button", { name: "Fit", exact: true }).click();
      await page.waitForFunction((was) => location.hash !== was, hash);
    }
    await page.getByRole("button", { name: "Fit", exact: true }).click();
    await page.waitForFunction(() => /whole lane is in view/.test(document.querySelector("[role=status]").textContent));
    // A selection comes first.
    await open(page, base, `#/trace/${trace}?lane=cs.10&from=0&to=4000000&select=20000-30000&panel=calls`);
    await page.focus("#timeline");
    await page.keyboard.press("KeyZ");
    const chosen = await shows([20000, 30000]);
    // What moves by hand is no jump, and Back restores it, too.
    await page.keyboard.press("KeyD");
    const panned = await place(page);
    assert.ok(panned.from > chosen.from);
    await page.getByRole("button", { name: "Whole" }).click();
    await page.waitForFunction(() => !/from=/.test(location.hash));
    await page.keyboard.press("/");
    await page.keyboard.type("#12345\n");
    await page.waitForFunction(() => /at=12345/.test(location.hash));
    await settle(page);
    const back = async (hash) => {
      await page.goBack();
      await page.waitForFunction((h) => location.hash === h, hash);
      await settle(page);
      assert.equal((await place(page)).hash, hash, "and it stays");
    };
    const jumped = (await place(page)).hash;
    await page.goBack();
    await page.waitForFunction(() => !/at=/.test(location.hash));
    assert.equal((await place(page)).from, undefined, "the whole trace");
    await back(panned.hash);
    await page.goForward();
    await page.waitForFunction(() => !/from=/.test(location.hash));
    await page.goForward();
    await page.waitForFunction((h) => location.hash === h, jumped);
    assert.ok(start.hash !== jumped);
  });

  await suite.check("time: zooming by wheel, fingers, keys and buttons, wherever the pointer is", {}, async (page) => {
    const hash = `#/trace/${trace}?lane=cs.10&from=1000000&to=2000000&at=1250000&panel=none`;
    const wide = ({ from, to }) => to - from;
    await open(page, base, hash);
    const plot = await page.locator(".plot").boundingBox();
    const share = ({ from, to }, at) => (at - from) / (to - from);
    // A wheel over the names, as over the lanes: with Ctrl it zooms, at the cursor.
    const turn = (selector, how) => page.evaluate(([s, w]) => document.querySelector(s).dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, ...w })), [selector, how]);
    await turn(".heads", { deltaY: -200, ctrlKey: true });
    let now = await place(page);
    assert.ok(wide(now) < 500000 && Math.abs(share(now, 1250000) - 0.25) < 0.01, now.hash);
    await turn(".heads", { deltaX: 100 });
    const moved = await place(page);
    assert.ok(moved.from > now.from && Math.abs(wide(moved) - wide(now)) < 2);
    // A touchpad's pinch tells the logarithm of the zoom.
    await open(page, base, hash);
    await turn("#timeline", { deltaY: 10, ctrlKey: true, clientX: plot.x + plot.width / 2, clientY: plot.y + 50 });
    now = await place(page);
    assert.ok(Math.abs(wide(now) / 1000000 - Math.exp(0.1)) < 0.01, now.hash);
    // Two fingers: what is under each of them stays there.
    await open(page, base, hash);
    const finger = (type, id, x) => page.evaluate(([t, i, at, y]) => document.querySelector("#timeline").dispatchEvent(new PointerEvent(t, {
      bubbles: true, pointerId: i, pointerType: "touch", button: t === "pointermove" ? -1 : 0, clientX: at, clientY: y,
    })), [type, id, plot.x + plot.width * x, plot.y + 60]);
    await page.evaluate(() => { document.querySelector("#timeline").setPointerCapture = () => {}; });
    await finger("pointerdown", 11, 0.4);
    await finger("pointerdown", 12, 0.6);
    for (const x of [0.65, 0.7, 0.75, 0.8]) await finger("pointermove", 12, x);
    await finger("pointerup", 11, 0.4);
    await finger("pointermove", 12, 0.9);
    await finger("pointerup", 12, 0.9);
    now = await place(page);
    assert.ok(Math.abs(wide(now) - 500000) < 2000, now.hash);
    assert.ok(Math.abs(share(now, 1400000) - 0.4) < 0.01 && Math.abs(share(now, 1600000) - 0.8) < 0.01, now.hash);
    assert.equal(now.at, 1250000, "it is no click");
    // Where the cursor was set by a command, keys zoom there though the pointer rests elsewhere.
    await open(page, base, hash);
    await page.mouse.move(plot.x + plot.width * 0.9, plot.y + 60);
    await page.keyboard.press("/");
    await page.keyboard.type("#1300000\n");
    await page.waitForFunction(() => /at=1300000/.test(location.hash));
    await page.focus("#timeline");
    const before = await place(page);
    for (let i = 0; i < 5; i++) await page.keyboard.press("KeyW");
    now = await place(page);
    assert.ok(wide(now) < wide(before) && Math.abs(share(now, 1300000) - share(before, 1300000)) < 0.01, now.hash);
    await page.mouse.move(plot.x + plot.width * 0.8, plot.y + 60);
    const there = now.from + 0.8 * wide(now);
    for (let i = 0; i < 5; i++) await page.keyboard.press("KeyW");
    now = await place(page);
    assert.ok(Math.abs(share(now, there) - 0.8) < 0.01, "and at the pointer once that moved");
    // By words.
    await page.getByRole("button", { name: "Zoom out" }).click();
    const out = await place(page);
    assert.ok(Math.abs(wide(out) / wide(now) - 2) < 0.01);
    await page.getByRole("button", { name: "Zoom in" }).click();
    assert.ok(Math.abs(wide(await place(page)) / wide(now) - 1) < 0.01);
    await accessible(page);
  });

  await suite.check("time: the field takes what people type, and says in words what it cannot", {}, async (page) => {
    const path = `traces/${trace}/streams/cs.10`;
    const { streams } = await json(page, base, `traces/${trace}`);
    const zero = Math.min(...streams.map((s) => Number(s.time_first)));
    await open(page, base, `#/trace/${trace}?axis=time&lane=cs.10`);
    const field = page.getByLabel("In view: from – to");
    const type = async (text) => {
      await page.focus("#timeline");
      await page.keyboard.press("KeyR");
      await page.keyboard.type(text);
      await page.keyboard.press("Enter");
    };
    const seen = async (text, from, to) => {
      await type(text);
      await page.waitForFunction(([a, b]) => {
        const query = new URLSearchParams(location.hash.split("?")[1]);
        return query.get("from") === a && query.get("to") === b;
      }, [String(from), String(to)]);
    };
    const shown = (text) => page.waitForFunction((t) => document.querySelector(".viewfield input").value === t, text); // from the next frame on
    await seen("1.5ms:2ms", zero + 1500000, zero + 2000000);
    await shown("1.5 ms – 2 ms");
    assert.equal(await page.evaluate(() => document.activeElement.id), "timeline");
    await seen("3ms:+200us", zero + 3000000, zero + 3200000);
    await seen("3.1 – 3.15 ms", zero + 3100000, zero + 3150000);
    const at = (n) => json(page, base, `${path}/locate?unit=insn&at=${n}`);
    await seen("100K:200K", (await at(100000)).time, (await at(200000)).time);
    await page.goBack();
    await page.waitForFunction((from) => location.hash.includes(`from=${from}`), zero + 3100000);
    // A function: its next call, fitted.
    const cursor = await at(150000);
    await open(page, base, `#/trace/${trace}?axis=insn&lane=cs.10&at=${cursor.insn}`);
    const { hits: [hit] } = await json(page, base, `${path}/find?q=checksum&at=${cursor.insn}&limit=1`);
    const call = await json(page, base, `${path}/call?at=${hit.insn}`);
    await type("checksum");
    // First the cursor is there, then the call, for which the server is asked, is fitted.
    await page.waitForFunction((n) => location.hash.includes(`at=${n}`) && /[?&]from=/.test(location.hash), hit.insn);
    const now = await place(page);
    assert.ok(now.from <= call.from && now.to >= call.to && now.to - now.from < Math.max(10, 1.3 * (call.to - call.from)), now.hash);
    await seen("1,000 – 3K", 1000, 3000);
    for (const [text, words] of [["59x", /no time .* no instruction/], ["chcksum", /Nothing is called “chcksum”. Did you mean checksum/], ["2ms:1ms", /not after the begin/], ["5 ticks", /are in ns/]]) {
      await type(text);
      await page.waitForFunction((w) => new RegExp(w).test(document.querySelector(".viewfield .trouble")?.textContent ?? ""), words.source);
      assert.equal(await field.getAttribute("aria-invalid"), "true");
      assert.deepEqual([(await place(page)).from, (await place(page)).to], [1000, 3000]);
    }
    await inBothThemes(page, "viewfield");
    await page.keyboard.press("Escape");
    await shown("1,000 – 3,000");
    assert.equal(await page.locator(".viewfield .trouble").count(), 0);
    await type("all");
    await page.waitForFunction(() => !/from=/.test(location.hash));
  });

  await suite.check("time: statistics of a range of time are by time, with as many digits as their bounds allow", {}, async (page) => {
    const path = `traces/${trace}/streams/cs.10`;
    const { time: from } = await json(page, base, `${path}/locate?unit=insn&at=1000000`);
    const to = from + 50000;
    const truth = await json(page, base, `${path}/functions?unit=time&from=${from}&to=${to}&limit=50`);
    await open(page, base, `#/trace/${trace}?axis=time&lane=cs.10&select=${from}-${to}&panel=stats`);
    await page.waitForFunction(() => /by own time/.test(document.querySelector("table.hot caption")?.textContent ?? ""));
    const rows = await page.locator("table.hot tbody tr").evaluateAll((all) => all.map((r) => [...r.children].map((c) => c.textContent.trim())));
    assert.deepEqual(rows.map(([name]) => name), truth.functions.map((f) => f.name || f.pc));
    rows.slice(0, 10).forEach(([, , time, share], i) => {
      const { value, least, most } = truth.functions[i].self_time;
      assert.ok(Math.abs(parseFloat(share.replace("< ", "")) - (100 * value) / truth.about.ran) < 0.11, `${share} of ${value}`);
      if (most - least > value / 100) assert.match(time, /^~ \d{1,3}(\.\d)? /);
      const [, number, unit] = /([\d.]+) (ns|µs|ms|s)$/.exec(time);
      const told = Number(number) * { ns: 1, µs: 1e3, ms: 1e6, s: 1e9 }[unit];
      assert.ok(Math.abs(told - value) <= value / 2, `${time} for ${value}`);
    });
    assert.equal(await told(page, "Length"), "50.0 µs");
    await inBothThemes(page, "statistics-time");
    await page.focus("#timeline");
    await page.keyboard.press("KeyT");
    await page.waitForFunction(() => location.hash.includes("axis=insn"));
    await page.getByRole("button", { name: "Measure the selection" }).click();
    await page.waitForFunction(() => document.querySelector("table.hot caption")?.textContent === "Hottest functions");
  });
}
