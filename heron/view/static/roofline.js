// The steps of a run below the roofs of the machine: how far from what work and bytes allow, and what limits each.

import { h, note, put, s } from "./dom.js";
import { bytes, count, seconds } from "./format.js";
import { inspect } from "./inspector.js";
import { List } from "./list.js";
import { data, go } from "./state.js";

const SHAPES = { compute: "M-5 -5H5V5H-5z", memory: "M0 -6A6 6 0 1 0 0.01 -6z", launch: "M0 -6L6 5H-6z" };
const FILLS = { compute: "var(--minus)", memory: "var(--accent)", launch: "var(--edit)" };

/** Steps of the same kernel and cost as one: {name, opcode, runs, seconds (all runs), limit, fraction, flops, bytes, …}. */
function merged() {
  const { columns, steps } = data.roofline;
  const at = Object.fromEntries(columns.map((c, n) => [c, n]));
  return steps
    .map((row) => ({
      name: row[at.name], opcode: row[at.opcode], runs: row[at.runs], known: row[at.runs_known], each: row[at.seconds],
      seconds: row[at.runs] * row[at.seconds], limit: row[at.limit], fraction: row[at.roofline_fraction], flops: row[at.flops],
      unit: row[at.unit], bytes: row[at.read] + row[at.written], from: row[at.from],
    }))
    .sort((a, b) => b.seconds - a.seconds);
}

class Roofline {
  constructor() {
    this.steps = merged();
    this.machine = data.roofline.machine;
    this.picture = h("div.stage", { style: "flex:1.2" });
    new ResizeObserver(() => this.draw()).observe(this.picture);
    this.widths = [250, 60, 84, 58, 80, 90, 80, 70];
    this.list = new List({ kind: "cells", height: 22, label: "steps", draw: (n) => this.row(n), onpick: (n) => this.choose(n) });
    const titles = ["kernel", "runs", "time", "share", "flops", "moved", "limit", "roof"];
    const all = this.steps.reduce((sum, step) => sum + step.seconds, 0) || 1;
    this.all = all;
    this.list.reset(this.steps.length);
    this.element = h(
      "div.view", {},
      h("div.bar", {}, h("b", {}, seconds(data.roofline.seconds)), h("span.dim", {}, `estimated for ${this.machine.description || data.overview.target}; the area of a mark is its share of the time, one above the roof reads from caches`), Object.entries(SHAPES).map(([limit, d]) => h("span", {}, s("svg", { width: 14, height: 14, viewBox: "-7 -7 14 14" }, s("path", { d, fill: FILLS[limit] })), ` ${limit}`))),
      this.picture,
      h("div.head-row", {}, this.cells(titles), h("span", {}, "from")),
      this.list.element,
    );
  }

  cells(parts) {
    return parts.map((p, n) => h(n === 0 ? "span.mono" : n === 6 ? "span" : "span.num", { style: `width:${this.widths[n]}px`, title: n ? null : p }, p));
  }

  row(n) {
    const k = this.steps[n];
    return h("div", {}, this.cells([k.name, `${Number(k.runs.toPrecision(4))}${k.known ? "" : "?"}`, seconds(k.seconds), `${((100 * k.seconds) / this.all).toFixed(1)} %`, count(k.flops), bytes(k.bytes), k.limit, `${Math.round(100 * k.fraction)} %`]), h("span.dim", {}, k.from));
  }

  show(name) {
    const n = name ? this.steps.findIndex((k) => k.name === name) : -1;
    if (n >= 0) {
      this.list.mark(n);
      this.list.reveal(n);
      this.picked = n;
      inspect(name);
    }
    this.draw();
  }

  choose(n) {
    this.picked = n;
    go(["roofline", this.steps[n].name], true);
    inspect(this.steps[n].name);
    this.draw();
  }

  draw() {
    const { width, height } = this.picture.getBoundingClientRect();
    if (!width) return;
    const points = this.steps.map((k, n) => ({ n, x: Math.max(1e-3, k.flops / Math.max(1, k.bytes)), y: k.flops / Math.max(1e-12, k.each), k })).filter((p) => p.k.flops > 0 && p.k.each > 0);
    const roofs = this.machine.flops ? Object.entries(this.machine.flops).filter(([, rate]) => rate > 0) : [];
    const used = new Set(points.map((p) => p.k.unit));
    const shown = roofs.filter(([unit]) => used.has(unit) || unit === "f32");
    const top = Math.max(1, ...shown.map(([, rate]) => rate), ...points.map((p) => p.y)) * 2.2;
    const low = Math.min(top / 1e3, ...points.map((p) => p.y)) / 2;
    const lowX = Math.min(0.05, ...points.map((p) => p.x)) / 1.5;
    const highX = Math.max(1e3, ...points.map((p) => p.x)) * 1.5;
    const x = (v) => 62 + ((Math.log10(v) - Math.log10(lowX)) / (Math.log10(highX) - Math.log10(lowX))) * (width - 80);
    const y = (v) => 8 + (1 - (Math.log10(v) - Math.log10(low)) / (Math.log10(top) - Math.log10(low))) * (height - 44);
    put(this.picture, s("svg", { width, height, role: "img", "aria-label": "roofline" }, grid(x, y, lowX, highX, low, top, width, height), this.roofs(shown, x, y, lowX, highX), this.marks(points, x, y)));
  }

  roofs(shown, x, y, lowX, highX) {
    const bandwidth = this.machine.memory_bandwidth;
    const levels = new Map();
    for (const [unit, rate] of shown) levels.set(rate, [...(levels.get(rate) ?? []), unit]);
    return [...levels].map(([rate, units]) => {
      const knee = rate / bandwidth;
      const points = [[lowX, lowX * bandwidth], [knee, rate], [highX, rate]].map(([a, b]) => `${x(Math.max(lowX, a))},${y(b)}`);
      return [
        s("polyline", { points: points.join(" "), fill: "none", stroke: "var(--dim)", "stroke-width": 1.5 }),
        s("text.dim", { x: x(highX) - 4, y: y(rate) - 5, "text-anchor": "end" }, `${units.join(", ")} ${count(rate)}flop/s`),
      ];
    });
  }

  marks(points, x, y) {
    return [...points].sort((a, b) => b.k.seconds - a.k.seconds).map(({ n, k, x: px, y: py }) => {
      const size = Math.max(0.55, Math.min(3.2, 5 * Math.sqrt(k.seconds / this.all)));
      return s("path", {
        d: SHAPES[k.limit], fill: FILLS[k.limit], "fill-opacity": 0.5, stroke: n === this.picked ? "var(--text)" : FILLS[k.limit], "stroke-width": (n === this.picked ? 2.5 : 1) / size,
        transform: `translate(${x(px)} ${y(py)}) scale(${size})`, style: "cursor:pointer",
        onmousemove: (e) => note(e, h("b", {}, k.name), `\n${seconds(k.seconds)}, ${((100 * k.seconds) / this.all).toFixed(1)} % of the run\n${count(k.flops)}flop, ${bytes(k.bytes)}: ${count(px)} flop a byte\n${count(py)}flop/s, ${Math.round(100 * k.fraction)} % of the roof\nlimited by ${k.limit}`, k.from && `\n${k.from}`),
        onmouseleave: () => note(),
        onclick: () => {
          this.list.reveal(n);
          this.list.pick(n);
        },
      });
    });
  }
}

function grid(x, y, lowX, highX, low, top, width, height) {
  const lines = [];
  for (let p = Math.ceil(Math.log10(lowX)); p <= Math.log10(highX); p++) {
    lines.push(s("line", { x1: x(10 ** p), x2: x(10 ** p), y1: 8, y2: height - 36, stroke: "var(--line)" }), s("text.dim", { x: x(10 ** p), y: height - 22, "text-anchor": "middle" }, count(10 ** p)));
  }
  for (let p = Math.ceil(Math.log10(low)); p <= Math.log10(top); p++) {
    lines.push(s("line", { x1: 62, x2: width - 18, y1: y(10 ** p), y2: y(10 ** p), stroke: "var(--line)" }), s("text.dim", { x: 56, y: y(10 ** p) + 4, "text-anchor": "end" }, count(10 ** p)));
  }
  lines.push(s("text.dim", { x: width / 2, y: height - 6, "text-anchor": "middle" }, "operations a byte moved"));
  lines.push(s("text.dim", { x: 14, y: height / 2, transform: `rotate(-90 14 ${height / 2})`, "text-anchor": "middle" }, "operations a second"));
  return lines;
}

let view = null;

export const rooflineView = {
  name: "roofline",
  title: "Roofline",
  hint: () => (data.roofline.seconds === undefined ? "" : seconds(data.roofline.seconds)),
  show([name]) {
    if (!data.roofline.steps?.length) return h("div.empty", {}, "The trace holds no estimates.");
    view ??= new Roofline();
    view.show(name);
    return view.element;
  },
};
