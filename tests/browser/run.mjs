// SPDX-License-Identifier: MIT
// Tests of the page in Chromium.
//
//   node tests/browser/run.mjs --mock [--part PART]   the page over a mock server; PART: states, budgets
//   node tests/browser/run.mjs --lab [--part PART]    a server of its own, with captures pushed to it;
//                                                     PART: server, panels, views, truth;
//                                                     --spots 200 --seed 2: more of truth, at other places
//   node tests/browser/run.mjs --server URL [--tls URL] [--trace ID] [--live ID]
//                                                     a real server with a pushed capture
//
// TL_BUILD_DIR is the build folder (default: build): it has the page, the packages, and gets the
// screenshots. Exit status 0 if all passed.
import { parseArgs } from "node:util";
import { launch, Suite } from "./harness.mjs";
import { callChecks, compareChecks } from "./calls.mjs";
import { findChecks } from "./find.mjs";
import { foldChecks } from "./folds.mjs";
import { frameChecks } from "./frame.mjs";
import { FAR, gapChecks, missingTrace, waitingTrace } from "./gaps.mjs";
import { fewChecks, laneChecks } from "./lanes.mjs";
import { Lab } from "./lab.mjs";
import { loginChecks } from "./login.mjs";
import { arrangeChecks, calledChecks } from "./arrange.mjs";
import { listChecks } from "./list.mjs";
import { listen } from "./mock/server.mjs";
import { noteChecks } from "./notes.mjs";
import { osdChecks } from "./osd.mjs";
import { overviewChecks } from "./overview.mjs";
import { perfChecks } from "./perf.mjs";
import { budgetChecks, pageChecks } from "./page.mjs";
import { questionChecks } from "./questions.mjs";
import { followChecks, serverChecks } from "./server.mjs";
import { slowChecks } from "./slow.mjs";
import { sourceChecks } from "./source.mjs";
import { tailChecks } from "./tail.mjs";
import { timeChecks } from "./time.mjs";
import { handChecks } from "./hands.mjs";
import { interruptChecks, spreadChecks, sqlChecks } from "./timing.mjs";
import { togetherChecks } from "./together.mjs";
import { truthChecks } from "./truth.mjs";

/** What is checked on the mock server and on a lab, in parts of about the same length that can run side by side. */
const MOCK = {
  async states(mock) {
    await pageChecks(suite, mock);
    await fewChecks(suite, mock);
  },
  async budgets(mock) {
    await arrangeChecks(suite, mock);
    await budgetChecks(suite, mock);
    await slowChecks(suite, mock);
  },
};
const LAB = {
  async server(lab, on) {
    await loginChecks(suite);
    await lab.whileLive(async (live) => {
      await tailChecks(suite, { ...on, live });
      await followChecks(suite, { ...on, live });
    });
    // The rest while nothing grows: pages are drawn anew, and the rig and the server work, as long as something does.
    await serverChecks(suite, on);
    await handChecks(suite, on);
    await frameChecks(suite, { ...on, plain: await lab.recorded("dhry_riscv.zstf") });
    const real = await lab.real("juno_r1_1", "ETB_0");
    if (real) await serverChecks(suite, { ...on, trace: real, title: "board" });
    else suite.skip("server: a real capture", "no data");
  },
  async panels(lab, on) {
    await findChecks(suite, on);
    await callChecks(suite, on);
    await questionChecks(suite, on);
    await compareChecks(suite, { ...on, same: await lab.samePath() });
    const cortex = await lab.cortex();
    const gaps = await lab.pushed("gaps", missingTrace().write(lab.dir, "gaps", { clock: 1e9 }));
    await timeChecks(suite, { ...on, cortex, late: gaps });
    await interruptChecks(suite, { ...on, cortex });
    await spreadChecks(suite, on);
    await sqlChecks(suite, on);
    const osd = await lab.osd();
    await osdChecks(suite, { ...on, trace: osd });
    await sourceChecks(suite, { ...on, bare: osd });
    await noteChecks(suite, on);
    await togetherChecks(suite, { ...on, other: osd, third: gaps });
  },
  async views(lab, on) {
    const recording = await lab.recording("pt-five-tasks");
    await laneChecks(suite, { ...on, osd: await lab.osd(), cortex: await lab.cortex(), bare: recording?.bare });
    const gaps = {
      ...on, trace: await lab.pushed("gaps", missingTrace().write(lab.dir, "gaps", { clock: 1e9 })),
      far: await lab.pushed("far", missingTrace(FAR).write(lab.dir, "far")), full: on.trace,
      waits: await lab.pushed("waits", waitingTrace().write(lab.dir, "waits", { clock: 1e9 })),
    };
    await gapChecks(suite, gaps);
    await foldChecks(suite, gaps);
    await overviewChecks(suite, {
      ...on, dir: lab.dir, older: await lab.real("Snowball", "ETB_0", "older"),
      noimage: await lab.pushed("noimage", missingTrace().write(lab.dir, "gaps", { clock: 1e9, image: false })),
      ...await lab.undecoded(),
    });
    if (recording) await perfChecks(suite, { ...on, ...recording });
    else suite.skip("perf: a recording of Linux", "no data");
    await calledChecks(suite, on);
    await listChecks(suite, { ...on, dir: lab.dir }); // drops what was written above
  },
  async truth(lab) {
    await truthChecks(suite, lab, { spots: Number(args.spots ?? 80), zooms: args.spots ? 8 : 4, seed: Number(args.seed ?? 1) });
  },
};

const { values: args } = parseArgs({
  options: {
    mock: { type: "boolean", default: false },
    lab: { type: "boolean", default: false },
    part: { type: "string" },
    server: { type: "string" },
    tls: { type: "string" },
    trace: { type: "string" },
    live: { type: "string" },
    only: { type: "string" },
    spots: { type: "string" },
    seed: { type: "string" },
  },
});
if (!args.mock && !args.lab && !args.server) {
  console.error("run.mjs: say --mock, --lab or --server URL");
  process.exit(2);
}

const all = args.mock ? MOCK : LAB;
if (args.part && !all[args.part]) {
  console.error(`run.mjs: --part is one of ${Object.keys(all).join(", ")}`);
  process.exit(2);
}
const parts = args.part ? [all[args.part]] : Object.values(all);

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
      for (const part of parts) await part(mock);
    } finally {
      await mock.close();
    }
  }
  if (args.lab) {
    for (const part of parts) {
      const lab = new Lab();
      try {
        await lab.start();
        await part(lab, { server: lab.url, tls: lab.tls, trace: await lab.finished() });
      } finally {
        await lab.close();
      }
    }
  }
  if (args.server) {
    await serverChecks(suite, args);
    await followChecks(suite, args);
  }
} finally {
  await browser.close();
}
process.exit(suite.end());
