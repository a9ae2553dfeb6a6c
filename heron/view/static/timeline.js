// When each stage and pass ran, and LLVM beside them. Wheel: zoom, drag: move.

import { Canvas, colour, h, note, put } from "./dom.js";
import { plural, seconds, tint, whole } from "./format.js";
import { versions } from "./hlo.js";
import { List } from "./list.js";
import { data, go, isDark } from "./state.js";

const ROW = 20;
const WHAT = { stage: "stage", pass: "pass", kernel: "emission of a kernel", beside: "in a thread beside" };

/** All bars: {lane, name, start, seconds, what}. */
function bars() {
  const { stages, passes, spans } = data.timeline;
  const found = [];
  for (const [depth, name, start, time] of stages) if (start !== null) found.push({ lane: depth, name, start, seconds: time, what: "stage" });
  const under = 1 + Math.max(0, ...found.map((b) => b.lane));
  passes.forEach(([name, pipeline, start, time, changed, before, after, rules], n) => {
    if (time > 0) found.push({ lane: under, name, start, seconds: time, what: "pass", pipeline, changed, before, after, rules, number: n });
  });
  const ends = [];
  for (const [name, kind, start, time] of spans) {
    if (kind === "kernel") {
      found.push({ lane: under, name, start, seconds: time, what: "kernel" });
      continue;
    }
    let lane = ends.findIndex((end) => end <= start);
    if (lane < 0) lane = ends.push(0) - 1;
    ends[lane] = start + time;
    found.push({ lane: under + 1 + lane, name, start, seconds: time, what: "beside" });
  }
  return found;
}

class Chart {
  constructor() {
    this.bars = bars();
    this.lanes = 1 + Math.max(0, ...this.bars.map((b) => b.lane));
    this.from = Math.min(...this.bars.map((b) => b.start), Infinity);
    this.to = Math.max(...this.bars.map((b) => b.start + b.seconds), 0);
    if (!(this.to > this.from)) [this.from, this.to] = [0, 1];
    this.whole = [this.from, this.to];
    this.canvas = new Canvas((c, w, height) => this.paint(c, w, height), { "aria-label": "timeline" });
    const e = this.canvas.element;
    e.addEventListener("wheel", (event) => this.zoom(event), { passive: false });
    e.addEventListener("mousemove", (event) => this.move(event));
    e.addEventListener("mouseleave", () => note());
    e.addEventListener("mousedown", (event) => (this.drag = [event.clientX, this.from, this.to]));
    e.addEventListener("mouseup", (event) => this.up(event));
    e.addEventListener("dblclick", () => this.look(...this.whole));
    e.addEventListener("keydown", (event) => this.key(event));
  }

  x(time) {
    return ((time - this.from) / (this.to - this.from)) * this.canvas.width;
  }

  paint(c, width) {
    const dark = isDark();
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    this.axis(c, width);
    for (const b of this.bars) {
      const x = this.x(b.start);
      const w = Math.max(1, this.x(b.start + b.seconds) - x - 0.5);
      if (x > width || x + w < 0) continue;
      const y = 22 + b.lane * (ROW + 3);
      c.fillStyle = tint(b.name.replace(/\d+/g, ""), dark);
      c.globalAlpha = b.what === "pass" && !b.changed ? 0.45 : 1;
      c.fillRect(x, y, w, ROW);
      c.globalAlpha = 1;
      if (b === this.hover) {
        c.strokeStyle = colour("accent");
        c.strokeRect(x + 0.5, y + 0.5, w, ROW - 1);
      }
      if (w < 26) continue;
      c.save();
      c.beginPath();
      c.rect(Math.max(0, x), y, Math.min(w, width - x) - 3, ROW);
      c.clip();
      c.fillStyle = colour("text");
      c.fillText(b.name, Math.max(0, x) + 5, y + ROW / 2 + 1);
      c.restore();
    }
  }

  axis(c, width) {
    const rough = (this.to - this.from) / Math.max(2, width / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough);
    const zero = this.whole[0];
    for (let t = zero + Math.ceil((this.from - zero) / step) * step; t <= this.to; t += step) {
      c.fillStyle = colour("line");
      c.fillRect(this.x(t), 0, 1, this.canvas.height);
      c.fillStyle = colour("dim");
      c.fillText(seconds(Math.abs(t - zero) < step / 10 ? 0 : t - zero), this.x(t) + 4, 10);
    }
  }

  at(event) {
    const [x, y] = this.canvas.at(event);
    const lane = Math.floor((y - 22) / (ROW + 3));
    return this.bars.find((b) => b.lane === lane && this.x(b.start) - 1 <= x && x <= Math.max(this.x(b.start) + 2, this.x(b.start + b.seconds)));
  }

  look(from, to) {
    this.from = from;
    this.to = to;
    this.canvas.again();
  }

  zoom(event) {
    event.preventDefault();
    const at = this.from + (this.canvas.at(event)[0] / this.canvas.width) * (this.to - this.from);
    const f = Math.exp(event.deltaY / 400);
    this.look(at - (at - this.from) * f, at + (this.to - at) * f);
  }

  move(event) {
    if (this.drag && event.buttons) {
      const by = ((event.clientX - this.drag[0]) / this.canvas.width) * (this.drag[2] - this.drag[1]);
      return this.look(this.drag[1] - by, this.drag[2] - by);
    }
    this.hover = this.at(event);
    this.canvas.again();
    if (this.hover) note(event, ...about(this.hover));
    else note();
  }

  up(event) {
    const moved = this.drag && Math.abs(event.clientX - this.drag[0]) > 3;
    this.drag = null;
    const found = this.at(event);
    if (!moved && found?.what === "pass") toPass(found.number);
    if (!moved && found?.what === "kernel") go(["kernels", found.name]);
  }

  key(event) {
    const span = this.to - this.from;
    const moves = { ArrowLeft: [-0.1, -0.1], ArrowRight: [0.1, 0.1], "+": [0.15, -0.15], "-": [-0.2, 0.2] };
    const by = moves[event.key];
    if (by) this.look(this.from + by[0] * span, this.to + by[1] * span);
  }
}

function about(b) {
  const said = [h("b", {}, b.name), `\n${WHAT[b.what]}: ${seconds(b.seconds)}`];
  if (b.what !== "pass") return said;
  said.push(`\nin ${b.pipeline}`, b.changed ? `\n${whole(b.before)} → ${whole(b.after)} instructions` : "\nchanged nothing");
  for (const [rule, times] of b.rules.slice(0, 8)) said.push(`\n${times} × ${rule}`);
  return said;
}

/** The program after a pass, where the trace has it. */
export function toPass(number) {
  const found = versions.find((v) => v.pass === number);
  if (found) go(["program", found.number]);
}

/** Passes by name: [name, runs, runs that changed, instructions added, seconds, number of the first that changed]. */
function byName() {
  const found = new Map();
  data.timeline.passes.forEach(([name, , , time, changed, before, after], n) => {
    const row = found.get(name) ?? [name, 0, 0, 0, 0, -1];
    row[1]++;
    row[2] += changed ? 1 : 0;
    row[3] += after - before;
    row[4] += time;
    if (changed && row[5] < 0) row[5] = n;
    found.set(name, row);
  });
  return [...found.values()].sort((a, b) => b[4] - a[4]);
}

export const timeline = {
  name: "timeline",
  title: "Timeline",
  hint: () => seconds(data.overview.seconds),
  show() {
    const chart = new Chart();
    const rows = byName();
    const widths = [240, 60, 80, 110, 90];
    const cells = (values) => values.map((v, n) => h(n ? "span.num" : "span.mono", { style: `width:${widths[n]}px` }, v));
    const list = new List({
      kind: "cells",
      height: 22,
      label: "passes",
      draw: (n) => h("div", {}, cells([rows[n][0], `${rows[n][1]}`, `${rows[n][2]}`, (rows[n][3] > 0 ? "+" : "") + whole(rows[n][3]), seconds(rows[n][4])])),
      onpick: (n) => rows[n][5] >= 0 && toPass(rows[n][5]),
    });
    list.reset(rows.length);
    const tall = 30 + chart.lanes * (ROW + 3);
    return [
      h("div.bar", {}, h("span", {}, `${plural(data.timeline.passes.length, "pass run")}, ${plural(data.timeline.spans.filter((s) => s[1] === "kernel").length, "kernel")}`), h("span.dim", {}, "wheel zooms, drag moves, double click shows all; a click on a pass opens what it changed, on a kernel its texts"), h("button", { onclick: () => chart.look(...chart.whole) }, "all")),
      h("div.stage", { style: `flex:none;height:${Math.min(420, tall)}px;border-bottom:1px solid var(--line)` }, chart.canvas.element),
      h("div.head-row", {}, cells(["pass", "runs", "changed", "instructions", "time"])),
      list.element,
    ];
  },
};
