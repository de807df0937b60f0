// SPDX-License-Identifier: MIT
// What all cores execute at the same time, and another trace next to them, compared with the server's answers.
import assert from "node:assert/strict";
import { cssColour, inBothThemes, open, place, settle } from "./harness.mjs";

async function json(page, base, path) {
  const reply = await page.request.get(`${base}/api/v1/${path}`, { ignoreHTTPSErrors: true });
  assert.equal(reply.status(), 200, path);
  return reply.json();
}

export async function togetherChecks(suite, { server, trace, other, third }) {
  const base = server.replace(/\/$/, "");
  await suite.check("together: what every core runs at the cursor's time, how certain, and another trace", {}, async (page) => {
    const t = await json(page, base, `traces/${trace}`);
    const names = t.streams.map((s) => s.name);
    const time = t.streams[0].time_first + 30000;
    const truth = (await json(page, base, `traces/${trace}/at?streams=${names.join(",")}&time=${time}`)).streams;
    for (const name of names) {
      const m = truth[name];
      assert.ok(m.time_from <= m.time && m.time <= m.time_to && m.time <= time, JSON.stringify(m));
      const [row] = await json(page, base, `traces/${trace}/streams/${name}/insns?from=${m.insn}&count=1`);
      assert.equal(row.pc, m.row.pc);
    }
    await open(page, base, `#/trace/${trace}?axis=time&at=${time}&from=${time - 30000}&to=${time + 60000}&panel=together`);
    const rows = () => page.locator(".together tbody tr").allTextContents();
    await page.waitForFunction(() => document.querySelector(".together tbody") && !document.querySelector(".together tbody").textContent.includes("…"));
    const shown = await rows();
    assert.equal(shown.length, names.length);
    names.forEach((name, i) => {
      assert.ok(shown[i].includes(name) && shown[i].includes(truth[name].row.function), `${shown[i]} ${truth[name].row.function}`);
      assert.match(shown[i], /−.*\+/);
    });
    const named = page.waitForResponse((reply) => reply.url().endsWith(`traces/${other}/functions`));
    await page.locator(".together select").selectOption(other);
    await named; // with the names of its functions
    await page.waitForFunction((n) => document.querySelectorAll(".together tbody tr").length > n, names.length);
    await page.waitForFunction(() => ![...document.querySelectorAll(".together tbody")].some((b) => b.textContent.includes("…")));
    assert.match(await page.textContent(".together"), /not known to be related/);
    assert.equal((await place(page)).query.get("beside"), other);
    // Its lanes are below; a pixel is the same time after the beginning in both.
    const lanes = (await json(page, base, `traces/${other}`)).streams.map((s) => s.name);
    assert.deepEqual(await page.locator(".strip .head .name").allTextContents(), lanes);
    await page.waitForFunction(() => document.querySelector(".strip canvas")?.width > 100);
    const [upper, lower] = [await page.locator("canvas.base").boundingBox(), await page.locator(".strip canvas").boundingBox()];
    assert.ok(Math.abs(upper.x - lower.x) <= 1 && Math.abs(upper.width - lower.width) <= 1, JSON.stringify({ upper, lower }));
    await settle(page);
    // Its recorded events are drawn.
    await page.waitForFunction((rgb) => {
      const canvas = document.querySelector(".strip canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      for (let i = 0; i < data.length; i += 4) if (((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]) === rgb) return true;
      return false;
    }, parseInt((await cssColour(page, "software")).slice(1), 16), { polling: 200 });
    await inBothThemes(page, "together");
    // The other lane can be reached with a key press, at its current instruction.
    await page.locator(".together tbody button").nth(1).focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction((name) => location.hash.includes(`lane=${name}`), names[1]);
    await page.locator(".together input").fill("1000");
    await page.keyboard.press("Tab");
    await page.waitForFunction(() => /by the offset you entered/.test(document.querySelector(".together").textContent));
    assert.equal((await place(page)).query.get("offset"), "1000");
    // A third trace, each with its own lanes and offset, which are in the link.
    await page.locator(".together select").selectOption(third);
    await page.waitForFunction(() => document.querySelectorAll(".strip canvas").length === 2 && [...document.querySelectorAll(".strip canvas")].every((c) => c.width > 100));
    await page.waitForFunction(() => ![...document.querySelectorAll(".together tbody")].some((b) => b.textContent.includes("…")));
    await settle(page);
    const both = await place(page);
    assert.deepEqual([both.query.get("beside"), both.query.get("offset")], [`${other},${third}`, "1000,"]);
    await inBothThemes(page, "together-three");
    await page.reload();
    await page.waitForFunction(() => document.querySelectorAll(".strip canvas").length === 2);
    assert.deepEqual(await page.locator(".laid b").allTextContents(), [other, third]);
    await page.locator(`[aria-label='Remove ${other}']`).focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelectorAll(".strip canvas").length === 1);
    assert.deepEqual(await page.locator(".strip > .heads > .name").allTextContents(), [third]);
    assert.equal((await place(page)).query.get("beside"), third);
  });
}
