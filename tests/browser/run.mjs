// SPDX-License-Identifier: MIT
// Tests of the page in Chromium.
//
//   node tests/browser/run.mjs --mock                 the page over a mock server
//   node tests/browser/run.mjs --lab                  a server of its own, with captures pushed to it
//   node tests/browser/run.mjs --server URL [--tls URL] [--trace ID] [--live ID]
//                                                     a real server with a pushed capture
//
// TL_BUILD_DIR is the build folder (default: build): it has the page, the packages, and gets the
// screenshots. Exit status 0 if all passed.
import { parseArgs } from "node:util";
import { launch, Suite } from "./harness.mjs";
import { callChecks, compareChecks } from "./calls.mjs";
import { findChecks } from "./find.mjs";
import { frameChecks } from "./frame.mjs";
import { FAR, gapChecks, missingTrace } from "./gaps.mjs";
import { laneChecks } from "./lanes.mjs";
import { Lab } from "./lab.mjs";
import { loginChecks } from "./login.mjs";
import { arrangeChecks, calledChecks } from "./arrange.mjs";
import { listChecks } from "./list.mjs";
import { listen } from "./mock/server.mjs";
import { noteChecks } from "./notes.mjs";
import { osdChecks } from "./osd.mjs";
import { overviewChecks } from "./overview.mjs";
import { pageChecks } from "./page.mjs";
import { serverChecks } from "./server.mjs";
import { slowChecks } from "./slow.mjs";
import { sourceChecks } from "./source.mjs";
import { togetherChecks } from "./together.mjs";

const { values: args } = parseArgs({
  options: {
    mock: { type: "boolean", default: false },
    lab: { type: "boolean", default: false },
    server: { type: "string" },
    tls: { type: "string" },
    trace: { type: "string" },
    live: { type: "string" },
    only: { type: "string" },
  },
});
if (!args.mock && !args.lab && !args.server) {
  console.error("run.mjs: say --mock, --lab or --server URL");
  process.exit(2);
}

const browser = await launch();
const suite = new Suite(browser);
if (args.only) {
  const check = suite.check.bind(suite);
  suite.check = (name, options, body) => (name.includes(args.only) ? check(name, options, body) : undefined);
}
try {
  if (args.mock) {
    const mock = await listen();
    try {
      await arrangeChecks(suite, mock);
      await pageChecks(suite, mock);
      await slowChecks(suite, mock);
    } finally {
      await mock.close();
    }
  }
  if (args.lab) {
    await loginChecks(suite);
    const lab = new Lab();
    try {
      await lab.start();
      const where = { server: lab.url, tls: lab.tls };
      const finished = await lab.finished();
      await serverChecks(suite, { ...where, trace: finished, live: await lab.live() });
      await findChecks(suite, { ...where, trace: finished });
      await callChecks(suite, { ...where, trace: finished });
      await compareChecks(suite, { ...where, trace: finished });
      const osd = await lab.osd();
      await osdChecks(suite, { ...where, trace: osd });
      await sourceChecks(suite, { ...where, trace: finished, bare: osd });
      await laneChecks(suite, { ...where, trace: finished, osd });
      await noteChecks(suite, { ...where, trace: finished });
      await togetherChecks(suite, { ...where, trace: finished, other: osd });
      await gapChecks(suite, {
        ...where, trace: await lab.pushed("gaps", missingTrace().write(lab.dir, "gaps", { clock: 1e9 })),
        far: await lab.pushed("far", missingTrace(FAR).write(lab.dir, "far")),
      });
      await overviewChecks(suite, {
        ...where, trace: finished, dir: lab.dir,
        noimage: await lab.pushed("noimage", missingTrace().write(lab.dir, "gaps", { clock: 1e9, image: false })),
      });
      await calledChecks(suite, { ...where, trace: finished });
      await listChecks(suite, { ...where, dir: lab.dir });
      await frameChecks(suite, { ...where, trace: finished, plain: await lab.recorded("dhry_riscv.zstf") });
      const real = await lab.real("juno_r1_1", "ETB_0");
      if (real) await serverChecks(suite, { ...where, trace: real, title: "board" });
      else suite.skip("server: a real capture", "no data");
    } finally {
      await lab.close();
    }
  }
  if (args.server) await serverChecks(suite, args);
} finally {
  await browser.close();
}
process.exit(suite.end());
