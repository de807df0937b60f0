// SPDX-License-Identifier: MIT
// Panels that are loaded when one of them is first opened; they are bundled into a separate file
// (build.mjs).
export { CallsPanel } from "./calls.ts";
export { ComparePanel } from "./compare.ts";
export { SourcePanel } from "./source.ts";
export { EventsPanel, FindPanel } from "./hits.ts";
export { InterruptsPanel } from "./interrupts.ts";
export { LogPanel } from "./log.ts";
export { NotesPanel } from "./notes.ts";
export { SqlPanel } from "./sql.ts";
export { TogetherPanel } from "./together.ts";
