// SPDX-License-Identifier: MIT
// A recording of Linux on the page: processes by name on the lanes of processors; missing files by path, build ID and
// the processes that mapped them, and decoded when they are uploaded.
import assert from "node:assert/strict";
import path from "node:path";
import { accessible, cssColour, frame, inBothThemes, open, settle, shot } from "./harness.mjs";

const squeezed = (text) => text.replace(/\s+/g, " ");
const PROGRAMS = ["walk", "pair", "ramble", "plug", "plug1.so", "plug2.so"];

export async function perfChecks(suite, { server, bare, symfs }) {
  const base = server.replace(/\/$/, "");

  await suite.check("perf: missing files are named, and decoded when they come", {}, async (page, troubles) => {
    await open(page, base, `#/trace/${bare}`);
    await page.waitForSelector(".overview table.files tbody tr");
    const lacking = (await (await page.request.get(`${base}/api/v1/traces/${bare}/images`)).json()).filter((f) => !f.there && f.build_id);
    const rows = page.locator(".overview table.files tbody tr");
    assert.equal(await rows.count(), lacking.length);
    const text = squeezed(await page.textContent(".overview"));
    for (const f of lacking) {
      const [{ address, name, context }] = f.places;
      assert.ok(text.includes(`${f.path} build ID ${f.build_id} ${name} ${Number(context)}, at ${address}`), `${f.path} in ${text}`);
    }
    await inBothThemes(page, "perf-missing");
    const cut = await page.locator(".head .counts").evaluateAll((all) => all.map((e) => [e.textContent, e.getBoundingClientRect().bottom - e.closest(".head").getBoundingClientRect().bottom])
      .filter(([, by]) => by > 0.5));
    assert.deepEqual(cut, [], "lines of the lanes' heads are cut off");
    // The lane says which file it needs, also to screen readers.
    await page.focus(".head button:has-text('Add image') >> nth=0");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement?.id === "image-file");
    // An unneeded file is distinguished from needed ones.
    await page.setInputFiles("#image-file", path.join(symfs, "boot/vmlinux-6.1.0"));
    await page.click(".imageform .action:not([disabled])");
    await page.waitForFunction(() => /None of the missing files: vmlinux-6.1.0 \(build ID c0dec/.test(document.querySelector(".imageform .trouble")?.textContent ?? ""));
    await accessible(page);
    await page.setInputFiles("#image-file", PROGRAMS.map((name) => path.join(symfs, "opt/demo", name)));
    await page.click(".imageform .action:not([disabled])");
    await page.waitForFunction(() => !document.querySelector(".overview table.files") && !/Missing/.test(document.querySelector(".overview").textContent));
    // When decoding again is complete, everything is there.
    await page.waitForFunction(async ([id, insns]) => {
      const now = await (await fetch(`api/v1/traces/${id}`)).json();
      return now.state === "sealed" && insns === now.streams.filter((s) => s.name.startsWith("pt.")).reduce((n, s) => n + s.insns, 0);
    }, [bare, 502635], { polling: 200 });
    await settle(page);
    // The trace is decoded again for each file: a tile may be requested when its generation is already gone.
    const others = troubles.filter((t) => !/status of 404 .*\/tiles\/.*&gen=\d+$/.test(t));
    troubles.splice(0, troubles.length, ...others);
    await shot(page, "perf-found");
  });

  await suite.check("perf: processes have their names on lanes", {}, async (page) => {
    const { streams } = await (await page.request.get(`${base}/api/v1/traces/${bare}/states?streams=pt.0`)).json();
    const runs = streams["pt.0"].runs.filter((r) => !r.mixed && r.to - r.from > 500);
    assert.ok(new Set(runs.map((r) => r.name)).size > 2, JSON.stringify(runs));
    const all = runs.slice(0, 6);
    await open(page, base, `#/trace/${bare}?panel=none&show=states&lane=pt.0`);
    await inBothThemes(page, "perf-names");
    for (const run of all) {
      await page.evaluate((hash) => { location.hash = hash; }, `#/trace/${bare}?panel=none&show=states&lane=pt.0&from=${run.from}&to=${run.to}&at=${Math.floor((run.from + run.to) / 2)}`);
      await frame(page);
      await settle(page);
      const mode = `${run.name} ${Number(run.context)}`;
      await page.waitForFunction((wanted) => document.querySelector("#status").textContent.includes(wanted), mode);
    }
  });

  await suite.check("perf: a folded group shows the events of its lanes", {}, async (page) => {
    const marks = async () => {
      const ground = await cssColour(page, "ground");
      return page.evaluate((none) => {
        const top = document.querySelector(".group[data-id='/events']").getBoundingClientRect().top - document.querySelector("canvas.base").getBoundingClientRect().top;
        const canvas = document.querySelector("canvas.base");
        const { data } = canvas.getContext("2d").getImageData(0, Math.round(top) + 5, canvas.width, 1);
        let n = 0;
        for (let i = 0; i < data.length; i += 4) n += `#${((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]).toString(16).padStart(6, "0")}` === none ? 0 : 1;
        return n;
      }, ground);
    };
    await open(page, base, `#/trace/${bare}?panel=none&axis=time&fold=${encodeURIComponent("/events")}`);
    const group = page.locator(".group[data-id='/events']");
    assert.equal(await group.getAttribute("aria-expanded"), "false");
    assert.ok(await marks() > 50, "its events are seen");
    const box = await page.locator(".plot").boundingBox();
    const at = await group.boundingBox();
    await page.mouse.move(box.x + box.width / 2, at.y + at.height / 2);
    await page.waitForFunction(() => /events, 2 lanes/.test(document.querySelector("#status").textContent) && /[1-9] events?\b/.test(document.querySelector("#status").textContent));
    await inBothThemes(page, "perf-folded");
  });
}
