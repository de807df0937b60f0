// SPDX-License-Identifier: MIT
// How the user arranges the lanes: what is folded, hidden, kept on top, and the order.
import { alone, moveNode, toggled, type Arrangement } from "./arrange.ts";
import type { App } from "./app.ts";
import type { Session } from "./session.ts";
import type { Sub } from "./url.ts";

export class Tree {
  readonly subs = new Set<Sub>(); // what is shown below lanes

  constructor(private readonly app: App) {}

  arrange(change: Partial<Arrangement>): void {
    const s = this.app.session;
    if (!s) return;
    s.arrangement = { ...s.arrangement, ...change };
    this.app.moved();
  }

  fold(id: string): void {
    this.arrange({ folded: toggled(this.app.session?.arrangement.folded ?? [], id) });
  }

  pin(id: string): void {
    const pinned = toggled(this.app.session?.arrangement.pinned ?? [], id);
    this.arrange({ pinned });
    this.app.say(pinned.includes(id) ? "Kept on top." : "No longer kept on top.");
  }

  move(id: string, by: 1 | -1): void {
    const node = this.app.session?.node(id);
    if (node) this.arrange(moveNode(node, this.app.session!.arrangement, by));
  }

  /** Show a node alone; a second call shows all again. */
  alone(id: string): void {
    const s = this.app.session;
    const node = s?.node(id);
    if (!s || !node) return;
    this.arrange(alone(s.trace.streams, s.arrangement, node));
    this.app.say(s.arrangement.hidden.length > 0 ? `Only ${node.name} is shown.` : "All lanes are shown.");
    this.keepSelected(s);
  }

  hide(id: string): void {
    const s = this.app.session;
    const node = s?.node(id);
    if (!s || !node) return;
    this.arrange({ hidden: [...s.arrangement.hidden, ...node.lanes.map((lane) => s.trace.streams[lane]!.name)] });
    this.app.say(`${node.name} is hidden; U shows all lanes.`);
    this.keepSelected(s);
  }

  /** Keep the selected lane visible, if any lane is. */
  private keepSelected(s: Session): void {
    const { lanes } = s;
    if (lanes.length > 0 && !lanes.includes(s.lane)) this.app.selectLane(lanes.find((lane) => lane > s.lane) ?? lanes.at(-1)!);
  }

  /** Select the visible lane above or below the selected one. */
  nextLane(by: 1 | -1): void {
    const s = this.app.session;
    const lane = s?.lanes[s.lanes.indexOf(s.lane) + by];
    if (lane !== undefined) this.app.selectLane(lane);
  }

  /** Open or close a lane's call stack; `all`: show all of its levels, or few. */
  toggleLane(lane: number, all = false): void {
    const s = this.app.session;
    if (!s) return;
    const which = all ? s.full : s.open;
    if (!which.delete(lane)) which.add(lane);
    // Other parts below a lane are folded together with the call stack, and shown again with it.
    const name = s.trace.streams[lane]!.name;
    const others = s.arrangement.folded.filter((id) => id !== `${name}/states` && id !== `${name}/counters`);
    const parts = s.open.has(lane) ? [] : [...this.subs].map((sub) => `${name}/${sub}`);
    if (!all) s.arrangement = { ...s.arrangement, folded: [...others, ...parts] };
    this.app.moved();
  }

  /** Show or hide something below all lanes. */
  toggleSub(sub: Sub): void {
    if (!this.subs.delete(sub)) this.subs.add(sub);
    // If it was removed from single lanes, it is shown there again.
    this.arrange({ folded: this.app.session?.arrangement.folded.filter((id) => !id.endsWith(`/${sub}`)) ?? [] });
  }
}
