// SPDX-License-Identifier: MIT
// Source next to the instructions, compared with the server's answer, which is checked against the simulation.
import assert from "node:assert/strict";
import { accessible, cssColour, frame, inBothThemes, open, place, settle, shot } from "./harness.mjs";

async function json(page, base, path) {
  const reply = await page.request.get(`${base}/api/v1/${path}`, { ignoreHTTPSErrors: true });
  assert.equal(reply.status(), 200, path);
  return reply.json();
}

const here = (page) => page.evaluate(() => {
  const li = document.querySelector("ol.code li.here");
  return li && { n: Number(li.querySelector(".n").textContent), text: li.querySelector("code").textContent };
});

const isHere = (page, n, text) => page.waitForFunction(([line, words]) => {
  const li = document.querySelector("ol.code li.here");
  return li && Number(li.querySelector(".n").textContent) === line && li.querySelector("code").textContent.includes(words);
}, [n, text]);

export async function sourceChecks(suite, { server, trace, bare }) {
  const base = server.replace(/\/$/, "");

  await suite.check("source: the line of an instruction, what is inlined there, and its callers", {}, async (page) => {
    const [stream] = (await json(page, base, `traces/${trace}`)).streams;
    const path = `traces/${trace}/streams/${stream.name}`;
    const rows = await json(page, base, `${path}/insns?from=20000&count=2000`);
    const row = rows.find((r, i) => r.inlined && i > 100);
    assert.ok(row, "something is inlined");
    const at = row.insn;
    const truth = await json(page, base, `${path}/source?at=${at}`);
    await open(page, base, `#/trace/${trace}?at=${at}&from=${at - 20}&to=${at + 40}&panel=source`);
    const line = truth.text.split("\n")[truth.line - 1];
    await isHere(page, truth.line, line);
    assert.match(line, /step\(\d+\);/);
    assert.match(await page.locator(".source .path").textContent(), /mix\.h$/);
    await settle(page);
    await inBothThemes(page, "source");
    // The enclosing function, at the call of the inlined one.
    await page.locator(".frames button").nth(1).focus();
    await page.keyboard.press("Enter");
    await isHere(page, row.inlined[0].line, "mix();");
    assert.ok((await page.locator(".frames button").nth(1).textContent()).includes(row.function.replace(/\+.*/, "")));
    // Stepping forward goes to another line, and the list follows.
    await page.getByRole("button", { name: "Next line" }).click();
    const next = rows.find((r) => r.insn > at && (r.file !== row.file || r.line !== row.line));
    await page.waitForFunction((n) => location.hash.includes(`at=${n}`), next.insn);
    await page.waitForSelector(".insn.here");
    await page.getByRole("button", { name: "Previous line" }).click();
    await page.waitForFunction((n) => !location.hash.includes(`at=${n}`), next.insn);
    const back = (await place(page)).at;
    const again = rows.find((r) => r.insn === back);
    assert.deepEqual([again.file, again.line], [row.file, row.line]);
  });

  await suite.check("source: folders as they are on this machine, and a link for the editor, kept in the browser", {}, async (page) => {
    const [stream] = (await json(page, base, `traces/${trace}`)).streams;
    const rows = await json(page, base, `traces/${trace}/streams/${stream.name}/insns?from=20000&count=200`);
    const { insn: at, file, line } = rows.find((r) => r.file && !r.inlined);
    const folder = file.slice(0, file.lastIndexOf("/"));
    const go = () => open(page, base, `#/trace/${trace}?at=${at}&lane=${stream.name}&from=${at - 20}&to=${at + 40}&panel=source`);
    await go();
    await page.waitForSelector(".source .path");
    assert.equal(await page.textContent(".source .path"), file);
    await page.getByRole("button", { name: "Paths" }).click();
    await page.getByLabel(/Folders/).fill(`${folder}=/home/me/fw\nnonsense`);
    await page.keyboard.press("Tab");
    await page.getByLabel(/Editor/).fill("vscode://file{path}:{line}");
    await page.keyboard.press("Tab");
    const name = file.slice(folder.length);
    await page.waitForFunction((text) => document.querySelector(".source .path").textContent === text, `/home/me/fw${name}`);
    assert.equal(await page.getAttribute(".source .path a", "href"), `vscode://file/home/me/fw${name}:${line}`);
    await inBothThemes(page, "source-paths");
    await page.goto(`${base}/#/`);
    await page.reload();
    await go();
    await page.waitForSelector(".source .path a");
    assert.equal(await page.textContent(".source .path"), `/home/me/fw${name}`);
    await page.getByRole("button", { name: "Paths" }).click();
    assert.equal(await page.getByLabel(/Folders/).inputValue(), `${folder}=/home/me/fw`, "what is no map is not kept");
    await page.getByLabel(/Editor/).fill("javascript:alert(1)");
    await page.keyboard.press("Tab");
    await page.waitForSelector(".source .path a", { state: "detached" });
  });

  await suite.check("source: counts and times of lines and instructions, arrows of branches, and the caller", {}, async (page) => {
    const [from, to] = [4686000, 4690000];
    const { rows: [[at]] } = await json(page, base, `traces/${trace}/sql?q=${encodeURIComponent(`SELECT position FROM call WHERE stream = 'cs.10' AND function = 'checksum' AND position > ${from} AND last_position < ${to} LIMIT 1`)}`);
    const { rows: truth } = await json(page, base, `traces/${trace}/sql?q=${encodeURIComponent(`SELECT pc, count(*) FROM insn WHERE stream = 'cs.10' AND position >= ${from} AND position < ${to} AND function = 'checksum' GROUP BY 1 ORDER BY 1`)}`);
    await open(page, base, `#/trace/${trace}?lane=cs.10&at=${at + 3}&from=4686200&to=4686900&select=${from}-${to}&panel=source`);
    await page.getByRole("button", { name: "Counts" }).click();
    await page.waitForSelector(".counted tbody tr");
    const shown = await page.locator(".counted tbody tr").evaluateAll((all) => all.map((r) => [Number(r.querySelector("th").textContent), Number(r.querySelector("td").title.replace(/,/g, ""))]));
    assert.deepEqual(shown, truth);
    assert.ok(await page.locator(".counted .arrows g").count() > 0);
    // A line ran as often as its instruction that ran most often.
    const path = `traces/${trace}/streams/cs.10`;
    const insns = await json(page, base, `${path}/insns?from=${at}&count=64`);
    const own = insns.find((i) => i.file && !i.inlined && i.function.startsWith("checksum"));
    const line = insns.filter((i) => i.file === own.file && i.line === own.line && i.function.startsWith("checksum")).map((i) => Number(i.pc));
    await open(page, base, `#/trace/${trace}?lane=cs.10&at=${own.insn}&from=4686200&to=4686900&select=${from}-${to}&panel=source`);
    await page.waitForSelector("ol.code li.here .cost");
    const count = Math.max(...truth.filter(([pc]) => line.includes(pc)).map(([, n]) => n));
    await page.waitForFunction((n) => document.querySelector("ol.code li.here .cost")?.title === `${n} times`, count.toLocaleString("en-US"));
    await inBothThemes(page, "source-counts");
    // On the time axis: what is between two times.
    const time = async (i) => Number((await json(page, base, `${path}/locate?unit=insn&at=${i}`)).time);
    const [begin, end] = [await time(from), await time(to)];
    const { rows: timed } = await json(page, base, `traces/${trace}/sql?q=${encodeURIComponent(`SELECT pc, count(*) FROM insn WHERE stream = 'cs.10' AND time >= ${begin} AND time < ${end} AND function = 'checksum' GROUP BY 1 ORDER BY 1`)}`);
    await open(page, base, `#/trace/${trace}?axis=time&lane=cs.10&at=${await time(own.insn) + 1}&select=${begin}-${end}&panel=source`);
    await page.getByRole("button", { name: "Counts" }).click();
    await page.getByRole("button", { name: "Counts" }).click();
    await page.waitForFunction((n) => document.querySelectorAll(".counted tbody tr").length === n && / to /.test(document.querySelector(".counted p").textContent), timed.length);
    assert.deepEqual(await page.locator(".counted tbody td:nth-child(2)").evaluateAll((all) => all.map((d) => Number(d.title.replace(/,/g, "")))), timed.map(([, n]) => n));
    await open(page, base, `#/trace/${trace}?lane=cs.10&at=${own.insn}&panel=source`);
    await page.waitForSelector("ol.code li.here");
    await page.getByRole("button", { name: "Caller" }).click();
    const call = await json(page, base, `${path}/call?at=${own.insn}`);
    await page.waitForFunction((n) => location.hash.includes(`at=${n}`), call.from - 1);
    await page.getByRole("button", { name: "Counts" }).click();
  });

  await suite.check("source: inlined functions have boxes of their own below the call stack", {}, async (page) => {
    const [stream] = (await json(page, base, `traces/${trace}`)).streams;
    const rows = await json(page, base, `traces/${trace}/streams/${stream.name}/insns?from=20000&count=2000`);
    const at = rows.find((r, i) => r.inlined && i > 100).insn;
    await open(page, base, `#/trace/${trace}?at=${at}&from=${at - 10}&to=${at + 20}&lane=${stream.name}`);
    await page.waitForSelector(".insn.here");
    await settle(page);
    await shot(page, "source-inlined");
    // Pointing at a slice shows its name and duration.
    const plot = await page.locator("#timeline").boundingBox();
    const x = plot.x + (10.5 / 30) * plot.width;
    for (let y = plot.y + 60; y < plot.y + 400; y += 7) {
      await page.mouse.move(x, y);
      await frame(page);
      if (/inlined, \d+ insn/.test(await page.textContent(".timeline"))) break;
    }
    assert.match(await page.textContent(".tip"), /^(mix|step)\s*inlined, \d+ insn/);
    await page.mouse.move(0, 0);
    const told = await page.textContent("dl.details");
    assert.match(told, /mix\.h:\d/);
    assert.match(told, /mix, inlined in /);
    await page.locator("dl.details button.link").click();
    await page.waitForSelector("ol.code li.here");
  });

  await suite.check("source: without debug information it says so", {}, async (page) => {
    await open(page, base, `#/trace/${bare}?at=3&panel=source`);
    await page.waitForFunction(() => /no image|no debug information|No line/.test(document.querySelector(".source")?.textContent ?? ""));
    assert.equal(await here(page), null);
    assert.ok(await cssColour(page, "ink"));
    await accessible(page);
  });
}
