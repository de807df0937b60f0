// SPDX-License-Identifier: MIT
// Where sources are on the user's machine, and how an editor is asked to open them: kept in the browser, since it is
// the machine's business and not the trace's. Folders are mapped as by the command's --source-map.

const KEY = "tracelake.sources";

export interface Sources {
  readonly maps: readonly string[]; // "A=B": folder A is B here
  readonly editor: string; // address with {path} and {line}, "": no editor
}

/** Editors that are known to be opened so. */
export const EDITORS: readonly (readonly [string, string])[] = [
  ["VS Code", "vscode://file{path}:{line}"], ["VSCodium", "vscodium://file{path}:{line}"], ["JetBrains", "jetbrains://idea/navigate/reference?path={path}:{line}"],
];

/** "A=B" with both of them; undefined: it is not. */
function parts(map: string): [string, string] | undefined {
  const [, from, to] = /^\s*([^=]+?)\/*\s*=\s*(.+?)\/*\s*$/.exec(map) ?? [];
  return from === undefined || to === undefined ? undefined : [from, to];
}

export function isMap(text: string): boolean {
  return parts(text) !== undefined;
}

/** A path as it is here: the longest folder that fits counts. */
export function mapped(path: string, maps: readonly string[]): string {
  let best: [string, string] | undefined;
  for (const map of maps) {
    const one = parts(map);
    if (one && (path === one[0] || path.startsWith(`${one[0]}/`)) && one[0].length > (best?.[0].length ?? -1)) best = one;
  }
  return best ? best[1] + path.slice(best[0].length) : path;
}

/** The address that opens a line; "": there is no editor, or the path does not say where it is. */
export function editorAddress(editor: string, path: string, line: number): string {
  if (!/^(?!javascript:|data:|vbscript:)[a-z][a-z0-9+.-]*:/i.test(editor) || !/^(\/|[a-z]:[\\/])/i.test(path)) return "";
  const whole = path.startsWith("/") ? path : `/${path.replaceAll("\\", "/")}`;
  const encoded = encodeURI(whole).replace(/[?#&]/g, encodeURIComponent);
  return editor.replaceAll("{path}", encoded).replaceAll("{line}", String(Math.max(1, line)));
}

/** What is stored may be anything. */
export function sources(): Sources {
  let told: Partial<Sources> = {};
  try {
    told = Object(JSON.parse(localStorage.getItem(KEY) ?? "{}")) as Partial<Sources>;
  } catch { /* as if there was none */ }
  return {
    maps: Array.isArray(told.maps) ? told.maps.filter((m) => typeof m === "string" && isMap(m)) : [],
    editor: typeof told.editor === "string" ? told.editor : "",
  };
}

export function keepSources(all: Sources): void {
  localStorage.setItem(KEY, JSON.stringify(all));
}
