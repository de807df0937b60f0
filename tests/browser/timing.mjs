// SPDX-License-Identifier: MIT
// Interrupts, all calls of a function by how long they took, what happened during one, and questions in SQL: compared
// with the server's answers.
import assert from "node:assert/strict";
import { accessible, inBothThemes, open, place, settle, shot } from "./harness.mjs";

const digits = (text) => Number(text.replace(/[^0-9]/g, ""));

async function json(page, base, path, init) {
  const reply = await page.request.fetch(`${base}/api/v1/${path}`, { ignoreHTTPSErrors: true, ...init });
  assert.equal(reply.status(), 200, path);
  return reply.json();
}

const sql = (page, base, trace, q) => json(page, base, `traces/${trace}/sql`, { method: "POST", data: q });

const percent = (part, whole) => (part > 0 && 1000 * part < whole ? "< 0.1 %" : `${((100 * part) / whole).toFixed(1)} %`);

const details = (page, within) => page.evaluate((s) => Object.fromEntries([...document.querySelectorAll(`${s} dl.details div`)]
  .map((d) => [d.querySelector("dt").textContent, d.querySelector("dd").textContent.trim()])), within);

export async function interruptChecks(suite, { server, trace, cortex }) {
  const base = server.replace(/\/$/, "");

  await suite.check("interrupts: each number with its count, each a jump to its worst, and what it interrupted", {}, async (page) => {
    const stream = "cs.10";
    const path = `traces/${trace}/streams/${stream}`;
    const { exceptions } = await json(page, base, `${path}/interrupts`);
    await open(page, base, `#/trace/${trace}?axis=time&lane=${stream}&panel=interrupts`);
    await page.waitForSelector("table.ints tbody tr");
    const rows = () => page.locator("table.ints").first().locator("tbody tr");
    assert.deepEqual((await rows().locator("td:nth-child(2)").allTextContents()).map(digits), exceptions.map((e) => e.entered));
    // No more digits than timestamps allow, and why.
    assert.match(await page.locator(".interrupts").textContent(), /Timestamps are [\d.]+ µs apart: shorter times are estimates/);
    assert.ok((await rows().locator("td:nth-child(3)").allTextContents()).every((t) => /^~ \d0* (ns|µs)$/.test(t)));
    await inBothThemes(page, "interrupts");
    const worst = exceptions[0];
    const call = await json(page, base, `${path}/call?at=${worst.time.longest}`);
    await rows().first().locator("button").focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction((at) => location.hash.includes(`at=${at}`), call.time_from);
    await page.waitForFunction(() => /Interrupted/.test(document.querySelector(".interrupts dl.details")?.textContent ?? ""));
    const told = await details(page, ".interrupts");
    assert.equal(told.Interrupted, call.caller);
    assert.equal(digits(told.Handled), worst.entered);
    // The selection is all that handled it, the vector and what it jumps to.
    const [from, to] = (await place(page)).query.get("select").split("-").map(Number);
    assert.equal(to - from, worst.time.max);
    await inBothThemes(page, "interrupts-worst");
    await page.locator(".interrupts dl.details dd button", { hasText: /./ }).nth(1).click(); // the longest latency
    const late = await json(page, base, `${path}/locate?unit=insn&at=${worst.latency_worst}`);
    await page.waitForFunction((at) => Math.abs(Number(new URLSearchParams(location.hash.split("?")[1]).get("at")) - at) < 30, late.time);
    // By processes the shares add up to what is known.
    const shares = await page.locator("table.ints").nth(1).locator("tbody td:nth-child(3)").allTextContents();
    const sum = shares.reduce((n, t) => n + parseFloat(t), 0);
    assert.ok(shares.length >= 3 && sum > 90 && sum < 101, String(shares));
  });

  await suite.check("interrupts: numbers and handlers are whole in a narrow panel, and modes have no empty parts", { viewport: { width: 1280, height: 800 } }, async (page) => {
    await open(page, base, `#/trace/${cortex}?axis=time&lane=cs.10&panel=interrupts`);
    await page.waitForSelector("table.ints tbody tr");
    const names = await page.locator("table.ints").first().locator("tbody th button").evaluateAll((all) => all.map((b) => [b.textContent, b.scrollWidth - b.clientWidth]));
    assert.ok(names.length >= 3 && names.every(([name]) => /\w+ \d+ \w+/.test(name)), String(names));
    assert.deepEqual(names.filter(([, over]) => over > 0), []);
    await shot(page, "interrupts-narrow");
    await open(page, base, `#/trace/${cortex}?lane=cs.10&panel=insns&at=1000`);
    await page.waitForFunction(() => /Modet32/.test(document.querySelector(".details")?.textContent ?? ""));
  });

  await suite.check("interrupts: those that a DWT reports look the same", {}, async (page) => {
    const { exceptions } = await json(page, base, `traces/${cortex}/streams/cs.01/interrupts`);
    await open(page, base, `#/trace/${cortex}?axis=time&lane=cs.01&panel=interrupts`);
    await page.waitForSelector("table.ints tbody tr");
    const rows = await page.locator("table.ints").first().locator("tbody tr").allTextContents();
    assert.equal(rows.length, exceptions.length);
    exceptions.forEach((e, i) => assert.ok(rows[i].includes(`${e.name || "exception"} ${e.number}`) && rows[i].includes(e.handler), rows[i]));
    await page.locator("table.ints tbody button").first().click();
    await page.waitForFunction(() => /Jitter/.test(document.querySelector(".interrupts dl.details")?.textContent ?? ""));
    await accessible(page);
    // What hardware reports is no text that a program wrote.
    await page.click("#tab-log");
    await page.waitForSelector("ol.log li");
    assert.ok((await page.locator("ol.log code:not(.muted)").allTextContents()).every((t) => !/^write|^at |^exception|^sleep/.test(t)));
    await shot(page, "interrupts-dwt");
  });

  await suite.check("cortex: where the processor is, who wrote a variable, what was said around a fault", {}, async (page) => {
    await open(page, base, `#/trace/${cortex}?axis=time&lane=cs.01&panel=stats`);
    await page.getByRole("button", { name: "Measure the view" }).click();
    await page.waitForSelector("table.hot tbody tr");
    assert.match(await page.locator("table.hot caption").textContent(), /a statistic/);
    const seen = await page.locator("table.hot tbody th span").allTextContents();
    assert.ok(["task_radio", "task_motor", "task_sensor"].every((name) => seen.slice(0, 4).includes(name)), String(seen));
    const shares = await page.locator("table.hot tbody td:last-child").allTextContents();
    assert.ok(Math.abs(shares.reduce((n, t) => n + parseFloat(t), 0) - 100) < 2, String(shares));
    await shot(page, "cortex-samples");
    for (const [words, what] of [["ticks", /^write 0x[0-9a-f]+ by SysTick_Handler at 0x20000100, 4 bytes: ticks$/], ["text:fault", /^itm 0 fault: /]]) {
      const { hits, total } = await json(page, base, `traces/${cortex}/find?q=${encodeURIComponent(words)}&limit=5&count=1`);
      assert.ok(hits.every((h) => what.test(h.text)), JSON.stringify(hits));
      await page.fill(".search input", words);
      await page.keyboard.press("Enter");
      await page.waitForFunction((n) => document.querySelector(".search").textContent.replace(/[^0-9a-z ]/g, "").includes(`of ${n}`), total);
      await page.waitForFunction((text) => [...document.querySelectorAll("tr, [role=option], [role=row]")].some((e) => e.textContent.includes(text)), hits[0].text);
    }
    await shot(page, "cortex-fault");
  });
}

export async function spreadChecks(suite, { server, trace }) {
  const base = server.replace(/\/$/, "");
  const stream = "cs.10";
  const path = `traces/${trace}/streams/${stream}`;

  await suite.check("spread: all calls by length, the tail is picked and stepped through", {}, async (page) => {
    const { calls: [slowest] } = await json(page, base, `${path}/calls?of=checksum&limit=1`);
    await open(page, base, `#/trace/${trace}?axis=time&lane=${stream}&at=${slowest.time_from + 1}&panel=calls`);
    await page.getByRole("button", { name: "All by length" }).click();
    await page.waitForSelector(".spread rect");
    const { rows: [[all]] } = await sql(page, base, trace, `SELECT count(*) FROM call WHERE stream = '${stream}' AND function = 'checksum' AND ended = 1`);
    const told = () => page.locator(".calls p.muted", { hasText: "calls," }).textContent();
    assert.match(await told(), new RegExp(`^${all.toLocaleString("en-US")} of ${all.toLocaleString("en-US")} calls`));
    await inBothThemes(page, "spread");
    // By hand the shortest, by keys all but them, by name the slowest.
    const box = await page.locator(".spread").boundingBox();
    await page.mouse.move(box.x + 2, box.y + 30);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2, box.y + 30, { steps: 3 });
    await page.mouse.up();
    await settle(page);
    const half = digits((await told()).split(" of ")[0]);
    assert.ok(half > 0 && half < all, `${half} of ${all}`);
    await page.getByRole("button", { name: "Slowest 1 %" }).click();
    await settle(page);
    const n = digits((await told()).split(" of ")[0]);
    assert.ok(n >= all / 100 && n < all / 10, `${n} of ${all}`);
    await page.waitForFunction((wanted) => document.querySelectorAll("table.two tbody tr").length === Math.min(10, wanted), n);
    const { rows: truth } = await sql(page, base, trace, `SELECT position FROM call WHERE stream = '${stream}' AND function = 'checksum' AND ended = 1 ORDER BY duration DESC, 1 LIMIT 10`);
    assert.deepEqual((await page.locator("table.two tbody td:nth-child(2)").allTextContents()).map(digits), truth.map(([at]) => at).slice(0, n));
    await page.getByRole("button", { name: "Slowest", exact: true }).click();
    await page.waitForSelector("table.two tr.selected");
    await page.getByRole("button", { name: "Less slow" }).click();
    const second = await json(page, base, `${path}/call?at=${truth[1][0]}`);
    await page.waitForFunction((at) => location.hash.includes(`at=${at}`), second.time_from);
    assert.equal((await place(page)).query.get("select"), `${second.time_from}-${second.time_to}`);
  });

  await suite.check("inside: whom a call called, and what the other core did meanwhile", {}, async (page) => {
    const { rows: [[at, fn, depth, last]] } = await sql(page, base, trace, `SELECT position, function, depth, last_position FROM call c
      WHERE stream = '${stream}' AND kind = 'call' AND ended = 1 AND insns > 2000 ORDER BY position LIMIT 1`);
    const call = await json(page, base, `${path}/call?at=${at}`);
    const { time_from: time, time_to: end } = call;
    // Shares are of what the axis shows.
    for (const [axis, length, whole] of [["time", "duration", end - time], ["insn", "insns", call.to - call.from]]) {
      const { rows: truth } = await sql(page, base, trace, `SELECT function, count(*), sum(${length}) FROM call WHERE stream = '${stream}' AND position >= ${at} AND position <= ${last}
        AND depth = ${depth + 1} AND kind <> 'exception' GROUP BY 1 ORDER BY 3 DESC`);
      assert.ok(truth.length > 0, fn);
      await open(page, base, `#/trace/${trace}?axis=${axis}&lane=${stream}&at=${axis === "time" ? time : at}&panel=calls`);
      if (axis === "time") await page.getByRole("button", { name: "Inside" }).click();
      await page.waitForFunction((unit) => new RegExp(unit).test(document.querySelector("table.ints tbody td:nth-child(3)")?.textContent ?? ""), axis === "time" ? "s$" : "insns$");
      await page.waitForSelector(".meanwhile tbody tr td");
      const rows = await page.locator("table.ints").first().locator("tbody tr").evaluateAll((all) => all.map((r) => [r.querySelector("th").textContent.trim(), Number(r.querySelector("td").textContent.replace(/,/g, "")), r.querySelectorAll("td")[2].textContent]));
      assert.deepEqual(rows, truth.slice(0, 20).map(([name, n, sum]) => [name, n, percent(sum, whole)]));
    }
    const other = await json(page, base, `traces/${trace}/streams/cs.12/functions?unit=time&from=${time}&to=${end}&limit=3`);
    const meanwhile = await page.textContent(".meanwhile");
    for (const f of other.functions) assert.ok(meanwhile.includes(f.name), `${f.name} in ${meanwhile}`);
    await inBothThemes(page, "inside");
  });
}

export async function sqlChecks(suite, { server, trace }) {
  const base = server.replace(/\/$/, "");

  await suite.check("sql: an answer is a table with links and a chart, and the question is in the link", {}, async (page) => {
    const q = "SELECT stream, function, duration, position, time, caller FROM call\nWHERE stream = 'cs.12' ORDER BY duration DESC LIMIT 30";
    const truth = await sql(page, base, trace, q);
    await open(page, base, `#/trace/${trace}?panel=sql`);
    await accessible(page);
    await page.fill(".sql textarea", q);
    await page.keyboard.press("Control+Enter");
    await page.waitForSelector(".answer tbody tr");
    const cells = await page.locator(".answer tbody td:nth-child(4)").allTextContents();
    assert.deepEqual(cells.map(digits), truth.rows.map((r) => r[3]));
    assert.equal(await page.locator(".chart rect").count(), 30);
    await inBothThemes(page, "sql");
    // A place, a time, a function, a bar of the chart.
    await page.locator(".answer tbody tr").nth(2).locator("td:nth-child(4) button").click();
    await page.waitForFunction((at) => location.hash.includes(`at=${at}`), truth.rows[2][3]);
    const now = await place(page);
    assert.equal(now.query.get("lane"), "cs.12");
    assert.equal(now.query.get("sql"), q);
    const bar = await page.locator(".chart svg").boundingBox();
    await page.mouse.click(bar.x + (bar.width * 7.5) / 30, bar.y + bar.height - 3);
    await page.waitForFunction((at) => location.hash.includes(`at=${at}`), truth.rows[7][3]);
    await page.locator(".answer tbody tr").nth(4).locator("td:nth-child(5) button").click();
    await page.waitForFunction((at) => /axis=time/.test(location.hash) && location.hash.includes(`at=${at}`), truth.rows[4][4]);
    await page.reload();
    await page.waitForSelector(".answer tbody tr");
    assert.equal(await page.locator(".answer tbody tr").count(), 30);
    await page.locator(".answer tbody tr").first().locator("td:nth-child(2) button").click();
    await page.waitForSelector("#hits .gridbody [role=row]");
    assert.match(await page.inputValue(".search input"), new RegExp(`call:${truth.rows[0][1]}`));
  });

  await suite.check("sql: a wrong question gets the reason, an example an answer", {}, async (page, troubles) => {
    await open(page, base, `#/trace/${trace}?panel=sql`);
    await page.fill(".sql textarea", "SELECT x FROM nowhere");
    await page.getByRole("button", { name: "Ask" }).click();
    await page.waitForSelector(".sql .trouble");
    assert.match(await page.textContent(".sql .trouble"), /no such table: nowhere/);
    troubles.length = 0; // the browser logs failed requests
    for (const i of await page.locator(".sql select option").evaluateAll((all) => all.map((o) => o.value).filter((v) => v !== ""))) {
      await page.selectOption(".sql select", i);
      await page.waitForFunction(() => document.querySelector(".sql .trouble, .answer") && !/Asking/.test(document.querySelector(".sql").textContent));
      await settle(page);
      assert.equal(await page.locator(".sql .trouble").count(), 0, `example ${i}: ${await page.textContent(".sql")}`);
    }
    await accessible(page);
  });
}
