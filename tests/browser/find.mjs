// SPDX-License-Identifier: MIT
// Searching from the cursor, in all lanes: the page goes to and counts what the server finds.
import assert from "node:assert/strict";
import { accessible, inBothThemes, moved, open, place, settle } from "./harness.mjs";

export async function findChecks(suite, { server, trace }) {
  const base = server.replace(/\/$/, "");
  const root = `${base}/api/v1/traces/${trace}`;
  const ask = async (page, params) => (await page.request.get(`${root}/find?${new URLSearchParams(params)}`)).json();
  const text = (page, selector, wanted) => page.waitForFunction(
    ([s, w]) => document.querySelector(s)?.textContent.replace(/\s+/g, " ").includes(w), [selector, wanted]);
  const search = async (page, what) => {
    await page.fill(".search input", what);
    await page.press(".search input", "Enter");
    await page.waitForFunction(() => !/^…?$/.test(document.querySelector(".search .hits").textContent));
  };
  const spot = async (page) => {
    const { at, query } = await place(page);
    return { insn: at, stream: query.get("lane") ?? "cs.10" };
  };
  const grouped = (n) => n.toLocaleString("en-US");

  await suite.check("find: a time, as it is written on the page, on both axes", {}, async (page) => {
    await open(page, base, `#/trace/${trace}?lane=cs.10`);
    const { streams } = await (await page.request.get(root)).json();
    const stream = streams.find((s) => s.name === "cs.10");
    const zero = Math.min(...streams.map((s) => Number(s.time_first))); // what is written counts from it
    const time = Math.floor((Number(stream.time_first) + Number(stream.time_last)) / 2);
    const located = await (await page.request.get(`${root}/streams/cs.10/locate?unit=time&at=${time}`)).json();
    const go = async (what, wanted) => {
      await page.fill(".search input", what);
      await page.press(".search input", "Enter");
      await page.waitForFunction((at) => new RegExp(`[?&]at=${at}(&|$)`).test(location.hash), wanted);
    };
    const since = time - zero;
    await go(`${since / 1e6} ms`, located.insn);
    await go("#0", 0);
    // Later than the last one: as the last one.
    const last = await (await page.request.get(`${root}/streams/cs.10/locate?unit=time&at=${stream.time_last}`)).json();
    await go("999,999 s", Math.min(last.insn, stream.insns - 1));
    await go(`${String(Math.floor(since / 1e6))}.${String(since % 1e6).padStart(6, "0").replace(/(...)/, "$1 ")} ms`, located.insn);
    await page.focus("#timeline");
    await page.keyboard.press("KeyT");
    await page.waitForFunction(() => /axis=time/.test(location.hash));
    await go("1ns", Math.max(zero + 1, Number(stream.time_first)));
    await go(`${since}ns`, time);
    await page.fill(".search input", "5 ticks");
    await page.press(".search input", "Enter");
    await text(page, ".tabpanel", "The times of this trace are in ns");
  });

  await suite.check("find: from the cursor, in all lanes, counted", {}, async (page) => {
    await open(page, base, `#/trace/${trace}?lane=cs.12&at=1000000`);
    await search(page, "CRC32_UPD");
    const all = await ask(page, { q: "CRC32_UPD", near: "cs.12", at: 1000000, limit: 3, count: 1 });
    assert.match(all.what, /calls of crc32_update/);
    await text(page, ".tabpanel", `calls of crc32_update: ${grouped(all.total)}`);
    await text(page, ".search .hits", `${grouped(all.before + 1)} of ${grouped(all.total)}`);
    assert.deepEqual(await spot(page), { insn: all.hits[0].insn, stream: all.hits[0].stream });
    assert.match(await page.textContent("#hits [aria-selected=true]"), new RegExp(all.hits[0].stream));
    await page.press(".search input", "Enter");
    await text(page, ".search .hits", `${grouped(all.before + 2)} of ${grouped(all.total)}`);
    assert.deepEqual(await spot(page), { insn: all.hits[1].insn, stream: all.hits[1].stream });
    await page.press(".search input", "Shift+Enter");
    await text(page, ".search .hits", `${grouped(all.before + 1)} of ${grouped(all.total)}`);
    await inBothThemes(page, "find");
    // From any cursor position.
    await page.evaluate(() => { location.hash = location.hash.replace(/at=\d+/, "at=200").replace(/lane=[^&]*&?/, ""); });
    await text(page, "#status", "insn 200");
    await page.focus("#timeline");
    await page.keyboard.press("Shift+KeyN");
    await text(page, "[role=status]", "That was the first hit.");
    await page.keyboard.press("KeyN");
    const [first] = (await ask(page, { q: "crc32_update", near: "cs.10", at: 200, limit: 1 })).hits;
    await text(page, ".search .hits", "of");
    await moved(page, 200);
    assert.deepEqual(await spot(page), { insn: first.insn, stream: first.stream });
  });

  await suite.check("find: what people write", {}, async (page, troubles) => {
    await open(page, base, `#/trace/${trace}`);
    const functions = await (await page.request.get(`${root}/functions`)).json();
    const f = functions.find((x) => x.name === "crc32_update");
    const [row] = await (await page.request.get(`${root}/streams/cs.10/insns?from=5000&count=1`)).json();
    const bare = f.pc.replace("0x", "");
    for (const what of [`crc32_update+0x8`, bare, `0x${bare}-${(Number(f.pc) + 16).toString(16)}`, "op:ret", `opcode:${row.encoding}`, "gap", "event:exception"]) {
      await search(page, what);
      const { total, what: said } = await ask(page, { q: what, limit: 1, count: 1 });
      assert.ok(total > 0, what);
      await text(page, ".tabpanel", `${said}: ${grouped(total)}`);
    }
    await page.fill(".search input", "#777");
    await page.press(".search input", "Enter");
    await text(page, "#status", "insn 777");
    for (const wrong of ["+++", "event:nothing"]) {
      await page.fill(".search input", wrong);
      await page.press(".search input", "Enter");
      await page.waitForSelector(".tabpanel .trouble");
      await search(page, "gap");
    }
    troubles.length = 0; // the browser logs refused requests
  });

  await suite.check("find: ticks show all hits, however many, over the whole view", {}, async (page) => {
    const stats = await (await page.request.get(`${root}/stats`)).json();
    const { name, calls } = stats.functions.filter((f) => f.pc !== "0x0").sort((a, b) => b.calls - a.calls)[0];
    assert.ok(calls > 2000, `${name}: ${calls} calls`);
    const { streams } = await (await page.request.get(root)).json();
    const names = streams.filter((s) => s.insns > 0).map((s) => s.name).slice(0, 16);
    for (const axis of ["insn", "time"]) {
      await open(page, base, `#/trace/${trace}?axis=${axis}`);
      await search(page, `call:${name}`);
      await text(page, ".tabpanel", `: ${grouped((await ask(page, { q: `call:${name}`, limit: 1, count: 1 })).total)}`);
      await settle(page);
      await page.keyboard.press("Escape"); // the offers
      const told = await (await page.request.get(`${root}/hits?${new URLSearchParams({ streams: names.join(","), q: `call:${name}`, axis, columns: 100 })}`)).json();
      assert.equal(Object.values(told.streams).reduce((n, s) => n + s.total, 0), calls);
      // Which pixels of a row have the colour of hits, in every lane of the timeline and at the foot of the overview.
      const ticks = await page.evaluate(() => {
        const colour = getComputedStyle(document.documentElement).getPropertyValue("--hit").trim();
        const of = (selector, first, last) => {
          const canvas = document.querySelector(selector);
          const { data } = canvas.getContext("2d").getImageData(0, first(canvas), canvas.width, last(canvas) - first(canvas));
          const seen = new Array(canvas.width).fill(false);
          for (let i = 0; i < data.length; i += 4) {
            const css = `#${[0, 1, 2].map((k) => data[i + k].toString(16).padStart(2, "0")).join("")}`;
            if (css === colour && data[i + 3] === 255) seen[(i / 4) % canvas.width] = true;
          }
          return seen;
        };
        return { lanes: of("canvas.over", () => 24, (c) => c.height), map: of("canvas.minimap", (c) => c.height - 5, (c) => c.height) };
      });
      const all = (await (await page.request.get(root)).json()).streams;
      const extent = axis === "insn" ? [0, Math.max(...all.map((s) => s.insns))]
        : [Math.min(...all.filter((s) => s.has_time).map((s) => Number(s.time_first))), Math.max(...all.filter((s) => s.has_time).map((s) => Number(s.time_last)))];
      for (const [where, seen] of Object.entries(ticks)) {
        const missing = [];
        for (const s of Object.values(told.streams)) {
          s.hits.forEach((n, i) => {
            const at = (k) => ((Number(s.from) + ((s.to - s.from) * k) / 100 - extent[0]) / (extent[1] - extent[0])) * seen.length;
            if (n > 0 && !seen.slice(Math.max(0, Math.floor(at(i)) - 1), Math.ceil(at(i + 1)) + 2).includes(true)) missing.push(i);
          });
        }
        assert.deepEqual(missing, [], `${axis}, ${where}: columns without a tick`);
      }
    }
  });

  await suite.check("find: an unknown name offers those like it", {}, async (page) => {
    await open(page, base, `#/trace/${trace}`);
    await page.fill(".search input", "crc32_updaet");
    await page.press(".search input", "Enter");
    await page.waitForSelector(".tabpanel .buttons .action");
    await accessible(page);
    await page.click(".tabpanel .buttons .action");
    assert.equal(await page.inputValue(".search input"), "crc32_update");
    await text(page, ".tabpanel", "calls of crc32_update");
  });

  await suite.check("find: keys go to gaps, events and calls of this function, on both axes", {}, async (page) => {
    for (const axis of ["insn", "time"]) {
      const start = await (await page.request.get(`${root}/streams/cs.10/locate?unit=insn&at=3000000`)).json();
      let at = axis === "insn" ? start.insn : Number(start.time);
      await open(page, base, `#/trace/${trace}?axis=${axis}&at=${at}`);
      let every = true;
      const steps = async (key, params, name) => {
        const { near, ...rest } = params;
        const got = every ? await ask(page, { ...params, count: 1, limit: 1 })
          : await (await page.request.get(`${root}/streams/${near}/find?${new URLSearchParams({ ...rest, count: 1, limit: 1 })}`)).json();
        if (got.hits.length === 0) {
          await page.keyboard.press(key);
          await text(page, "[role=status]", "No ");
          return undefined;
        }
        await page.keyboard.press(key);
        // Of several at one position, the first in search direction.
        const which = params.backward ? got.before + got.hits.length : got.before + 1;
        await text(page, "#status", `${grouped(which)} of ${grouped(got.total)}`);
        const hit = got.hits[0];
        at = (await place(page)).at;
        assert.equal(at, axis === "insn" ? hit.insn : Number(hit.time), `${axis}, ${name}`);
        return hit;
      };
      await page.focus("#timeline");
      await page.keyboard.press("KeyJ");
      await text(page, "[role=status]", "all lanes");
      const near = { near: "cs.10", at: start.insn };
      const gap = await steps("KeyG", { event: "gap", ...near }, "gap");
      assert.ok(gap);
      const back = await steps("Shift+KeyG", { event: "gap", near: gap.stream, at: gap.insn, backward: 1 }, "gap back");
      const from = back ?? gap;
      const event = await steps("]", { event: "exception,event,software,gap,note", near: from.stream, at: from.insn }, "event");
      const before = await steps("[", { event: "exception,event,software,gap,note", near: event.stream, at: event.insn, backward: 1 }, "event back");
      // In the cursor's lane unless told otherwise.
      await page.keyboard.press("KeyJ");
      await text(page, "[role=status]", "selected lane");
      every = false;
      const near_ = { near: before.stream, at: before.insn };
      const own = await steps("]", { event: "exception,event,software,gap,note", ...near_ }, "event of the lane");
      assert.equal(own.stream ?? before.stream, before.stream);
      await steps("[", { event: "exception,event,software,gap,note", near: before.stream, at: own.insn, backward: 1 }, "event back in the lane");
    }
    await open(page, base, `#/trace/${trace}?at=3000000`);
    await page.focus("#timeline");
    const [row] = await (await page.request.get(`${root}/streams/cs.10/insns?from=3000000&count=1`)).json();
    const name = row.function.replace(/\+0x.*/, "");
    const next = await (await page.request.get(`${root}/streams/cs.10/find?${new URLSearchParams({ call: name, at: 3000000, limit: 1, count: 1 })}`)).json();
    await page.keyboard.press("KeyC");
    await text(page, "#status", `${grouped(next.before + 1)} of ${grouped(next.total)}`);
    assert.deepEqual(await spot(page), { insn: next.hits[0].insn, stream: next.hits[0].stream });
  });

  await suite.check("find: events and gaps as a list, bound to the cursor both ways", {}, async (page) => {
    await open(page, base, `#/trace/${trace}?panel=events&kinds=gap`);
    const gaps = await ask(page, { event: "gap", limit: 100, count: 1 });
    await text(page, ".tabpanel .buttons", String(gaps.total));
    const rows = page.locator("#events .gridbody [role=row]");
    assert.equal(await rows.count(), gaps.total);
    await rows.nth(2).click();
    assert.deepEqual(await spot(page), { insn: gaps.hits[2].insn, stream: gaps.hits[2].stream });
    assert.equal(await rows.nth(2).getAttribute("aria-selected"), "true");
    await page.focus("#timeline");
    await page.keyboard.press("KeyG");
    await page.waitForFunction(() => document.querySelectorAll("#events .gridbody [role=row]")[3].getAttribute("aria-selected") === "true");
    await page.focus("#events");
    await page.keyboard.press("ArrowUp");
    await page.waitForFunction(() => document.querySelectorAll("#events .gridbody [role=row]")[2].getAttribute("aria-selected") === "true");
    await inBothThemes(page, "events");
    await page.selectOption("select[aria-label='Kinds of events']", "exception");
    const exceptions = await ask(page, { event: "exception", limit: 1, count: 1 });
    await text(page, ".tabpanel .buttons", grouped(exceptions.total));
    assert.equal((await place(page)).query.get("kinds"), "exception");
    // Names stand for addresses, which the tooltip has.
    await page.waitForFunction(() => document.querySelector("#events .gridbody [role=gridcell]:last-child span")?.title.startsWith("exception"));
    await settle(page);
    const shown = await rows.evaluateAll((all) => all.slice(0, 6).map((r) => [...r.querySelectorAll("[role=gridcell]")].map((c) => c.textContent).concat(r.querySelector("[role=gridcell]:last-child span").title)));
    for (const [stream, at, what, title] of shown) {
      const { rows: [[fn, pc]] } = await (await page.request.post(`${root}/sql`, { data: `SELECT function, pc FROM event WHERE stream = '${stream}' AND position = ${at.replace(/,/g, "")} AND kind = 'exception'` })).json();
      assert.ok(what.endsWith(` in ${fn}`) && !/[0-9a-f]{8}/.test(what), what);
      assert.ok(title.endsWith(`${Number(pc).toString(16)} <${fn}>`), title);
    }
    // Scrolling further fetches more of them.
    const last = () => page.evaluate(() => Number(document.querySelector("#events .gridbody").lastElementChild.getAttribute("aria-rowindex")));
    if (exceptions.total > 2000) {
      const before = await page.evaluate(() => document.querySelector("#events .gridbody").clientHeight);
      await page.evaluate(() => { const e = document.querySelector("#events"); e.scrollTop = e.scrollHeight; });
      await page.waitForFunction((h) => document.querySelector("#events .gridbody").clientHeight > h, before);
    }
    assert.ok(await last() > 10);
    assert.ok(await rows.count() < 90, "only what is in sight exists");
    await settle(page);
  });
}
