// Several devices: the mesh, which tile of each array a device has, and the collectives of a run.

import { h, put } from "./dom.js";
import { bytes, plural, seconds, tint } from "./format.js";
import { inspect } from "./inspector.js";
import { List } from "./list.js";
import { data, go } from "./state.js";

const d = data.devices;

class Devices {
  constructor() {
    this.widths = [220, 130, 60, 90, 90, 80, 80];
    this.grid = h("div");
    this.arrays = new List({ kind: "cells", height: 22, label: "arrays", draw: (n) => this.array(n), onpick: (n) => go(["devices", d.arrays[n][0]], true) || this.choose(n) });
    this.arrays.reset(d.arrays.length);
    this.sums = new List({ kind: "cells", height: 22, label: "collectives", draw: (n) => this.exchange(n), onpick: (n) => inspect(d.collectives[n].name) });
    this.sums.reset(d.collectives.length);
    const titles = ["collective", "op", "devices", "bytes", "on the wire", "time", "exposed"];
    const mesh = d.mesh.map(([axis, size]) => `${axis}=${size}`).join(", ");
    this.element = h(
      "div.view", {},
      h("div.bar", {}, h("b", {}, plural(d.replicas * d.partitions, "device")), h("span", {}, mesh && `mesh ${mesh}`), d.replicas > 1 && h("span", {}, plural(d.replicas, "replica")), h("span.dim", {}, `a run takes about ${seconds(d.seconds)}: compute ${seconds(d.compute_seconds)}, communication ${seconds(d.communication_seconds)}, of which ${seconds(d.exposed_seconds)} exposed; ${bytes(d.wire_bytes)} on the wire of each device`)),
      h("div.split", { style: "flex:1.2" }, h("div.side", { style: "width:480px" }, this.arrays.element), h("div.scroll.grow", {}, this.grid)),
      h("div.head-row", { style: "border-top:1px solid var(--line)" }, this.cells(titles), h("span", {}, "from")),
      this.sums.element,
    );
    this.choose(0);
  }

  cells(parts) {
    return parts.map((p, n) => h(n === 0 ? "span.mono" : n === 1 ? "span" : "span.num", { style: `width:${this.widths[n]}px`, title: typeof p === "string" ? p : null }, p));
  }

  array(n) {
    const [name, shape, sharding] = d.arrays[n];
    return h("div", {}, h("span.mono", { style: "width:150px", title: name }, name), h("span.mono.dim", { style: "width:150px", title: shape }, shape), h("span.mono.dim", { title: sharding }, sharding || "whole"));
  }

  exchange(n) {
    const e = d.collectives[n];
    const times = e.runs === 1 ? "" : ` × ${e.runs}${e.runs_known ? "" : "?"}`;
    return h("div", {}, this.cells([e.name, `${e.opcode}${times}`, `${e.devices}`, bytes(e.bytes), bytes(e.wire_bytes), seconds(e.runs * e.seconds), seconds(e.runs * e.exposed_seconds)]), h("span.dim", {}, [e.from, e.links.map((l) => `${l.name} of ${l.members}`).join(", ")].filter(Boolean).join(" · ")));
  }

  show(name) {
    const n = d.arrays.findIndex((a) => a[0] === name);
    if (n >= 0) this.choose(n);
  }

  choose(n) {
    if (!d.arrays.length) return;
    this.arrays.mark(n);
    const [name, shape, sharding, tiling] = d.arrays[n];
    const { tiles, of } = d.tilings[tiling];
    const columns = d.mesh.length > 1 ? d.mesh[d.mesh.length - 1][1] : Math.min(d.partitions, 8);
    const box = (tile, device) => h("div.device", { style: `background:${tile < 0 ? "transparent" : tint(`tile ${tile * 7919}`, false)}`, title: tile < 0 ? "has none of it" : `device ${device} has [${tiles[tile]}]` }, `${device}`);
    const rest = d.partitions - of.length;
    const legend = tiles.slice(0, 16).map((t, k) => h("li", {}, h("span.swatch", { style: `background:${tint(`tile ${k * 7919}`, false)}` }), h("span.mono", {}, `[${t}]`), h("span.dim", {}, ` on ${plural(of.filter((o) => o === k).length, "device")}`)));
    put(this.grid, h("h2.mono", {}, name), h("p.mono.dim", {}, `${shape} ${sharding || ""}`), h("div.devices", { style: `grid-template-columns:repeat(${columns},auto)` }, of.map(box)), rest > 0 && h("p.dim", {}, `and ${plural(rest, "device")} more`), h("ul", { style: "list-style:none;padding:0" }, legend, tiles.length > 16 && h("li.dim", {}, `and ${plural(tiles.length - 16, "tile")} more`)));
  }
}

let view = null;

export const devices = {
  name: "devices",
  title: "Devices",
  isEmpty: () => !d.partitions,
  hint: () => `${d.replicas * d.partitions}`,
  show([name]) {
    view ??= new Devices();
    view.show(name);
    return view.element;
  },
};
