// SPDX-License-Identifier: MIT
// Dialogs of the list of traces: import one, edit labels, delete.
import { html, nothing, type TemplateResult } from "lit-html";
import type { App } from "../view/app.ts";
import { deleteTrace, pushFile, setLabels } from "../data/change.ts";
import { bytes, grouped, short } from "../base/format.ts";
import { executed, type Trace } from "../data/model.ts";
import { modal } from "./modal.ts";

/** Including streams of threads and of events. */
const PERF = "perf,threads=yes,events=yes";

const FORMATS: readonly (readonly [string, string])[] = [
  ["tpiu", "CoreSight formatter frames (tpiu)"], ["tpiu,sync=fsync", "… with full synchronisation frames"],
  ["etm4,id=0x10", "a single ETMv4 (etm4)"], ["ete,id=0x10", "a single ETE (ete)"], ["etm3,id=0x10", "a single ETMv3 (etm3)"], ["ptm,id=0x10", "a single PTM (ptm)"], ["mtb", "MTB of a Cortex-M0+ (mtb)"], ["itm,id=0x10", "ITM (itm)"], ["stm,id=0x10", "STM (stm)"],
  [PERF, "Linux perf.data (perf)"],
  ["pt", "Intel PT of one processor (pt)"], ["di", "Open SoC Debug datagrams (di)"], ["stf", "STF or .zstf (stf)"],
  ["ntrace", "RISC-V N-Trace (ntrace)"], ["nexus-sifive", "SiFive's Nexus trace (nexus-sifive)"], ["etrace-encap", "RISC-V E-Trace, encapsulated (etrace-encap)"],
  ["etrace-smi", "RISC-V E-Trace in Siemens' messages (etrace-smi)"], ["etrace-esp32", "ESP32-C6 or H2 (etrace-esp32)"],
];

/** Format of a file from its first bytes; "": unknown. */
export async function tellFormat(file: Blob): Promise<string> {
  const magic = new TextDecoder("latin1").decode(await file.slice(0, 8).arrayBuffer());
  return magic === "PERFILE2" || magic === "2ELIFREP" ? PERF : "";
}

/** Probable format of a file from its name. */
export function guessFormat(name: string): string {
  const end = /\.([a-z0-9_]+)$/i.exec(name)?.[1]?.toLowerCase() ?? "";
  const known: Readonly<Record<string, string>> = {
    data: PERF, stf: "stf", zstf: "stf", pt: "pt", di: "di", dtd: "di", itm: "itm,id=0x10", stm: "stm,id=0x10", etm: "etm4,id=0x10", ete: "ete,id=0x10",
    nex: "ntrace", rtd: "nexus-sifive", etr: "etrace-encap", te_inst_raw: "etrace-smi",
  };
  return known[end] ?? "tpiu";
}

/** Trace name derived from that of a file. */
export function traceName(file: string): string {
  return file.replace(/\.[a-z0-9]{1,5}$/i, "").replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[-.]+/, "").slice(0, 63) || "trace";
}

interface Upload {
  file: File | undefined;
  name: string;
  format: string;
  said: { name?: boolean; format?: boolean }; // set by the user: not replaced when a file is chosen
  setup: string;
  share: number | undefined; // while it is being sent
  abort: AbortController;
}

export class ListDialogs {
  private labels: { trace: string; rows: [string, string][]; had: string[] } | undefined;
  private doomed: Trace | undefined;
  private upload: Upload | undefined;
  private error = "";

  constructor(private readonly app: App) {}

  editLabels(trace: Trace): void {
    const rows = Object.entries(trace.labels);
    this.open();
    this.labels = { trace: trace.id, rows: [...rows, ["", ""]], had: rows.map(([k]) => k) };
  }

  askDelete(trace: Trace): void {
    this.open();
    this.doomed = trace;
  }

  bring(file?: File): void {
    this.open();
    this.upload = {
      file, name: file ? traceName(file.name) : "", format: guessFormat(file?.name ?? ""), said: {}, setup: "", share: undefined, abort: new AbortController(),
    };
    if (file) void this.look(this.upload, file);
  }

  /** The first bytes take precedence over the name. */
  private async look(upload: Upload, file: File): Promise<void> {
    const format = await tellFormat(file).catch(() => "");
    if (upload.file !== file || upload.said.format || format === "") return;
    upload.format = format;
    this.app.changed();
  }

  private open(): void {
    this.labels = this.doomed = this.upload = undefined;
    this.error = "";
    this.app.changed();
  }

  private closed = (): void => {
    this.upload?.abort.abort();
    this.open();
  };

  view(): TemplateResult | typeof nothing {
    if (this.labels) return this.labelsView(this.labels);
    if (this.doomed) return this.deleteView(this.doomed);
    return this.upload ? this.uploadView(this.upload) : nothing;
  }

  private get trouble(): TemplateResult | typeof nothing {
    return this.error === "" ? nothing : html`<p class="trouble" role="alert">${this.error}</p>`;
  }

  /** The state of the dialog, if it is open. */
  private get asked(): object | undefined {
    return this.labels ?? this.doomed ?? this.upload;
  }

  /** Run `work`, and close; errors are shown, unless the dialog was closed meanwhile. */
  private async run(e: Event, work: () => Promise<void>): Promise<void> {
    e.preventDefault();
    const dialog = (e.currentTarget as Element).closest("dialog")!;
    const { asked } = this;
    this.error = "";
    try {
      await work();
      if (this.asked === asked) dialog.close();
    } catch (error) {
      if (this.asked === asked) this.error = (error as Error).message;
    }
    this.app.changed();
  }

  private labelsView({ trace, rows, had }: NonNullable<ListDialogs["labels"]>): TemplateResult {
    const save = async (): Promise<void> => {
      const now = Object.fromEntries(rows.filter(([k, v]) => k.trim() !== "" && v !== "").map(([k, v]) => [k.trim(), v]));
      for (const key of had) now[key] ??= "";
      await setLabels(trace, now);
    };
    const edit = (i: number, part: 0 | 1) => (e: Event): void => {
      rows[i]![part] = (e.target as HTMLInputElement).value;
      if (i === rows.length - 1) rows.push(["", ""]);
      this.app.changed();
    };
    return modal("form", `Labels of ${trace}`, html`<form @submit=${(e: Event) => void this.run(e, save)}>
      ${rows.map(([k, v], i) => html`<p class="pair"><input aria-label=${`Label ${i + 1}`} placeholder="label" .value=${k} @input=${edit(i, 0)}>
        <input aria-label=${`Value ${i + 1}`} placeholder="value (empty: remove)" .value=${v} @input=${edit(i, 1)}></p>`)}
      ${this.trouble}<p class="buttons"><button class="action">Save</button><button class="action shut" type="button">Cancel</button></p></form>`, this.closed);
  }

  private deleteView(t: Trace): TemplateResult {
    const insns = executed(t);
    const stored = t.rawBytes + t.streams.reduce((n, s) => n + s.storedBytes, 0);
    return modal("form", `Delete ${t.id}?`, html`<p>${grouped(insns)} instructions in ${t.streams.length} streams, ${bytes(stored)} of storage. This cannot be
      undone.</p>${this.trouble}
      <p class="buttons"><button class="action danger" @click=${(e: Event) => void this.run(e, () => deleteTrace(t.id))}>Delete</button>
        <button class="action shut" autofocus>Cancel</button></p>`, this.closed);
  }

  private uploadView(u: Upload): TemplateResult {
    const send = async (): Promise<void> => {
      if (!u.file) return;
      u.share = 0;
      const setup = `[trace]\nformat=${u.format}\n${u.setup}`;
      try {
        await pushFile(u.name, setup, u.file, (share) => { u.share = share; this.app.changed(); }, u.abort.signal);
      } finally {
        u.share = undefined;
      }
    };
    const choose = (e: Event): void => {
      u.file = (e.target as HTMLInputElement).files?.[0];
      if (u.file) {
        if (!u.said.name) u.name = traceName(u.file.name);
        if (!u.said.format) u.format = guessFormat(u.file.name);
        void this.look(u, u.file);
      }
      this.app.changed();
    };
    return modal("form", "Import a capture", html`<form @submit=${(e: Event) => void this.run(e, send)}>
      <label>File ${u.file ? html`<b>${u.file.name}</b>, ${short(u.file.size)} bytes` : nothing}<input type="file" @change=${choose}></label>
      <label>Trace name <input required pattern="[A-Za-z0-9._\\-]{1,63}" .value=${u.name} @input=${(e: Event) => { u.name = (e.target as HTMLInputElement).value; u.said.name = u.name !== ""; }}></label>
      <label>Format <select @change=${(e: Event) => { u.format = (e.target as HTMLSelectElement).value; u.said.format = true; }}>
        ${FORMATS.map(([f, text]) => html`<option value=${f} ?selected=${f === u.format}>${text}</option>`)}</select></label>
      <label>Decoder configuration (INI) <textarea rows="4" spellcheck="false" placeholder="clock=100000000&#10;[source cs.10]&#10;protocol=etm4&#10;TRCCONFIGR=0xC1"
        .value=${u.setup} @input=${(e: Event) => { u.setup = (e.target as HTMLTextAreaElement).value; }}></textarea></label>
      ${u.share === undefined ? nothing : html`<p><progress aria-label="Sent" max="1" .value=${u.share}></progress></p>`}
      ${this.trouble}<p class="buttons"><button class="action" ?disabled=${!u.file || u.share !== undefined}>Push</button>
      <button class="action shut" type="button">Cancel</button></p></form>`, this.closed);
  }
}
