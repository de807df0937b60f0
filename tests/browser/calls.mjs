// SPDX-License-Identifier: MIT
// Details of calls, and call trees, compared with the server's answers.
import assert from "node:assert/strict";
import { accessible, inBothThemes, open, place, settle } from "./harness.mjs";

async function json(page, base, path) {
  const reply = await page.request.get(`${base}/api/v1/${path}`, { ignoreHTTPSErrors: true });
  assert.equal(reply.status(), 200, path);
  return reply.json();
}

/** The details in the panel, by name. */
async function details(page) {
  await page.waitForSelector(".calls dl.details");
  return page.evaluate(() => Object.fromEntries([...document.querySelectorAll(".calls dl.details div")]
    .map((d) => [d.querySelector("dt").textContent, d.querySelector("dd").textContent.trim()])));
}

const plain = (text) => Number(text.replace(/[^0-9]/g, ""));

export async function callChecks(suite, { server, trace }) {
  const base = server.replace(/\/$/, "");

  await suite.check("calls: a call is taken apart, its neighbours are a click away", {}, async (page) => {
    const t = await json(page, base, `traces/${trace}`);
    const stream = t.streams[0];
    const path = `traces/${trace}/streams/${stream.name}`;
    const { hits } = await json(page, base, `${path}/find?call=checksum&limit=3`);
    assert.equal(hits.length, 3);
    const at = hits[1].insn;
    const truth = await json(page, base, `${path}/call?at=${at}`);
    await open(page, base, `#/trace/${trace}?at=${at}&from=${at - 200}&to=${at + 400}&panel=calls`);
    const told = await details(page);
    assert.equal(told.Function, "checksum");
    assert.equal(told["Called by"], truth.caller);
    assert.equal(plain(told.Instructions), truth.insns);
    assert.match(told.Call, new RegExp(`^2 of `));
    await inBothThemes(page, "calls");
    await page.getByRole("button", { name: "Previous", exact: true }).click();
    await page.waitForFunction((first) => location.hash.includes(`at=${first}`), hits[0].insn);
    await page.getByRole("button", { name: "Next", exact: true }).click();
    await page.waitForFunction((second) => location.hash.includes(`at=${second}`), at);
    await page.waitForFunction(() => /^2 of/.test([...document.querySelectorAll(".calls dl.details div")]
      .find((d) => d.querySelector("dt").textContent === "Call")?.querySelector("dd").textContent ?? ""));
    await page.getByRole("button", { name: "Outer", exact: true }).click();
    await page.waitForFunction((name) => document.querySelector(".calls dl.details dd")?.textContent.trim() === name, truth.caller);
  });

  await suite.check("calls: the tree of a selection is the server's, from above and below", {}, async (page) => {
    const t = await json(page, base, `traces/${trace}`);
    const [stream] = t.streams;
    const path = `traces/${trace}/streams/${stream.name}`;
    const to = Math.min(stream.insns, 50000);
    const truth = await json(page, base, `${path}/profile?from=1000&to=${to}`);
    await open(page, base, `#/trace/${trace}?select=1000-${to}&panel=calls`);
    await page.getByRole("button", { name: /^Call tree of the selection/ }).click();
    await page.waitForSelector(".flame div");
    await settle(page);
    const functions = await page.evaluate(() => [...document.querySelectorAll("table.wide tbody tr")].map((r) =>
      [r.querySelector("th").textContent, Number(r.querySelector("td").title.replace(/[^0-9]/g, ""))]));
    assert.deepEqual(functions, truth.functions.slice(0, 200).map((f) => [f.name || f.pc, f.self]));
    await page.waitForFunction(() => !document.querySelector("table.wide")?.textContent.includes("…"));
    const first = await page.locator("table.tree tbody tr").count();
    await page.locator("table.tree button[aria-expanded=false]").first().focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction((n) => document.querySelectorAll("table.tree tbody tr").length > n, first);
    await inBothThemes(page, "calls-tree");
    // The picture may be as wide as the page; a node leads to the lanes.
    await page.getByRole("button", { name: "Wide" }).click();
    await page.waitForSelector("section.beside .flame div");
    assert.ok((await page.locator("section.beside .flame").boundingBox()).width > 1300);
    assert.equal(await page.locator(".flame").count(), 1);
    await page.locator(".flame div", { hasText: functions[0][0] }).first().click();
    await page.locator("section.beside").getByRole("button", { name: "Highlight" }).click();
    await page.waitForFunction((name) => new URLSearchParams(location.hash.split("?")[1]).get("alone") === name, functions[0][0]);
    assert.ok(await page.locator(".flame .at").count() > 0, "and what is highlighted is marked");
    await inBothThemes(page, "flame-wide");
    await page.getByRole("button", { name: "Show all", exact: true }).first().click();
    await page.getByRole("button", { name: "Wide" }).click();
    // Widths are shares: the outermost level's add up to at most 100 %.
    const shares = await page.evaluate(() => [...document.querySelectorAll(".flame div")]
      .filter((d) => d.style.top === "0px").reduce((sum, d) => sum + parseFloat(d.style.width), 0));
    assert.ok(shares > 90 && shares < 100.5, String(shares));
    await page.getByRole("button", { name: "Bottom-up" }).click();
    await page.waitForFunction(() => document.querySelector("table.tree caption")?.textContent === "Callers");
    const below = await json(page, base, `${path}/profile?from=1000&to=${to}&callers=1`);
    const top = await page.evaluate(() => Number(document.querySelector("table.tree tbody td").title.replace(/[^0-9]/g, "")));
    assert.equal(top, below.nodes[0].total);
  });

  await suite.check("calls: a link opens the panel, whose code is loaded then", { fresh: true }, async (page) => {
    const seen = [];
    page.on("request", (r) => seen.push(new URL(r.url()).pathname));
    await open(page, base, `#/trace/${trace}`);
    assert.ok(!seen.includes("/later.js"));
    await page.getByRole("tab", { name: "Calls" }).click();
    await page.waitForSelector(".calls");
    assert.ok(seen.includes("/later.js"));
    assert.equal((await place(page)).query.get("panel"), "calls");
  });
}

/** Compares two streams of a trace. */
export async function compareChecks(suite, { server, trace, same }) {
  const base = server.replace(/\/$/, "");

  await suite.check("compare: the differences are the server's, one of them is side by side", {}, async (page) => {
    const t = await json(page, base, `traces/${trace}`);
    const [a, b] = t.streams;
    const other = `${trace}/${b.name}`;
    const path = `traces/${trace}/streams/${a.name}`;
    const truth = await json(page, base, `${path}/compare?with=${encodeURIComponent(other)}&hunks=1000`);
    await open(page, base, `#/trace/${trace}?panel=compare`);
    await page.fill(".compare input[type=text]", other.slice(-4)); // a part that only one has
    await page.press(".compare input[type=text]", "Enter");
    await page.waitForSelector(".compare dl.details");
    assert.equal((await place(page)).query.get("with"), other);
    const told = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll(".compare dl.details div")]
      .map((d) => [d.querySelector("dt").textContent, d.querySelector("dd").textContent.trim()])));
    assert.equal(plain(told.Differences), truth.total);
    await page.getByRole("button", { name: "Next", exact: true }).focus();
    await page.keyboard.press("Enter");
    const hunk = truth.hunks[1];
    await page.waitForFunction((at) => location.hash.includes(`at=${at}`), hunk.a_from);
    await page.waitForSelector(".beside tbody tr");
    await settle(page);
    const rows = await page.evaluate(() => [...document.querySelectorAll(".beside tbody tr")].map((r) => ({
      differs: r.classList.contains("differs"),
      cells: [...r.querySelectorAll("td.n")].map((c) => Number(c.textContent.replace(/[^0-9]/g, ""))),
      texts: [...r.querySelectorAll("code")].map((c) => c.textContent),
    })));
    const same = rows.filter((r) => !r.differs);
    const differ = rows.filter((r) => r.differs);
    assert.equal(differ.length, Math.min(300, Math.max(hunk.a_to - hunk.a_from, hunk.b_to - hunk.b_from)));
    assert.deepEqual(same[0].cells.map((c) => c + Math.min(4, hunk.a_from, hunk.b_from)), [hunk.a_from, hunk.b_from]);
    for (const row of same) assert.equal(row.texts[0], row.texts[1]);
    await inBothThemes(page, "compare");
    await page.getByRole("button", { name: "By calls" }).click();
    const calls = await json(page, base, `${path}/compare?with=${encodeURIComponent(other)}&hunks=1000&calls=1`);
    await page.waitForFunction((n) => document.querySelector(".compare dl.details dd")?.textContent.replace(/[^0-9]/g, "") === String(n), calls.total);
    await page.getByRole("button", { name: "By calls" }).click();
  });

  await suite.check("compare: a call with that of the same number there, and the same times", {}, async (page) => {
    const t = await json(page, base, `traces/${trace}`);
    const [a, b] = t.streams;
    const own = `traces/${trace}/streams/${a.name}`;
    const there = `traces/${trace}/streams/${b.name}`;
    const { hits: [, , third] } = await json(page, base, `${own}/find?call=checksum&limit=3`);
    const call = await json(page, base, `${own}/call?at=${third.insn}`);
    const { calls: [other] } = await json(page, base, `${there}/calls?of=checksum&order=first&skip=${call.number - 1}&limit=1`);
    const facts = () => page.evaluate(() => document.querySelector(".compare dl.details")?.textContent ?? document.querySelector(".compare p.hint")?.textContent ?? "");
    const open_ = async (hash) => {
      await open(page, base, `#/trace/${trace}?panel=compare&with=${encodeURIComponent(`${trace}/${b.name}`)}${hash}`);
      await page.waitForSelector(".compare dl.details");
    };
    await open_(`&at=${third.insn}`);
    await page.selectOption("[aria-label='What is compared']", "call");
    const truth = await json(page, base, `${own}/compare?with=${encodeURIComponent(`${trace}/${b.name}`)}&hunks=1000&from=${call.from}&to=${call.to}&with_from=${other.from}&with_to=${other.to}`);
    const insns = (call.to - call.from).toLocaleString("en-US");
    await page.waitForFunction((n) => (document.querySelector(".compare").textContent).includes(`of ${n} insns`) || document.querySelector(".compare").textContent.includes(`path: ${n} instructions`), insns);
    if (truth.total > 0) assert.match(await facts(), new RegExp(`Differences\\s*${truth.total}Only`));
    await accessible(page);
    // What is compared stays while differences are looked at.
    if (truth.total > 0) {
      await page.locator(".compare table.figures tbody button").last().click();
      await settle(page);
      assert.ok((await facts()).includes(`of ${insns} insns`));
    }
    await open_(`&axis=time&select=${call.time_from}-${call.time_from + 20000}`);
    await page.selectOption("[aria-label='What is compared']", "times");
    const at = async (stream, time) => (await json(page, base, `${stream}/locate?unit=time&at=${time}`)).insn;
    const n = await at(own, call.time_from + 20000) - await at(own, call.time_from);
    await page.waitForFunction((text) => document.querySelector(".compare").textContent.includes(text), `of ${n.toLocaleString("en-US")} insns`);
  });

  await suite.check("compare: the same path through other code is never told to be equal", {}, async (page) => {
    await open(page, base, `#/trace/${same[0]}?panel=compare&with=${encodeURIComponent(`${same[1]}/cs.10`)}`);
    await page.waitForFunction(() => /same path[\s\S]*But the code is not the same/.test(document.querySelector(".compare")?.textContent ?? ""));
    assert.match(await page.textContent(".compare .bad"), /nop[\s\S]*yield/);
    await accessible(page);
  });
}
