// SPDX-License-Identifier: MIT
// Which lanes are shown, and in which order: pinned ones stay on top. Lanes are known by their streams'
// names, since a trace that grows may get more of them.

export interface Arrangement {
  readonly order: readonly string[]; // those that were moved come first, in this order; then the others
  readonly hidden: readonly string[];
  readonly pinned: readonly string[];
  readonly only: string; // lanes whose name, called name or protocol has this; "": all
}

export const AS_THEY_COME: Arrangement = { order: [], hidden: [], pinned: [], only: "" };

export interface Named {
  readonly name: string;
  readonly protocol: string;
}

/** Lanes from top to bottom, all of them, by index. */
export function inOrder(streams: readonly Named[], a: Arrangement): number[] {
  const place = (name: string): number => {
    const at = a.order.indexOf(name);
    return at < 0 ? a.order.length : at;
  };
  const pinned = (name: string): number => (a.pinned.includes(name) ? 0 : 1);
  return streams.map((_, i) => i).sort((x, y) => {
    const [p, q] = [streams[x]!.name, streams[y]!.name];
    return pinned(p) - pinned(q) || place(p) - place(q) || x - y;
  });
}

/** Those that are to be seen. */
export function shown(streams: readonly Named[], a: Arrangement, called: (name: string) => string): number[] {
  const only = a.only.trim().toLowerCase();
  return inOrder(streams, a).filter((i) => {
    const { name, protocol } = streams[i]!;
    return !a.hidden.includes(name)
      && (only === "" || [name, called(name), protocol].some((t) => t.toLowerCase().includes(only)));
  });
}

/** A lane one place up or down. */
export function moveLane(streams: readonly Named[], a: Arrangement, name: string, by: 1 | -1): Arrangement {
  const names = inOrder(streams, a).map((i) => streams[i]!.name);
  const at = names.indexOf(name);
  const to = at + by;
  if (at < 0 || to < 0 || to >= names.length) return a;
  [names[at], names[to]] = [names[to]!, names[at]!];
  return { ...a, order: names };
}

export function toggled(list: readonly string[], name: string): string[] {
  return list.includes(name) ? list.filter((n) => n !== name) : [...list, name];
}
