// SPDX-License-Identifier: MIT
// Lanes as a tree (rig / core / stream) and how the user arranged it: order, hidden, folded and
// pinned nodes. Nodes are identified by names, because a growing trace may get more of them: a lane
// by the name of its stream, a group by its path, which begins with a slash.

export interface Arrangement {
  readonly order: readonly string[]; // moved nodes come first among their siblings, in this order; then the others
  readonly hidden: readonly string[]; // lanes
  readonly pinned: readonly string[]; // nodes that stay at the top
  readonly folded: readonly string[]; // folded groups; parts below a lane as "STREAM/PART"
  readonly only: string; // only lanes whose name, display name, protocol or path contains this; "": all
}

export const AS_THEY_COME: Arrangement = { order: [], hidden: [], pinned: [], folded: [], only: "" };

export interface Named {
  readonly name: string;
  readonly protocol: string;
  readonly core: string;
}

/** Data that the arrangement is based on. */
export interface Told {
  readonly rig: string;
  called(stream: string): string;
  /** Names of the groups that contain a lane, outermost first, without the rig. */
  path(stream: string): readonly string[];
}

export interface Node {
  readonly id: string;
  readonly name: string; // display name
  readonly lane: number | undefined; // index of the stream; undefined: a group
  readonly level: number; // 1: outermost
  readonly pinned: boolean;
  readonly folded: boolean;
  readonly lanes: readonly number[]; // lanes in it, from top to bottom
  readonly children: readonly Node[];
  readonly siblings: readonly string[]; // ids from top to bottom, including its own
}

export const ROOT = "/";

/** Is everything below a single root? Not if there is only one lane. */
function rooted(streams: readonly Named[]): boolean {
  return streams.length > 1;
}

/** "cs.0e" before "cs.10", "pt.9" before "pt.10": parts that are decimal numbers are compared as such. */
function byName(a: string, b: string): number {
  const [x, y] = [a.split("."), b.split(".")];
  const at = x.findIndex((part, i) => part !== y[i]);
  const [p, q] = [x[at] ?? "", y[at] ?? ""];
  if (/^\d+$/.test(p) && /^\d+$/.test(q)) return Number(p) - Number(q);
  return p < q ? -1 : p > q ? 1 : 0;
}

/** Indices of streams: kinds of streams as they come, those of one kind by name. */
function inOrder(streams: readonly Named[]): number[] {
  const kind = (i: number): string => streams[i]!.name.split(".")[0]!;
  const kinds = [...new Set(streams.map((_, i) => kind(i)))];
  return streams.map((_, i) => i)
    .sort((x, y) => kinds.indexOf(kind(x)) - kinds.indexOf(kind(y)) || byName(streams[x]!.name, streams[y]!.name));
}

/** Nodes on the outermost level: pinned ones, then the rig. */
export function treeOf(streams: readonly Named[], a: Arrangement, told: Told, all = false): Node[] {
  const seen = inOrder(streams).filter((i) => all || isShown(streams[i]!, a, told));
  const paths = new Map(seen.map((i) => [i, [...(rooted(streams) ? [""] : []), ...told.path(streams[i]!.name)]]));
  const build = (lanes: readonly number[], depth: number, above: string, pinnable: boolean): Node[] => {
    const groups = new Map<string, number[]>();
    for (const lane of lanes) {
      const path = paths.get(lane)!;
      const id = path.length <= depth ? streams[lane]!.name : depth === 0 ? ROOT : `${above === ROOT ? "" : above}/${path[depth]}`;
      groups.set(id, [...(groups.get(id) ?? []), lane]);
    }
    const place = (id: string): number => (a.order.includes(id) ? a.order.indexOf(id) : a.order.length);
    const ids = [...groups.keys()].sort((x, y) => place(x) - place(y));
    const nodes = ids.map((id): Node => {
      const [lane] = groups.get(id)!;
      const group = id.startsWith("/");
      const pinned = pinnable && a.pinned.includes(id);
      const children = group ? build(groups.get(id)!, depth + 1, id, pinnable && !pinned) : [];
      return {
        id, lane: group ? undefined : lane!, level: depth + 1, pinned, folded: group && a.folded.includes(id), children, siblings: ids,
        name: !group ? told.called(id) : id === ROOT ? told.rig : paths.get(lane!)![depth]!,
        lanes: group ? children.flatMap((c) => c.lanes) : [lane!],
      };
    });
    return nodes;
  };
  return lifted(build(seen, 0, "", true), a);
}

/** Pinned nodes are moved from their place to the top, in the order in which they were pinned. */
function lifted(roots: readonly Node[], a: Arrangement): Node[] {
  const top: Node[] = [];
  const outermost = (node: Node, by: number): Node => ({ ...node, pinned: true, level: node.level - by, children: node.children.map((c) => outermost(c, by)) });
  const rest = (nodes: readonly Node[]): Node[] => nodes.flatMap((node) => {
    if (node.pinned) {
      top.push(outermost(node, node.level - 1));
      return [];
    }
    if (node.lane !== undefined) return [node];
    const children = rest(node.children);
    return children.length === 0 ? [] : [{ ...node, children, lanes: children.flatMap((c) => c.lanes) }];
  });
  const below = rest(roots);
  top.sort((x, y) => a.pinned.indexOf(x.id) - a.pinned.indexOf(y.id));
  const ids = top.map((node) => node.id);
  return [...top.map((node) => ({ ...node, siblings: ids })), ...below];
}

/** Nodes that have a line of their own, from top to bottom. */
export function visible(nodes: readonly Node[]): Node[] {
  return nodes.flatMap((node) => [node, ...(node.folded ? [] : visible(node.children))]);
}

function isShown({ name, protocol }: Named, a: Arrangement, told: Told): boolean {
  const only = a.only.trim().toLowerCase();
  return !a.hidden.includes(name)
    && (only === "" || [name, told.called(name), protocol, ...told.path(name)].some((t) => t.toLowerCase().includes(only)));
}

/** Move a node up or down by one among its siblings. */
export function moveNode(node: Node, a: Arrangement, by: 1 | -1): Arrangement {
  const ids = [...node.siblings];
  const at = ids.indexOf(node.id);
  const to = at + by;
  if (at < 0 || to < 0 || to >= ids.length) return a;
  [ids[at], ids[to]] = [ids[to]!, ids[at]!];
  if (node.pinned && a.pinned.includes(node.id)) return { ...a, pinned: ids };
  return { ...a, order: [...ids, ...a.order.filter((id) => !ids.includes(id))] };
}

export function toggled(list: readonly string[], name: string): string[] {
  return list.includes(name) ? list.filter((n) => n !== name) : [...list, name];
}

/** Show only a node's lanes; a second call shows all again. */
export function alone(streams: readonly Named[], a: Arrangement, node: Node): Arrangement {
  const others = streams.filter((_, i) => !node.lanes.includes(i)).map((s) => s.name);
  const already = others.length > 0 && others.every((n) => a.hidden.includes(n));
  return { ...a, hidden: already ? [] : others };
}

/**
 * Groups that contain lanes, without the rig. `said`: set by users, levels separated by slashes.
 * `usual`: derived from the trace; such a group gets a line only if it contains some lanes but not
 * all.
 */
export function pathsOf(
  streams: readonly Named[], said: (stream: string) => string | undefined, usual: (stream: Named) => string,
): Map<string, readonly string[]> {
  const common = streams.map(usual);
  return new Map(streams.map((s, i) => {
    const own = said(s.name)?.split("/").map((p) => p.trim()).filter((p) => p !== "");
    if (own && own.length > 0) return [s.name, own];
    const n = common[i] === "" ? 0 : common.filter((c) => c === common[i]).length;
    return [s.name, n > 1 && n < streams.length ? [common[i]!] : []];
  }));
}
