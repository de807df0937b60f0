// SPDX-License-Identifier: MIT
// Program images that a trace lacks: where it ran without one, and a way to bring one in.
import { html, nothing, type TemplateResult } from "lit-html";
import { bindImage, putImage } from "../change.ts";
import type { App } from "../app.ts";
import { grouped } from "../format.ts";
import type { Missing } from "../overview.ts";
import type { Session } from "../session.ts";

const SHOWN = 6;
const PAGE = 0xfffn;

const hex = (n: bigint): string => `0x${n.toString(16)}`;

export class ImagesPanel {
  private file: File | undefined;
  private elf = false;
  private address = "";
  private state = ""; // what is under way, or has happened
  private error = "";
  private all = false;

  constructor(private readonly app: App) {}

  view(s: Session): TemplateResult {
    const missing = s.overview.missing ?? [];
    const rows = this.all ? missing : missing.slice(0, SHOWN);
    return html`<table class="figures"><caption>Missing images</caption>
      <tbody>${rows.map((m) => this.row(m))}</tbody></table>
      ${missing.length > SHOWN ? html`<p class="buttons"><button class="action" @click=${() => { this.all = !this.all; this.app.changed(); }}
        >${this.all ? "Fewer" : `${SHOWN} of ${grouped(missing.length)}: show all`}</button></p>` : nothing}
      ${s.overview.more ? html`<p class="hint muted">There are more behind these.</p>` : nothing}
      ${this.form(s)}`;
  }

  private row(m: Missing): TemplateResult {
    return html`<tr><th scope="row"><button class="plain" title="Go to the first" @click=${() => this.app.goToIn(m.hit.stream, m.hit.insn, m.hit.time)}
        >${hex(m.from)}${m.to > m.from ? html`–<wbr>${hex(m.to)}` : nothing}</button></th>
      <td class="n" title="How often the trace went there">${grouped(m.times)}×</td>
      <td class="n"><button class="action" @click=${() => { this.address = hex(m.from & ~PAGE); this.app.changed(); document.getElementById("image-file")?.focus(); }}>Here</button></td></tr>`;
  }

  private form(s: Session): TemplateResult {
    const choose = async (e: Event): Promise<void> => {
      this.file = (e.target as HTMLInputElement).files?.[0];
      this.error = this.state = "";
      const magic = this.file ? new Uint8Array(await this.file.slice(0, 4).arrayBuffer()) : new Uint8Array();
      this.elf = magic[0] === 0x7f && magic[1] === 0x45 && magic[2] === 0x4c && magic[3] === 0x46;
      this.app.changed();
    };
    return html`<form class="imageform" @submit=${(e: Event) => { e.preventDefault(); void this.send(s); }}>
      <label>Image <input type="file" id="image-file" @change=${choose}></label>
      <label>${this.elf ? "Loaded away from its own addresses by" : "Its first byte is at"} <input type="text" spellcheck="false" .value=${this.elf ? "0x0" : this.address}
        placeholder="0x80000000" ?disabled=${this.elf} @input=${(e: Event) => { this.address = (e.target as HTMLInputElement).value; }}></label>
      <p><button class="action" ?disabled=${!this.file || this.state === "…"}>Add and decode again</button>
        <span role="status">${this.state === "…" ? "Sending…" : this.state}</span></p>
      ${this.error !== "" ? html`<p class="trouble" role="alert">${this.error}</p>` : nothing}</form>`;
  }

  private async send(s: Session): Promise<void> {
    const { file } = this;
    if (!file) return;
    const address = this.elf ? "0" : this.address.trim();
    if (!/^(0x[0-9a-f]{1,16}|\d{1,20})$/i.test(address)) {
      this.error = "An address is 0x and up to 16 hexadecimal digits.";
      this.app.changed();
      return;
    }
    this.state = "…";
    this.error = "";
    this.app.changed();
    try {
      const image = await putImage(file);
      await bindImage(s.trace.id, image.sha256, address);
      this.state = `${file.name} was added; the trace is decoded again.`;
      this.file = undefined;
      (document.getElementById("image-file") as HTMLInputElement | null)!.value = "";
    } catch (error) {
      this.state = "";
      this.error = (error as Error).message;
    }
    this.app.changed();
  }
}
