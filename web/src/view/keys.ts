// SPDX-License-Identifier: MIT
// The table of keys, used for dispatch and for the help page. `code` is KeyboardEvent.code, so that
// WASD is in the same place on every layout; punctuation, whose place depends on the layout, is
// matched by `key`.

export type Command =
  | "zoomIn" | "zoomOut" | "panLeft" | "panRight" | "home" | "end" | "whole" | "frame" | "foldTime" | "unfoldTime"
  | "laneUp" | "laneDown" | "toggleLane" | "laneHigher" | "laneLower" | "pinLane" | "aloneLane" | "hideLane" | "allLanes" | "everyLane" | "stepBack" | "stepForward" | "eventBack" | "eventForward"
  | "gapBack" | "gapForward" | "callBack" | "callForward" | "hitBack" | "hitForward" | "states" | "counters" | "note" | "bookmark" | "noteForward" | "noteBack" | "search" | "follow" | "axis" | "panel" | "table" | "theme" | "commands" | "help"
  | "range" | "escape";

export interface Binding {
  readonly command: Command;
  readonly code?: string;
  readonly key?: string;
  readonly shift?: boolean; // undefined: either
  readonly ctrl?: boolean;
  /** Repeats once per frame while it is held. */
  readonly held?: boolean;
  /** Name on the help page. */
  readonly shown: string;
}

export interface Group {
  readonly title: string;
  readonly commands: readonly { readonly command: Command; readonly text: string }[];
}

export const BINDINGS: readonly Binding[] = [
  { command: "zoomIn", code: "KeyW", held: true, shown: "W" },
  { command: "zoomIn", key: "+", shown: "+" },
  { command: "zoomIn", key: "=", shown: "=" },
  { command: "zoomOut", code: "KeyS", held: true, shown: "S" },
  { command: "zoomOut", key: "-", shown: "−" },
  { command: "panLeft", code: "KeyA", held: true, shown: "A" },
  { command: "panLeft", code: "ArrowLeft", held: true, shown: "←" },
  { command: "panRight", code: "KeyD", held: true, shown: "D" },
  { command: "panRight", code: "ArrowRight", held: true, shown: "→" },
  { command: "home", code: "Home", shown: "Home" },
  { command: "end", code: "End", shown: "End" },
  { command: "whole", code: "Digit0", shown: "0" },
  { command: "frame", code: "KeyZ", shown: "Z" },
  { command: "range", code: "KeyR", shown: "R" },
  { command: "foldTime", code: "KeyX", shift: false, ctrl: false, shown: "X" },
  { command: "unfoldTime", code: "KeyX", shift: true, ctrl: false, shown: "Shift X" },
  { command: "laneUp", code: "ArrowUp", shift: false, shown: "↑" },
  { command: "laneDown", code: "ArrowDown", shift: false, shown: "↓" },
  { command: "laneHigher", code: "ArrowUp", shift: true, shown: "Shift ↑" },
  { command: "laneLower", code: "ArrowDown", shift: true, shown: "Shift ↓" },
  { command: "pinLane", code: "KeyO", ctrl: false, shown: "O" },
  { command: "aloneLane", code: "KeyE", ctrl: false, shown: "E" },
  { command: "hideLane", code: "KeyH", ctrl: false, shown: "H" },
  { command: "allLanes", code: "KeyU", ctrl: false, shown: "U" },
  { command: "toggleLane", code: "Enter", shown: "Enter" },
  { command: "stepBack", key: ",", shown: "," },
  { command: "stepForward", key: ".", shown: "." },
  { command: "eventBack", key: "[", shown: "[" },
  { command: "eventForward", key: "]", shown: "]" },
  { command: "gapForward", code: "KeyG", shift: false, shown: "G" },
  { command: "gapBack", code: "KeyG", shift: true, shown: "Shift G" },
  { command: "callForward", code: "KeyC", shift: false, shown: "C" },
  { command: "callBack", code: "KeyC", shift: true, shown: "Shift C" },
  { command: "everyLane", code: "KeyJ", shown: "J" },
  { command: "hitForward", code: "KeyN", shift: false, shown: "N" },
  { command: "hitBack", code: "KeyN", shift: true, shown: "Shift N" },
  { command: "search", key: "/", shown: "/" },
  { command: "search", code: "KeyF", ctrl: true, shown: "Ctrl F" },
  { command: "follow", code: "KeyF", ctrl: false, shown: "F" },
  { command: "axis", code: "KeyT", shown: "T" },
  { command: "states", code: "KeyP", ctrl: false, shown: "P" },
  { command: "counters", code: "KeyV", shown: "V" },
  { command: "note", code: "KeyM", shift: false, shown: "M" },
  { command: "bookmark", code: "KeyM", shift: true, shown: "Shift M" },
  { command: "noteForward", code: "KeyB", shift: false, shown: "B" },
  { command: "noteBack", code: "KeyB", shift: true, shown: "Shift B" },
  { command: "panel", code: "KeyI", shown: "I" },
  { command: "table", code: "KeyL", shown: "L" },
  { command: "commands", code: "KeyK", ctrl: true, shown: "Ctrl K" },
  { command: "theme", code: "KeyK", shown: "K" },
  { command: "help", key: "?", shown: "?" },
  { command: "escape", code: "Escape", shown: "Esc" },
];

export const GROUPS: readonly Group[] = [
  {
    title: "Move",
    commands: [
      { command: "zoomIn", text: "Zoom in" },
      { command: "zoomOut", text: "Zoom out" },
      { command: "panLeft", text: "Pan left (Shift: faster)" },
      { command: "panRight", text: "Pan right (Shift: faster)" },
      { command: "home", text: "To the beginning" },
      { command: "end", text: "To the end" },
      { command: "whole", text: "The whole trace" },
      { command: "frame", text: "Fit the selection, the call at the cursor, its caller, the lane" },
      { command: "range", text: "Type from where to where" },
      { command: "foldTime", text: "Fold empty time in view away" },
      { command: "unfoldTime", text: "Show folded time again" },
      { command: "follow", text: "Follow the live edge" },
    ],
  },
  {
    title: "Cursor",
    commands: [
      { command: "stepBack", text: "One instruction or bucket back" },
      { command: "stepForward", text: "One instruction or bucket forward" },
      { command: "eventBack", text: "Previous event or gap" },
      { command: "eventForward", text: "Next event or gap" },
      { command: "gapBack", text: "Previous gap" },
      { command: "gapForward", text: "Next gap" },
      { command: "callBack", text: "Previous call of this function" },
      { command: "callForward", text: "Next call of this function" },
      { command: "everyLane", text: "These of all lanes, or of the selected one" },
      { command: "laneUp", text: "Lane above" },
      { command: "laneDown", text: "Lane below" },
      { command: "toggleLane", text: "Open or close the lane's call stack" },
    ],
  },
  {
    title: "Lanes and groups",
    commands: [
      { command: "laneHigher", text: "Move the lane up" },
      { command: "laneLower", text: "Move the lane down" },
      { command: "pinLane", text: "Keep on top (on or off)" },
      { command: "aloneLane", text: "Show only this, or all again" },
      { command: "hideLane", text: "Hide" },
      { command: "allLanes", text: "Show all lanes" },
    ],
  },
  {
    title: "Find",
    commands: [
      { command: "search", text: "Search" },
      { command: "hitForward", text: "Next hit" },
      { command: "hitBack", text: "Previous hit" },
      { command: "note", text: "Write a note at the cursor or for the selection" },
      { command: "bookmark", text: "Set a bookmark at the cursor" },
      { command: "noteForward", text: "Next note" },
      { command: "noteBack", text: "Previous note" },
    ],
  },
  {
    title: "Show",
    commands: [
      { command: "axis", text: "Instructions or time" },
      { command: "states", text: "Processes and modes below the lanes" },
      { command: "counters", text: "Counters below the lanes" },
      { command: "panel", text: "Side panel" },
      { command: "table", text: "Lanes as a table" },
      { command: "commands", text: "Command palette" },
      { command: "theme", text: "Light or dark" },
      { command: "help", text: "This help" },
      { command: "escape", text: "Close, or clear the selection" },
    ],
  },
];

export interface KeyLike {
  readonly code: string;
  readonly key: string;
  readonly shiftKey: boolean;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
}

/** The binding for a key press, if any. */
export function match(event: KeyLike): Binding | undefined {
  if (event.altKey) return undefined;
  const ctrl = event.ctrlKey || event.metaKey;
  return BINDINGS.find((b) => (b.code !== undefined ? b.code === event.code : b.key === event.key)
    && (b.ctrl ?? false) === ctrl && (b.shift === undefined || b.shift === event.shiftKey));
}

/** The keys of a command, for display. */
export function shownKeys(command: Command): string[] {
  return BINDINGS.filter((b) => b.command === command).map((b) => b.shown);
}
