// A placed graph on a canvas: drawn only where it is in sight, with as much detail as its size on the screen allows.

import { Canvas, colour, h, note } from "./dom.js";
import { tint } from "./format.js";
import { isDark } from "./state.js";

/** Edges that reach farther are drawn at their ends alone, until one of their boxes is chosen. */
const FAR = 900;
const STUB = 22;
/** The smallest scale at which labels can be read. */
const LEGIBLE = 0.6;

export class GraphCanvas {
  /** onpick(box), onopen(box): a click, a double click. */
  constructor(onpick, onopen) {
    this.canvas = new Canvas((c, w, height) => this.paint(c, w, height), { "aria-label": "graph of the program" });
    this.onpick = onpick;
    this.onopen = onopen;
    this.scale = 1;
    this.left = this.top = 0;
    this.graph = null;
    const e = this.canvas.element;
    e.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    e.addEventListener("mousedown", (event) => (this.drag = { x: event.clientX, y: event.clientY, left: this.left, top: this.top }));
    e.addEventListener("mousemove", (event) => this.move(event));
    e.addEventListener("mouseup", (event) => this.up(event));
    e.addEventListener("mouseleave", () => note());
    e.addEventListener("dblclick", (event) => this.hit(event) && this.onopen(this.hit(event)));
    e.addEventListener("keydown", (event) => this.key(event));
  }

  /** Show a graph that has been arranged. */
  show(graph) {
    this.graph = graph;
    this.boxes = [];
    this.edges = [];
    this.flatten(graph, 0, 0);
    this.near = new Map();
    for (const edge of this.edges) {
      for (const end of edge) this.near.set(end, [...(this.near.get(end) ?? []), edge]);
    }
    this.canvas.again();
  }

  flatten(graph, x, y) {
    for (const box of graph.boxes) {
      box.left = x + box.x;
      box.up = y + box.y;
      this.boxes.push(box);
      for (const inner of box.inside) this.flatten(inner, box.left + inner.x, box.up + inner.y);
    }
    this.edges.push(...graph.edges);
  }

  /** The whole graph in sight, or its beginning where that would be too small to read. */
  fit() {
    const { width } = this.canvas;
    if (!width) return requestAnimationFrame(() => this.fit());
    this.all();
    if (this.scale >= LEGIBLE) return undefined;
    this.scale = LEGIBLE;
    const first = this.graph.boxes.filter((b) => b.y === 0);
    const middle = first.reduce((sum, b) => sum + b.x + b.width / 2, 0) / Math.max(1, first.length);
    this.left = width / 2 - middle * this.scale;
    this.top = 24;
    return this.canvas.again();
  }

  /** All of it, however small. */
  all() {
    const { width, height } = this.canvas;
    this.scale = Math.min(1, width / (this.graph.width + 60), height / (this.graph.height + 60));
    this.left = (width - this.graph.width * this.scale) / 2;
    this.top = (height - this.graph.height * this.scale) / 2;
    this.canvas.again();
  }

  /** A box in the middle. */
  centre(box) {
    const { width, height } = this.canvas;
    if (!width) return requestAnimationFrame(() => this.centre(box));
    this.picked = box;
    this.scale = Math.max(this.scale, 0.8);
    this.left = width / 2 - (box.left + box.width / 2) * this.scale;
    this.top = height / 2 - (box.up + Math.min(box.height, 60) / 2) * this.scale;
    return this.canvas.again();
  }

  paint(c, width, height) {
    if (!this.graph) return;
    const k = this.scale;
    c.translate(this.left, this.top);
    c.scale(k, k);
    this.sight = [-this.left / k, -this.top / k, (width - this.left) / k, (height - this.top) / k];
    for (const box of this.boxes) if (this.sees(box)) this.box(c, box);
    c.lineWidth = Math.max(1, 0.6 / k);
    c.strokeStyle = colour("faint");
    c.globalAlpha = k < 0.15 ? 0.35 : 0.8;
    c.beginPath();
    for (const edge of this.edges) if (this.crosses(edge)) this.edge(c, edge);
    c.stroke();
    c.globalAlpha = 1;
    for (const [box, name] of [[this.picked, "accent"], [this.hover, "edit"]]) {
      if (!box) continue;
      c.strokeStyle = colour(name);
      c.lineWidth = Math.max(2, 1.6 / k);
      c.beginPath();
      for (const edge of this.near.get(box) ?? []) this.edge(c, edge, true);
      c.stroke();
      c.strokeRect(box.left, box.up, box.width, box.height);
    }
  }

  sees(box) {
    const [x0, y0, x1, y1] = this.sight;
    return box.left < x1 && box.left + box.width > x0 && box.up < y1 && box.up + box.height > y0;
  }

  crosses([a, b]) {
    const [x0, y0, x1, y1] = this.sight;
    return Math.min(a.left, b.left) < x1 && Math.max(a.left + a.width, b.left + b.width) > x0 && a.up < y1 && b.up + b.height > y0;
  }

  box(c, box) {
    const k = this.scale;
    c.fillStyle = box.inside.length ? colour("panel") : tint(box.opcode, isDark());
    c.fillRect(box.left, box.up, box.width, box.height);
    if (box.inside.length) {
      c.fillStyle = tint(box.opcode, isDark());
      c.fillRect(box.left, box.up, box.width, box.detail ? 38 : 24);
    }
    c.strokeStyle = colour(box.isRoot ? "text" : "line");
    c.lineWidth = box.isRoot ? 2 : 1;
    if (k > 0.12) c.strokeRect(box.left, box.up, box.width, box.height);
    if (k < 0.3) return;
    c.fillStyle = colour("text");
    c.font = "12px ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace";
    c.textBaseline = "middle";
    c.fillText(box.label, box.left + 9, box.up + 13);
    if (!box.detail) return;
    c.fillStyle = colour("dim");
    c.font = "10px ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace";
    c.fillText(box.detail, box.left + 9, box.up + 28);
  }

  edge(c, [a, b], whole = false) {
    const x0 = a.left + a.width / 2;
    const y0 = a.up + a.height;
    const x1 = b.left + b.width / 2;
    const y1 = b.up;
    const bend = Math.max(8, (y1 - y0) / 2);
    if (!whole && y1 - y0 > FAR) {
      const lean = Math.sign(x1 - x0) * Math.min(10, Math.abs(x1 - x0));
      c.moveTo(x0, y0);
      c.lineTo(x0 + lean, y0 + STUB);
      c.moveTo(x1 - lean, y1 - STUB);
      c.lineTo(x1, y1);
      return;
    }
    c.moveTo(x0, y0);
    if (this.scale < 0.12) c.lineTo(x1, y1);
    else c.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
  }

  /** The innermost box under the pointer. */
  hit(event) {
    const [x, y] = this.canvas.at(event);
    const gx = (x - this.left) / this.scale;
    const gy = (y - this.top) / this.scale;
    return this.boxes?.findLast((b) => gx >= b.left && gx <= b.left + b.width && gy >= b.up && gy <= b.up + b.height);
  }

  zoom(f, x = this.canvas.width / 2, y = this.canvas.height / 2) {
    const k = Math.min(4, Math.max(0.004, this.scale * f));
    this.left = x - ((x - this.left) * k) / this.scale;
    this.top = y - ((y - this.top) * k) / this.scale;
    this.scale = k;
    this.canvas.again();
  }

  wheel(event) {
    event.preventDefault();
    if (event.shiftKey) {
      this.left -= event.deltaY;
      this.canvas.again();
    } else this.zoom(Math.exp(-event.deltaY / 400), ...this.canvas.at(event));
  }

  move(event) {
    if (this.drag && event.buttons) {
      this.left = this.drag.left + event.clientX - this.drag.x;
      this.top = this.drag.top + event.clientY - this.drag.y;
      return this.canvas.again();
    }
    const hover = this.hit(event);
    if (hover) note(event, h("b", {}, hover.label), `\n${hover.note}`);
    else note();
    if (hover !== this.hover) {
      this.hover = hover;
      this.canvas.again();
    }
    return undefined;
  }

  up(event) {
    const moved = this.drag && Math.hypot(event.clientX - this.drag.x, event.clientY - this.drag.y) > 4;
    this.drag = null;
    const found = this.hit(event);
    if (moved || !found) return;
    this.picked = found;
    this.canvas.again();
    this.onpick(found);
  }

  key(event) {
    const step = { ArrowUp: 0, ArrowDown: 1 }[event.key];
    if (event.key === "Enter" && this.picked) this.onopen(this.picked);
    if (event.key === "+" || event.key === "=") this.zoom(1.25);
    if (event.key === "-") this.zoom(0.8);
    if (event.key === "0") this.all();
    if (step === undefined || !this.picked) return;
    event.preventDefault();
    const edge = (this.near.get(this.picked) ?? []).find((e) => e[1 - step] === this.picked);
    if (!edge) return;
    this.centre(edge[step]);
    this.onpick(edge[step]);
  }
}
