// Memory over the schedule: bytes in use, and every value as a box of time by address.

import { Canvas, colour, h, note, put } from "./dom.js";
import { bytes, plural, tint, whole } from "./format.js";
import { inspect } from "./inspector.js";
import { List } from "./list.js";
import { data, go, isDark } from "./state.js";

const { allocations, values, schedule } = data.memory;
const CHART = 120;

/** Values in memory that a run fills: not arguments and constants, which are there throughout. */
const filled = values.filter((v) => !["parameter", "constant"].includes(allocations[v[0]][1]) || v[5][0][0] > -1);

class Memory {
  constructor() {
    this.end = Math.max(1, ...values.flatMap((v) => v[5].map((l) => l[1])), ...schedule.map((s) => s[1]));
    this.use();
    this.lanes();
    this.tick = this.peak;
    this.canvas = new Canvas((c, w, height) => this.paint(c, w, height), { "aria-label": "memory over the schedule" });
    const e = this.canvas.element;
    e.addEventListener("mousemove", (event) => this.move(event));
    e.addEventListener("mouseleave", () => note());
    e.addEventListener("click", (event) => this.click(event));
    e.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    e.addEventListener("keydown", (event) => this.key(event));
    this.from = -1;
    this.to = this.end + 1;
    this.by = h("select", { "aria-label": "group", onchange: () => this.table() }, h("option", { value: "value" }, "by value"), h("option", { value: "line" }, "by Python line"));
    this.head = h("span");
    this.widths = [260, 90, 110, 110, 220];
    this.list = new List({ kind: "cells", height: 22, label: "values in use", draw: (n) => this.row(n), onpick: (n) => this.choose(this.rows[n].value) });
    this.element = h("div.view", {}, h("div.bar", {}, this.head, this.by, h("button", { onclick: () => this.at(this.peak) }, "peak"), h("span.dim", {}, "wheel zooms, arrows step, a click chooses a tick and a value")), h("div.stage", { style: "flex:1.3" }, this.canvas.element), h("div.head-row", {}, this.cells(["value", "bytes", "ticks", "lies in", "shape"]), h("span", {}, "from")), this.list.element);
  }

  /** Bytes in use by tick, and the peak. */
  use() {
    this.used = data.memory.used;
    this.most = Math.max(...this.used, 1);
    this.peak = Math.max(0, this.used.indexOf(Math.max(...this.used)));
  }

  /** Allocations one below the other, with the height that their size asks for. */
  lanes() {
    const wanted = [...new Set(filled.map((v) => v[0]))];
    const total = wanted.reduce((sum, n) => sum + allocations[n][2], 0) || 1;
    this.lane = new Map();
    let top = 0;
    for (const n of wanted) {
      this.lane.set(n, [top, allocations[n][2] / total]);
      top += allocations[n][2] / total;
    }
  }

  cells(parts) {
    return parts.map((p, n) => h(n === 1 ? "span.num" : n ? "span" : "span.mono", { style: `width:${this.widths[n]}px`, title: typeof p === "string" ? p : null }, p));
  }

  x(tick) {
    return ((tick - this.from) / (this.to - this.from)) * this.canvas.width;
  }

  box(v, [a, b]) {
    const [top, share] = this.lane.get(v[0]);
    const tall = this.canvas.height - CHART - 20;
    const size = allocations[v[0]][2] || 1;
    const y = CHART + 16 + (top + (share * v[3]) / size) * tall;
    return [this.x(Math.max(a, -1)), y, Math.max(1, this.x(b + 1) - this.x(Math.max(a, -1))), Math.max(1, ((share * v[4]) / size) * tall)];
  }

  paint(c, width, height) {
    const dark = isDark();
    c.fillStyle = colour("accent-back");
    c.strokeStyle = colour("accent");
    c.beginPath();
    c.moveTo(0, CHART);
    for (let px = 0; px <= width; px++) {
      const a = Math.floor(this.from + (px / width) * (this.to - this.from));
      const b = Math.max(a + 1, Math.floor(this.from + ((px + 1) / width) * (this.to - this.from)));
      let most = 0;
      for (let t = Math.max(0, a); t < b && t < this.used.length; t++) most = Math.max(most, this.used[t]);
      c.lineTo(px, CHART - (most / this.most) * (CHART - 26));
    }
    c.lineTo(width, CHART);
    c.fill();
    c.stroke();
    for (const v of filled) {
      for (const live of v[5]) {
        const [x, y, w, tall] = this.box(v, live);
        if (x > width || x + w < 0) continue;
        c.fillStyle = tint(v[6] || v[1].replace(/[.\d{}]+/g, ""), dark);
        c.fillRect(x, y, w, tall);
        if (v === this.picked || v === this.hover) {
          c.strokeStyle = colour(v === this.picked ? "accent" : "edit");
          c.lineWidth = 2;
          c.strokeRect(x, y, w, tall);
          c.lineWidth = 1;
        }
        if (w > 70 && tall > 13) {
          c.save();
          c.beginPath();
          c.rect(x, y, w - 2, tall);
          c.clip();
          c.fillStyle = colour("text");
          c.font = "11px system-ui, sans-serif";
          c.textBaseline = "middle";
          c.fillText(v[1], Math.max(0, x) + 4, y + tall / 2);
          c.restore();
        }
      }
    }
    this.marks(c, width, height);
  }

  marks(c, width, height) {
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "alphabetic";
    const x = this.x(this.tick + 0.5);
    c.strokeStyle = colour("minus");
    c.setLineDash([4, 3]);
    c.beginPath();
    c.moveTo(x, 0);
    c.lineTo(x, height);
    c.stroke();
    c.setLineDash([]);
    c.fillStyle = colour("text");
    c.fillText(`${bytes(this.used[Math.max(0, this.tick)] ?? 0)} at tick ${this.tick}${this.tick === this.peak ? ", the peak" : ""}`, Math.min(width - 190, x + 6), 12);
    c.fillStyle = colour("dim");
    c.fillText(`in use: up to ${bytes(this.most)}`, 6, 12);
  }

  hit(event) {
    const [mx, my] = this.canvas.at(event);
    return filled.findLast((v) =>
      v[5].some((live) => {
        const [x, y, w, tall] = this.box(v, live);
        return mx >= x && mx <= x + w && my >= y && my <= y + Math.max(2, tall);
      }),
    );
  }

  tickAt(event) {
    return Math.max(0, Math.min(this.end, Math.floor(this.from + (this.canvas.at(event)[0] / this.canvas.width) * (this.to - this.from))));
  }

  running(tick) {
    let low = 0;
    let high = schedule.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (schedule[middle][1] <= tick) low = middle + 1;
      else high = middle;
    }
    return schedule[low - 1]?.[0] ?? "";
  }

  move(event) {
    const hover = this.hit(event);
    const tick = this.tickAt(event);
    if (hover !== this.hover) {
      this.hover = hover;
      this.canvas.again();
    }
    if (hover) note(event, h("b", {}, hover[1]), `\n${hover[2]}\n${bytes(hover[4])} at ${whole(hover[3])} of ${allocations[hover[0]][0]}\nticks ${hover[5].map((l) => l.join("–")).join(", ")}`, hover[6] && `\n${hover[6]}`);
    else note(event, `tick ${tick}: ${bytes(this.used[tick] ?? 0)} in use\nwhile ${this.running(tick)} runs`);
  }

  click(event) {
    const found = this.hit(event);
    this.tick = this.tickAt(event);
    if (found) this.choose(found, false);
    this.table();
    this.canvas.again();
  }

  wheel(event) {
    event.preventDefault();
    const at = this.from + (this.canvas.at(event)[0] / this.canvas.width) * (this.to - this.from);
    const f = Math.exp(event.deltaY / 400);
    this.from = Math.max(-1, at - (at - this.from) * f);
    this.to = Math.min(this.end + 1, at + (this.to - at) * f);
    this.canvas.again();
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[event.key];
    if (event.key === "0") [this.from, this.to] = [-1, this.end + 1];
    if (step) this.at(Math.max(0, Math.min(this.end, this.tick + step)));
    this.canvas.again();
  }

  at(tick) {
    this.tick = tick;
    this.table();
    this.canvas.again();
  }

  choose(v, move = true) {
    if (!v) return;
    this.picked = v;
    if (move) this.tick = Math.max(0, v[5][0][0]);
    go(["memory", v[1]], true);
    inspect(v[1].split("{")[0]);
    this.canvas.again();
  }

  show(name) {
    const found = name && values.find((v) => v[1] === name);
    if (found && found !== this.picked) this.choose(found);
    this.table();
    this.canvas.again();
  }

  /** What is in use at the tick, the largest first. */
  table() {
    const now = filled.filter((v) => v[5].some(([a, b]) => a <= this.tick && this.tick <= b));
    const sum = new Map();
    for (const v of now) {
      const key = this.by.value === "line" ? v[6] || "no Python line" : v[1];
      const row = sum.get(key) ?? { key, bytes: 0, count: 0, value: v };
      row.bytes += v[4];
      row.count++;
      sum.set(key, row);
    }
    this.rows = [...sum.values()].sort((a, b) => b.bytes - a.bytes);
    put(this.head, h("b", {}, `${bytes(this.used[this.tick] ?? 0)}`), h("span.dim", {}, ` in use at tick ${this.tick} of ${this.end}, while `), h("a.mono", { onclick: () => inspect(this.running(this.tick)) }, this.running(this.tick) || "nothing"), h("span.dim", {}, " runs"));
    this.list.reset(this.rows.length);
  }

  row(n) {
    const { key, bytes: size, count, value: v } = this.rows[n];
    if (this.by.value === "line") return h("div", {}, this.cells([key, bytes(size), plural(count, "value"), "", ""]));
    return h("div", {}, this.cells([v[1], bytes(size), v[5].map((l) => l.join("–")).join(", "), allocations[v[0]][0], v[2]]), h("span.dim", {}, v[6]));
  }
}

let view = null;

export const memoryView = {
  name: "memory",
  title: "Memory",
  hint: () => (data.overview.memory.peak === undefined ? "" : bytes(data.overview.memory.peak)),
  show([name]) {
    if (!filled.length) return h("div.empty", {}, "The trace holds no buffers.");
    view ??= new Memory();
    view.show(name);
    return view.element;
  },
};
