// SPDX-License-Identifier: MIT
// Open SoC Debug on the page: core trace without instructions, the text of software trace, the UART's console, stalls
// of the core, and lost events.
import assert from "node:assert/strict";
import fs from "node:fs";
import { accessible, colours, cssColour, open, settle, shot } from "./harness.mjs";

const HOST = 0x0401;

function packet(src, words, flags = 0x8000, dest = HOST) {
  const all = [3 + words.length, dest, src, flags, ...words];
  const out = Buffer.alloc(2 * all.length);
  all.forEach((w, i) => out.writeUInt16BE(w & 0xffff, 2 * i));
  return out;
}

const split = (value) => [value & 0xffff, (value >>> 16) & 0xffff];
const ctm = (time, pc, npc, flags) => packet(1, [...split(time), ...split(npc), ...split(pc), flags | 3]);
const stm = (time, id, value) => packet(2, [...split(time), id, ...split(value)]);

/** A program that calls, prints and stalls, with at least 65,538 missing events. */
export function writeCapture(file) {
  const parts = [];
  const types = [[1, 0], [5, 32], [4, 32], [2, 0], [6, 0]];
  types.forEach(([type], src) => [1, type, 0, 0, 0].forEach((v) => parts.push(packet(src, [v], 0x2000))));
  [1, 2].forEach((src) => parts.push(packet(src, [32], 0x2000)));
  for (let i = 0; i < 400; i++) {
    parts.push(ctm(1000 + 10 * i, 0x80000010 + 8 * i, 0x80002000 + 64 * i, i % 2 ? 4 : 8));
    if (i === 200) parts.push(packet(1, [3], 0x9400), packet(1, [65535], 0x9400));
    if (i % 40 === 0) [..."tick\n"].forEach((c, k) => parts.push(stm(1001 + 10 * i + k, 4, c.charCodeAt(0))));
    if (i % 40 === 20) parts.push(stm(1001 + 10 * i, 9, 0xffeeddc0 + i)); // each of its bytes could be a character
    if (i % 50 === 0) parts.push(packet(3, ["ok\r\n".charCodeAt((i / 50) % 4)]));
  }
  parts.push(packet(4, [1]), packet(4, [0]));
  fs.writeFileSync(file, Buffer.concat(parts));
}

const rows = (page) => page.locator(".insns .insn").allTextContents();

export async function osdChecks(suite, { server, trace }) {
  const base = server.replace(/\/$/, "");

  await suite.check("osd: a lane for every module, drawn, with its gap", {}, async (page) => {
    await open(page, base, `#/trace/${trace}`);
    const names = (await page.locator(".head .name").allTextContents()).map((n) => n.trim());
    assert.deepEqual(names.slice().sort(), ["di.0.1", "di.0.2", "di.0.3", "di.0.4"]);
    assert.match(await page.locator(".head").nth(names.indexOf("di.0.1")).textContent(), /1 gap/);
    const seen = await colours(page);
    assert.ok((seen[await cssColour(page, "lost")] ?? 0) > 0, "the gap is drawn");
    await accessible(page);
    await shot(page, "osd-trace");
  });

  await suite.check("osd: branches and the gap in the list", {}, async (page) => {
    await open(page, base, `#/trace/${trace}?lane=di.0.1&at=201`);
    await settle(page);
    await page.waitForFunction(() => /branch from 0x80000658/.test(document.querySelector(".insns").textContent));
    assert.ok((await rows(page)).some((r) => r.includes("gap: overflow (65538+)")), "the gap is told");
    await shot(page, "osd-branches");
  });

  await suite.check("osd: what was printed, and the console, in the list", {}, async (page) => {
    await open(page, base, `#/trace/${trace}?lane=di.0.2&at=0&from=0&to=30`);
    await settle(page);
    assert.ok(((await colours(page))[await cssColour(page, "software")] ?? 0) > 0, "its records are drawn");
    await page.waitForFunction(() => /osd-stm 4 00000074 't'/.test(document.querySelector(".insns").textContent));
    await open(page, base, `#/trace/${trace}?lane=di.0.3&at=0`);
    await page.waitForFunction(() => /uart - 6f 'o'/.test(document.querySelector(".insns").textContent));
    await shot(page, "osd-console");
  });

  await suite.check("osd: the log of a core and of what lies beside it comes to rest", {}, async (page) => {
    for (const axis of ["time", "insn"]) {
      for (const lane of ["di.0.1", "di.0.2"]) {
        await open(page, base, `#/trace/${trace}?lane=${lane}&panel=log${axis === "time" ? "&axis=time" : ""}`);
        const told = await page.textContent(".tabpanel");
        assert.doesNotMatch(told, /Loading/, `${axis}, ${lane}`);
        if (axis === "time" || lane === "di.0.2") assert.match(told, /tick/, `${axis}, ${lane}`);
      }
    }
    // By instructions it is the selected lane's: of one without, those that have some are offered.
    await open(page, base, `#/trace/${trace}?lane=di.0.1&panel=log`);
    assert.match(await page.textContent(".tabpanel"), /There is no software trace in the selected lane/);
    await page.getByRole("button", { name: "Log of di.0.2" }).press("Enter");
    await page.waitForFunction(() => /tick/.test(document.querySelector("ol.log")?.textContent ?? ""));
    await shot(page, "osd-log");
  });
}
