// SPDX-License-Identifier: MIT
// README's picture: a part of what `tracelake view` shows of a simulated capture with its configuration and program.
// usage: picture.mjs OUT.png
import { spawn } from "node:child_process";
import path from "node:path";
import { build, launch, settle } from "./harness.mjs";
import { Lab } from "./lab.mjs";

const PLACE = "?axis=insn&from=100000&to=130000"; // near enough to see calls
const SIZE = { width: 1280, height: 640 };

/** The address that `view` prints first. */
function addressOf(child) {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (piece) => {
      text += piece;
      if (text.includes("\n")) resolve(text.slice(0, text.indexOf("\n")));
    });
    child.on("exit", (status) => reject(new Error(`view ended with ${status}`)));
  });
}

const lab = new Lab();
const browser = await launch();
let view;
try {
  await lab.start();
  const files = ["board.bin", "board.ini", "app.elf"].map((name) => path.join(lab.dir, name));
  await lab.run("tracelake-rig", ["--kind", "etm", "--server", lab.url, "--bytes", "400000", "--rate", "100000000",
    "--save", files[0], "--config", files[1], "--image", files[2]]);
  view = spawn(path.join(build, "tracelake"), ["view", "--no-browser", ...files],
    { stdio: ["ignore", "pipe", "ignore"], env: { ...process.env, XDG_CACHE_HOME: lab.dir } });
  const address = await addressOf(view);
  const page = await (await browser.newContext({ viewport: SIZE, colorScheme: "light" })).newPage();
  await page.goto(address.replace(/\?.*|$/, PLACE));
  await page.waitForSelector(".head");
  await settle(page);
  await page.screenshot({ path: process.argv[2] });
} finally {
  view?.kill("SIGINT");
  await browser.close();
  await lab.close();
}
