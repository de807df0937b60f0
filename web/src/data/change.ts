// SPDX-License-Identifier: MIT
// Requests that change something on the server. They are never retried automatically.
import { ApiError, reason, tracePath } from "./api.ts";
import { meant } from "../base/visible.ts";

async function send(method: string, path: string, body?: BodyInit): Promise<unknown> {
  const reply = await fetch(path, { method, ...(body === undefined ? {} : { body }) });
  if (!reply.ok) throw new ApiError(reply.status, await reason(reply));
  return reply.json();
}

/** The server then decodes traces that name its build ID again. */
export async function putImage(file: File): Promise<{ sha256: string; buildId: string }> {
  const told = await send("PUT", `api/v1/images?name=${encodeURIComponent(file.name.slice(-100))}`, file) as { sha256?: unknown; build_id?: unknown };
  return { sha256: String(told.sha256), buildId: String(told.build_id ?? "") };
}

/** The trace is decoded again with it. `address`: a bias for ELF files. */
export async function bindImage(trace: string, sha256: string, address: string): Promise<void> {
  await send("POST", `${tracePath(trace)}/images?${new URLSearchParams({ sha256, address })}`);
}

/** An empty value removes the label. */
export async function setLabels(trace: string, labels: Readonly<Record<string, string>>): Promise<void> {
  await send("POST", `${tracePath(trace)}/labels`, JSON.stringify(
    Object.fromEntries(Object.entries(labels).map(([key, value]) => [meant(key), meant(value)]))));
}

export async function deleteTrace(trace: string): Promise<void> {
  await send("DELETE", tracePath(trace));
}

const PIECE = 4 << 20;

/** Push a file as a new trace; `told` receives the progress. */
export async function pushFile(
  trace: string, setup: string, file: File, told: (share: number) => void, signal: AbortSignal,
): Promise<void> {
  const begun = await send("PUT", tracePath(trace), setup) as { epoch?: unknown };
  for (let at = 0; ;) {
    signal.throwIfAborted();
    const to = Math.min(file.size, at + PIECE);
    const last = to === file.size ? "&last=1" : "";
    const { durable } = await send("POST", `${tracePath(trace)}/raw?offset=${at}&epoch=${begun.epoch}${last}`,
      file.slice(at, to)) as { durable: number };
    at = Number(durable);
    told(file.size === 0 ? 1 : at / file.size);
    if (last !== "") return;
  }
}
