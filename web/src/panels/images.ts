// SPDX-License-Identifier: MIT
// Program images missing from a trace: where it ran without one, and a way to add one.
import { html, nothing, type TemplateResult } from "lit-html";
import { bindImage, putImage } from "../data/change.ts";
import type { App } from "../view/app.ts";
import { grouped } from "../base/format.ts";
import { whoMapped, type Missing, type MissingFile } from "../data/missing.ts";
import { ofLinux } from "../data/model.ts";
import type { Session } from "../view/session.ts";

const SHOWN = 6;
const ELF = [0x7f, 0x45, 0x4c, 0x46];
const PAGE = 0xfffn;

const hex = (n: bigint): string => `0x${n.toString(16)}`;

export class ImagesPanel {
  private files: readonly File[] = [];
  private elf = false; // all of them
  private address = "";
  private state = ""; // the operation in progress, or its result
  private error = "";
  private all = false;

  constructor(private readonly app: App) {}

  view(s: Session): TemplateResult {
    const { files } = s.overview;
    const missing = s.overview.missing ?? [];
    const n = files.length + missing.length;
    const shown = this.all ? n : SHOWN;
    return html`${files.length > 0 ? html`<table class="figures files"><caption>Missing files</caption>
      <tbody>${files.slice(0, shown).map((f) => this.fileRow(f, ofLinux(s.trace)))}</tbody></table>` : nothing}
      ${missing.length > 0 && files.length < shown ? html`<table class="figures images"><caption>Missing images</caption>
      <tbody>${missing.slice(0, shown - files.length).map((m) => this.row(m))}</tbody></table>` : nothing}
      ${n > SHOWN ? html`<p class="buttons"><button class="action" @click=${() => { this.all = !this.all; this.app.changed(); }}
        >${this.all ? "Fewer" : `${SHOWN} of ${grouped(n)}: show all`}</button></p>` : nothing}
      ${s.overview.more ? html`<p class="hint muted">This list is not complete: there are more.</p>` : nothing}
      ${this.form(s)}`;
  }

  /** A row with a file, and who mapped it. */
  private fileRow(f: MissingFile, decimal: boolean): TemplateResult {
    const by = [...new Set(f.places.map((p) => whoMapped(p, decimal)).filter((t) => t !== ""))];
    const from = [...new Set(f.places.map((p) => hex(p.from)))];
    const where = `at ${from.slice(0, 2).join(", ")}${from.length > 2 || f.more > 0 ? "…" : ""}`;
    return html`<tr><th scope="row"><div class="path" title=${f.path}>${f.path}</div>
      <div class="muted id" title=${f.buildId}>${f.buildId === "" ? "no build ID" : `build ID ${f.buildId}`}</div>
      <div class="muted" title=${by.join(", ")}>${by.length > 0 ? `${by.slice(0, 3).join(", ")}${by.length > 3 ? ` and ${by.length - 3} others` : ""}, ` : nothing}${where}</div></th></tr>`;
  }

  private row(m: Missing): TemplateResult {
    return html`<tr><th scope="row"><button class="plain" title="Go to the first" @click=${() => this.app.goToIn(m.hit.stream, m.hit.insn, m.hit.time)}
        >${hex(m.from)}${m.to > m.from ? html`–<wbr>${hex(m.to)}` : nothing}</button></th>
      <td class="n" title="How many times the trace went there">${grouped(m.times)}×</td>
      <td class="n"><button class="action" @click=${() => { this.address = hex(m.from & ~PAGE); this.app.changed(); document.getElementById("image-file")?.focus(); }} title="Use this address for the image below">Here</button></td></tr>`;
  }

  private form(s: Session): TemplateResult {
    const choose = async (e: Event): Promise<void> => {
      this.files = [...(e.target as HTMLInputElement).files ?? []];
      this.error = this.state = "";
      const magics = await Promise.all(this.files.map(async (f) => new Uint8Array(await f.slice(0, 4).arrayBuffer())));
      this.elf = magics.length > 0 && magics.every((m) => ELF.every((byte, i) => m[i] === byte));
      this.app.changed();
    };
    const named = s.overview.files.length > 0;
    return html`<form class="imageform" @submit=${(e: Event) => { e.preventDefault(); void this.send(s); }}>
      <label>${named ? "Files" : "Image"} <input type="file" id="image-file" ?multiple=${named} @change=${choose}></label>
      ${named && (this.elf || this.files.length === 0) ? html`<p class="muted">Files are matched by build ID.</p>`
    : html`<label>${this.elf ? "Load bias" : "Load address"} <input type="text" spellcheck="false" .value=${this.elf ? "0x0" : this.address}
        placeholder="0x80000000" ?disabled=${this.elf} @input=${(e: Event) => { this.address = (e.target as HTMLInputElement).value; }}></label>`}
      <p><button class="action" ?disabled=${this.files.length === 0 || this.state === "…"}>Add and decode again</button>
        <span role="status">${this.state === "…" ? "Sending…" : this.state}</span></p>
      ${this.error !== "" ? html`<p class="trouble" role="alert">${this.error}</p>` : nothing}</form>`;
  }

  private async send(s: Session): Promise<void> {
    const { files } = this;
    const byId = this.elf && s.overview.files.length > 0;
    const address = this.elf ? "0" : this.address.trim();
    if (files.length === 0) return;
    if (!/^(0x[0-9a-f]{1,16}|\d{1,20})$/i.test(address)) {
      this.error = "An address is 0x followed by up to 16 hexadecimal digits, or decimal.";
      this.app.changed();
      return;
    }
    this.state = "…";
    this.error = "";
    this.app.changed();
    const [added, others]: [string[], string[]] = [[], []];
    try {
      for (const file of files) {
        const image = await putImage(file);
        const wanted = s.overview.files.some((f) => f.buildId !== "" && f.buildId === image.buildId);
        if (!byId) await bindImage(s.trace.id, image.sha256, address);
        if (!byId || wanted) added.push(file.name);
        else others.push(`${file.name} (${image.buildId === "" ? "without a build ID" : `build ID ${image.buildId}`})`);
      }
      this.files = [];
      (document.getElementById("image-file") as HTMLInputElement | null)!.value = "";
    } catch (error) {
      this.error = (error as Error).message;
    }
    if (others.length > 0 && this.error === "") this.error = `None of the missing files: ${others.join(", ")}.`;
    this.state = added.length === 0 ? "" : `${added.join(", ")} ${added.length === 1 ? "was" : "were"} added; the trace is being decoded again.`;
    this.app.changed();
  }
}
