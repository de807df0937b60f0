// SPDX-License-Identifier: MIT
// Panels and dialogs that are loaded when one of them is first opened; they are bundled into a separate file
// (build.mjs).
export { CallsPanel } from "./calls.ts";
export { ComparePanel } from "./compare.ts";
export { SourcePanel } from "./source.ts";
export { EventsPanel, FindPanel } from "./hits.ts";
export { helpDialog } from "./help.ts";
export { InterruptsPanel } from "./interrupts.ts";
export { laneTable } from "./lanes.ts";
export { ListDialogs } from "./listdialogs.ts";
export { LogPanel } from "./log.ts";
export { NotesPanel } from "./notes.ts";
export { SqlPanel } from "./sql.ts";
export { StatsPanel } from "./statistics.ts";
export { TailPanel } from "./tail.ts";
export { TogetherPanel } from "./together.ts";
