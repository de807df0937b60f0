// SPDX-License-Identifier: MIT
import { fromBinary } from "@bufbuild/protobuf";
import { html, render } from "lit-html";
import { TileSchema } from "../gen/tracelake/v1/ranges_pb";

const tile = fromBinary(TileSchema, new Uint8Array());
render(html`<h1>tracelake</h1><p>${tile.lanes.length}</p>`, document.getElementById("app")!);
