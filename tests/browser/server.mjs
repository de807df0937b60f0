// SPDX-License-Identifier: MIT
// The page with a real server: protocols, the lanes of a pushed capture, single instructions, and following a capture
// while it is pushed.
import assert from "node:assert/strict";
import { accessible, colours, cssColour, open, place, settle, shot, traffic } from "./harness.mjs";

async function get(page, base, path) {
  const reply = await page.request.get(`${base}/${path}`, { ignoreHTTPSErrors: true });
  assert.equal(reply.status(), 200, path);
  return reply;
}

async function traces(page, base) {
  const body = await (await get(page, base, "api/v1/traces")).json();
  return Array.isArray(body) ? body : body.traces;
}

const insns = (t) => t.streams.reduce((n, s) => Math.max(n, Number(s.insns)), 0);

/** The trace to look at: the named one, or the longest that is not being pushed. */
async function chosen(page, base, id) {
  const all = await traces(page, base);
  const found = id ? all.find((t) => t.id === id)
    : all.filter((t) => t.state === "sealed").sort((a, b) => insns(b) - insns(a))[0]
      ?? all.sort((a, b) => insns(b) - insns(a))[0];
  assert.ok(found, `no trace ${id ?? ""} on the server`);
  assert.ok(insns(found) > 0, `${found.id} has no instructions`);
  return found;
}

function fullest(trace) {
  return trace.streams.map((s, i) => ({ ...s, i })).sort((a, b) => b.insns - a.insns)[0];
}

async function protocolOf(page) {
  return page.evaluate(() => [performance.getEntriesByType("navigation")[0].nextHopProtocol,
    ...performance.getEntriesByType("resource").filter((e) => /app\.js|\/api\/v1\//.test(e.name))
      .map((e) => e.nextHopProtocol)].filter((p) => p !== ""));
}

/** `title`: prefix of the names of checks and screenshots. */
export async function serverChecks(suite, { server, tls, trace, title = "server" }) {
  const base = server.replace(/\/$/, "");

  if (tls) {
    await suite.check(`${title}: the page and its tiles come over HTTP/2 by TLS`, { fresh: true }, async (page) => {
      const t = await chosen(page, base, trace);
      await open(page, tls.replace(/\/$/, ""), `#/trace/${t.id}`);
      const seen = new Set(await protocolOf(page));
      assert.deepEqual([...seen], ["h2"]);
      assert.ok(await page.locator(".head").count() > 0);
      await shot(page, `${title}-h2`);
    });
  } else {
    suite.skip(`${title}: HTTP/2 by TLS`, "no --tls URL");
  }

  await suite.check(`${title}: headers of the page`, {}, async (page) => {
    const reply = await get(page, base, "");
    const headers = reply.headers();
    assert.match(headers["content-security-policy"] ?? "", /default-src 'none'.*script-src 'self'/);
    assert.match(headers["content-type"], /^text\/html/);
    assert.ok(headers.etag, "ETag");
    const again = await page.request.get(`${base}/`, { headers: { "if-none-match": headers.etag } });
    assert.equal(again.status(), 304);
  });

  await suite.check(`${title}: the list of traces`, {}, async (page) => {
    const t = await chosen(page, base, trace);
    await page.goto(base);
    await page.waitForSelector("table.traces tbody tr");
    assert.ok((await page.textContent("table.traces")).includes(t.id));
    await accessible(page);
    await shot(page, `${title}-list`);
  });

  await suite.check(`${title}: a lane for every stream, drawn`, {}, async (page) => {
    const t = await chosen(page, base, trace);
    await open(page, base, `#/trace/${t.id}`);
    const names = await page.locator(".head .name").allTextContents();
    assert.deepEqual(names.map((n) => n.trim()), t.streams.map((s) => s.name).sort());
    const seen = await colours(page);
    const total = Object.values(seen).reduce((a, b) => a + b, 0);
    assert.ok(1 - (seen[await cssColour(page, "ground")] ?? 0) / total > 0.02, "something is drawn");
    await accessible(page);
    await shot(page, `${title}-trace`);
  });

  await suite.check(`${title}: tiles are cached as they should be`, {}, async (page) => {
    const t = await chosen(page, base, trace);
    const path = `api/v1/traces/${t.id}/tiles/insn/0/0?lanes=0-15&gen=${t.generation}`;
    const reply = await get(page, base, path);
    const { etag, "cache-control": control, "content-type": type } = reply.headers();
    assert.equal(type, "application/x-protobuf");
    assert.ok(etag);
    if (t.state === "sealed") assert.match(control, /immutable/);
    const again = await page.request.get(`${base}/${path}`, { headers: { "if-none-match": etag } });
    assert.equal(again.status(), 304);
    const missing = await page.request.get(`${base}/api/v1/traces/${t.id}/tiles/insn/0/0?lanes=0-15&gen=${t.generation + 99}`);
    assert.equal(missing.status(), 404);
  });

  await suite.check(`${title}: zoom to single instructions, they are those of the server`, {}, async (page) => {
    const t = await chosen(page, base, trace);
    const stream = fullest(t);
    const at = Math.floor(stream.insns / 2);
    await open(page, base, `#/trace/${t.id}?lane=${stream.name}`);
    await page.keyboard.press("/");
    await page.keyboard.type(`#${at}\n`);
    await page.keyboard.press("Escape");
    await page.focus("#timeline");
    for (let i = 0; i < 60; i++) await page.keyboard.press("+");
    await settle(page);
    const now = await place(page);
    assert.ok(now.to - now.from <= 16 && now.from <= at && now.to > at, now.hash);
    await page.waitForSelector(".insn.here");
    const body = await (await get(page, base,
      `api/v1/traces/${t.id}/streams/${stream.name}/insns?from=${at}&count=1`)).json();
    const row = (body.rows ?? body.insns ?? body)[0];
    const shown = await page.textContent(".insn.here");
    assert.ok(shown.includes(row.pc.replace(/^0x/, "")), `${shown} is not ${JSON.stringify(row)}`);
    assert.ok((await page.textContent(".details")).includes(row.pc));
    await accessible(page);
    await shot(page, `${title}-instructions`);
  });

  await suite.check(`${title}: by time, where there is time`, {}, async (page) => {
    const t = await chosen(page, base, trace);
    const stream = fullest(t);
    await open(page, base, `#/trace/${t.id}?lane=${stream.name}&at=${Math.floor(stream.insns / 3)}`);
    await page.focus("#timeline");
    await page.keyboard.press("KeyT");
    if (!t.streams.some((s) => s.has_time)) {
      assert.equal((await place(page)).query.get("axis"), "insn", "there is no time to show");
      return;
    }
    await page.waitForFunction(() => location.hash.includes("axis=time"));
    await settle(page);
    const { at } = await place(page);
    const wanted = await (await get(page, base,
      `api/v1/traces/${t.id}/streams/${stream.name}/locate?unit=insn&at=${Math.floor(stream.insns / 3)}`)).json();
    assert.equal(at, Number(wanted.time));
    for (let i = 0; i < 24; i++) await page.keyboard.press("+");
    await settle(page);
    await shot(page, `${title}-time`);
    const now = await place(page);
    assert.ok(now.from <= at && now.to > at, now.hash);
    const seen = await colours(page);
    assert.ok(Object.keys(seen).length > 8, "lanes are drawn");
  });

  await suite.check(`${title}: stacks, statistics, download, search`, {}, async (page) => {
    const t = await chosen(page, base, trace);
    const stream = fullest(t);
    const to = Math.min(stream.insns, 20000);
    await open(page, base, `#/trace/${t.id}?lane=${stream.name}&from=0&to=${to}&select=0-${to}&panel=stats`);
    await page.waitForSelector("table.figures tbody tr");
    const { slices } = await (await get(page, base,
      `api/v1/traces/${t.id}/streams/${stream.name}/slices?from=0&to=${to}`)).json();
    assert.equal(await page.locator(`.fold[aria-label="Call stack of ${stream.name}"]`).isVisible(), slices.length > 0,
      "a call stack is offered where there is one, of few instructions, too");
    assert.match(await page.textContent(".tabpanel"), new RegExp(to.toLocaleString("en-US")));
    await shot(page, `${title}-statistics`);
    const link = await page.locator(".links a").nth(2).getAttribute("href");
    const text = await (await get(page, base, link)).text();
    const counted = text.split("\n").filter((l) => /^[IN] /.test(l)).length;
    assert.equal(counted, to, "the text has as many instructions as were selected");
    const first = /^[IN] 0*([0-9a-f]+)/m.exec(text)[1];
    await page.fill(".search input", `0x${first}`);
    await page.press(".search input", "Enter");
    await page.waitForSelector("#hits .gridbody [role=row]");
    // Names stand for addresses, which the tooltip has.
    const titles = await page.locator("#hits [role=gridcell]:last-child span").evaluateAll((all) => all.map((e) => `${e.title} ${e.textContent}`));
    assert.ok(titles.length > 0 && titles.every((told) => told.includes(first)), titles[0]);
    await shot(page, `${title}-search`);
  });

  for (const axis of ["time", "insn"]) await suite.check(`${title}: budget of opening, ${axis}; all comes over HTTP/1.1 on the plain port`, { fresh: true }, async (page) => {
    const t = await chosen(page, base, trace);
    const net = traffic(page);
    await open(page, base, `#/trace/${t.id}?axis=${axis}`);
    assert.deepEqual([...new Set(await protocolOf(page))], ["http/1.1"]);
    // A page that has been at rest for a second asks for own times, too: that is no part of opening.
    const [seen, bytes] = [net.without("/profile"), await net.bytes("/profile")];
    console.log(`      opened: ${seen.length} requests, ${(bytes / 1024).toFixed(0)} KiB`);
    // The event stream has not ended.
    assert.ok(seen.length + 1 <= 10, seen.map((r) => r.path).join("\n"));
    assert.ok(bytes <= 250 * 1024, `${bytes}`);
  });
}

/** A trace that grows: `live`, or any that does. */
export async function followChecks(suite, { server, live }) {
  const base = server.replace(/\/$/, "");
  const started = await probe(suite, base, live);
  if (!started) {
    suite.skip("server: following a live push", live ? `${live} is not live` : "no trace is live");
    return;
  }
  await suite.check("server: following a live push", {}, async (page) => {
    await open(page, base, `#/trace/${started}`);
    const count = () => page.locator(".head .count").allTextContents();
    const before = (await count()).join();
    await page.waitForFunction((text) => [...document.querySelectorAll(".head .count")]
      .map((e) => e.textContent).join() !== text, before);
    await page.selectOption(".followbox select", "10000");
    await page.waitForFunction(() => document.querySelector(".follow.on"));
    await settle(page);
    await shot(page, "server-follow");
    // The view moves along.
    await page.waitForFunction(() => {
      const canvas = document.querySelector("canvas.base");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let h = 0;
      for (let i = 0; i < data.length; i += 4) h = (Math.imul(h, 31) + data[i] + data[i + 1]) | 0;
      window.seen_ ??= h;
      return h !== window.seen_;
    }, undefined, { polling: 200 });
    assert.ok(await page.locator(".follow.on").count() === 1, "it still follows");
  });
}

async function probe(suite, base, live) {
  const context = await suite.browser.newContext({ ignoreHTTPSErrors: true });
  const page = await context.newPage();
  try {
    const all = await traces(page, base);
    return all.find((t) => t.state === "live" && (!live || t.id === live))?.id;
  } catch {
    return undefined;
  } finally {
    await context.close();
  }
}
