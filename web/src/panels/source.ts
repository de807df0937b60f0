// SPDX-License-Identifier: MIT
// Source code around the cursor, beside the instructions: the text if available, otherwise the file
// and line; and the chain of inlined calls that leads to the instruction.
import type { SourceReply } from "../../gen/answers.ts";
import { html, nothing, type TemplateResult } from "lit-html";
import { ref } from "lit-html/directives/ref.js";
import * as api from "../data/api.ts";
import type { App } from "../view/app.ts";
import { ask, type Asked } from "../data/asking.ts";
import { call } from "../data/calls.ts";
import { grouped, short } from "../base/format.ts";
import { Lru } from "../base/lru.ts";
import type { InsnRow } from "../data/model.ts";
import type { Session } from "../view/session.ts";
import { editorAddress, mapped, sources } from "../view/sources.ts";
import { Counted } from "./counted.ts";
import { InsnList } from "./insnlist.ts";
import { lengthText } from "./reach.ts";
import { shortPlace } from "./sourcelink.ts";
import { SourceSetting } from "./sourcesetting.ts";

interface SourceFile {
  readonly file: string;
  readonly lines: readonly string[] | undefined;
  readonly why: string;
}

interface Frame {
  readonly what: string;
  readonly file: string;
  readonly line: number;
}

/** Number of lines around the current one that can be scrolled to. */
const AROUND = 150;
const FILES = 16;
/** A step gives up after this many instructions of one line. */
const STEP_MOST = 1024;

async function fetchSource(path: string, signal: AbortSignal): Promise<SourceFile> {
  const told = await api.json(path, signal) as Partial<SourceReply>;
  const text = typeof told.text === "string" ? told.text : undefined;
  return { file: String(told.file ?? ""), lines: text?.split("\n"), why: String(told.why ?? "") };
}

/** The instruction's own line first, then the call sites of the functions around it. */
function framesOf(row: InsnRow): Frame[] {
  const inner = [...row.inlined].reverse();
  const names = [...inner.map((i) => i.fn || "?"), row.fn || "the function"];
  return names.map((what, i) => (i === 0 ? { what, file: row.file, line: row.line }
    : { what, file: inner[i - 1]!.file, line: inner[i - 1]!.line }));
}

export class SourcePanel {
  private readonly list: InsnList;
  private readonly files = new Lru<string, SourceFile>(FILES);
  private asked: Asked<SourceFile> | undefined;
  private frame = 0;
  private frameOf = ""; // the place at which the frame was chosen
  private shown = ""; // what was last scrolled to

  private readonly counted: Counted;
  private counting = false;
  private readonly setting: SourceSetting;

  constructor(private readonly app: App) {
    this.list = new InsnList(app);
    this.counted = new Counted(app);
    this.setting = new SourceSetting(app);
  }

  view(s: Session): TemplateResult {
    const at = s.cursorInsn;
    const { stream } = s;
    if (!stream || at === undefined) {
      return html`<p class="muted hint">Click in a lane to see the source of what was executed there.</p>`;
    }
    s.insns(s.lane)?.want(at, at + 1, stream.insns);
    const row = s.insns(s.lane)?.get(at);
    return html`<div class="source">${row ? this.place(s, at, row) : html`<p class="muted hint">…</p>`}</div>
      ${this.counting && row && row.fn !== "" ? this.counted.view(s, row.fn) : this.list.view(s)}`;
  }

  private place(s: Session, at: number, row: InsnRow): TemplateResult {
    const frames = framesOf(row);
    const here = `${row.fn}/${row.inlined.map((i) => i.fn + i.line).join("/")}`;
    if (this.frameOf !== here) {
      this.frameOf = here;
      this.frame = 0;
    }
    const frame = frames[this.frame] ?? frames[0]!;
    const got = this.file(s, at, frame);
    return html`<div class="framebar">
        <ol class="frames" aria-label="Functions, innermost first">${frames.map((f, i) => html`<li>
          <button class="plain ${i < frames.length - 1 ? "inlined" : ""}" aria-pressed=${i === this.frame} title=${f.file || "location unknown"}
            @click=${() => { this.frame = i; this.app.changed(); }}><b>${f.what}</b>${i < frames.length - 1 ? " (inlined)" : ""}
            ${f.file ? html`<span class="muted">${shortPlace(f.file, f.line)}</span>` : nothing}</button></li>`)}</ol>
        <span class="buttons"><button class="action" title="Go to the start of the previous line" @click=${() => void this.step(s, -1)}>Previous line</button>
        <button class="action" title="Go to the next line" @click=${() => void this.step(s, 1)}>Next line</button>
        <button class="action" title="Go to the call that led here" @click=${() => void this.toCaller(s, at)}>Caller</button>
        <button class="action" aria-pressed=${this.counting} title="How often and how long lines and instructions of this function ran in the selection or the view"
          @click=${() => { this.counting = !this.counting; this.counted.again(); this.app.changed(); }}>Counts</button>
        ${this.setting.button()}</span></div>
      ${this.setting.view(frame.file)}${this.text(s, frame, got, row.fn)}`;
  }

  /** Go to the instruction that called the function at the cursor. */
  private async toCaller(s: Session, at: number): Promise<void> {
    const c = await call(s.trace, s.stream!.name, at, undefined, AbortSignal.timeout(20000)).catch(() => undefined);
    if (!c || c.kind === "root" || c.from === 0) this.app.say("Its caller is not in the trace.");
    else void this.app.goTo(c.from - 1);
  }

  /** Files are requested by instruction: permission to see the trace includes its files. */
  private file(s: Session, at: number, frame: Frame): SourceFile | undefined {
    const key = `${s.trace.id}/${s.trace.generation}/${frame.file}`;
    const known = frame.file === "" ? undefined : this.files.get(key);
    if (known) return known;
    const path = `${api.streamPath(s.trace.id, s.stream!.name)}/source?at=${at}&frame=${this.frame}`;
    const wanted = frame.file === "" ? path : key;
    this.asked = ask(this.asked, wanted, (signal) => fetchSource(path, signal), () => this.app.changed());
    if (this.asked.error !== "") return { file: frame.file, lines: undefined, why: this.asked.error };
    if (this.asked.answer && frame.file !== "") this.files.set(key, this.asked.answer);
    return this.asked.answer;
  }

  private text(s: Session, frame: Frame, got: SourceFile | undefined, fn: string): TemplateResult {
    if (!got) return html`<p class="muted hint">Loading…</p>`;
    if (!got.lines) {
      return html`<p class="hint">${frame.file ? this.here(frame, true) : nothing}</p>
        <p class="muted hint">${got.why || "No source line is known for this instruction."}</p>`;
    }
    const first = Math.max(1, frame.line - AROUND);
    const last = Math.min(got.lines.length, frame.line + AROUND);
    const key = `${frame.file}:${frame.line}`;
    const scroll = (element: Element | undefined): void => {
      if (!element || this.shown === key) return;
      this.shown = key;
      // Once the lines after it are there, too.
      requestAnimationFrame(() => {
        const list = element.parentElement as HTMLElement;
        const row = element as HTMLElement;
        list.scrollTop = row.offsetTop - list.offsetTop - (list.clientHeight - row.clientHeight) / 2;
      });
    };
    const used = this.linesNear(s, frame.file);
    const counts = this.counting && fn !== "" ? this.counted.counts(s, fn).answer : undefined;
    const cost = (n: number): TemplateResult | typeof nothing => {
      if (!counts) return nothing;
      const line = this.counted.line(counts, frame.file, n);
      return html`<span class="cost" title=${line ? `${grouped(line.count)} times` : ""}>${line ? `${short(line.count)}×` : ""}</span>
        ${s.stream!.hasTime ? html`<span class="cost">${line ? lengthText(s, line.time, true) : ""}</span>` : nothing}`;
    };
    return html`<p class="path muted" title=${frame.file}>${this.here(frame, false)}</p>
      <ol class="code" tabindex="0" aria-label=${`Source ${frame.file}`} start=${first}>
      ${got.lines.slice(first - 1, last).map((line, i) => {
    const n = first + i;
    const to = used.get(n);
    return html`<li class="${n === frame.line ? "here" : ""} ${to !== undefined ? "ran" : ""}" aria-current=${n === frame.line ? "true" : nothing}
        ${n === frame.line ? ref(scroll) : nothing}><span class="n">${to === undefined ? n : html`<button class="plain" tabindex="-1"
          title="Go to the nearest instruction of this line" @click=${() => void this.app.goTo(to)}>${n}</button>`}</span>${cost(n)}<code>${line || " "}</code></li>`;
  })}</ol>`;
  }

  /** The file as it is on this machine, with a link that opens it in the editor. */
  private here({ file, line }: Frame, told: boolean): TemplateResult {
    const path = mapped(file, sources().maps);
    const address = editorAddress(sources().editor, path, line);
    const text = told && line > 0 ? `${path}:${line}` : path;
    return address === "" ? html`<code>${text}</code>` : html`<a href=${address} title="Open it in the editor"><code>${text}</code></a>`;
  }

  /** Lines of the file for instructions around the cursor, and the nearest instruction of each. */
  private linesNear(s: Session, file: string): Map<number, number> {
    const at = s.cursorInsn ?? 0;
    const near = new Map<number, number>();
    const cache = s.insns(s.lane);
    for (let by = 0; by < 400; by++) {
      for (const insn of by === 0 ? [at] : [at + by, at - by]) {
        const row = cache?.get(insn);
        if (row && row.file === file && !near.has(row.line)) near.set(row.line, insn);
      }
    }
    return near;
  }

  /** Go to the first instruction of the next or previous line. */
  private async step(s: Session, by: 1 | -1): Promise<void> {
    const { stream, cursorInsn } = s;
    if (!stream || cursorInsn === undefined) return;
    const from = by > 0 ? cursorInsn : Math.max(0, cursorInsn - STEP_MOST);
    const count = by > 0 ? STEP_MOST : cursorInsn - from + 1;
    const rows = await api.insns(s.trace, stream.name, from, count);
    let i = by > 0 ? 0 : rows.length - 1;
    const along = (): void => {
      const line = rows[i]!;
      while (rows[i + by] && rows[i + by]!.file === line.file && rows[i + by]!.line === line.line) i += by;
    };
    if (rows.length === 0) return;
    along();
    if (rows[i + by]) i += by;
    if (by < 0) along();
    void this.app.goTo(rows[i]!.insn);
  }
}
