// A placed graph on a canvas: drawn only where it is in sight, with as much detail as its size on the screen allows.

import { Canvas, colour, h, note } from "./dom.js";
import { tint } from "./format.js";
import { isDark } from "./state.js";

/** Edges that the layout gave no way and that reach farther are drawn at their ends alone, until one of their boxes is chosen. */
const FAR = 300;
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
    this.boxes = [];
    this.edges = [];
    const e = this.canvas.element;
    e.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    e.addEventListener("mousedown", (event) => (this.drag = { x: event.clientX, y: event.clientY, left: this.left, top: this.top }));
    e.addEventListener("mousemove", (event) => this.move(event));
    e.addEventListener("mouseup", (event) => this.up(event));
    e.addEventListener("mouseleave", () => note());
    e.addEventListener("dblclick", (event) => this.hit(event) && this.onopen(this.hit(event)));
    e.addEventListener("keydown", (event) => this.key(event));
  }

  /** Show a graph of which a part has its places. */
  show(graph) {
    this.graph = graph;
    this.picked = this.hover = null;
    this.isMoved = false;
    this.collect();
    this.canvas.again();
  }

  /** More of the graph has its places; the whole of it comes in sight where that is legible and nobody has moved it. */
  grown(isWhole) {
    this.collect();
    if (isWhole && !this.isMoved) this.fit();
    this.canvas.again();
  }

  /** The boxes and edges that have places, and the room they take. */
  collect() {
    this.boxes = [];
    this.edges = [];
    this.bounds = [Infinity, Infinity, -Infinity, -Infinity];
    this.flatten(this.graph);
    this.near = new Map(this.boxes.map((box) => [box, []]));
    for (const edge of this.edges) {
      this.near.get(edge.from).push(edge);
      this.near.get(edge.to).push(edge);
    }
  }

  flatten(graph) {
    for (const box of graph.boxes) {
      if (box.left === undefined) continue;
      this.boxes.push(box);
      const [x0, y0, x1, y1] = this.bounds;
      this.bounds = [Math.min(x0, box.left), Math.min(y0, box.up), Math.max(x1, box.left + box.width), Math.max(y1, box.up + box.height)];
      box.inside.forEach((inner) => this.flatten(inner));
    }
    for (const edge of graph.edges) if (edge.from.left !== undefined && edge.to.left !== undefined) this.edges.push(edge);
  }

  /** The whole graph in sight, or its beginning where that would be too small to read. */
  fit() {
    const { width } = this.canvas;
    if (!width) return requestAnimationFrame(() => this.fit());
    this.all();
    if (this.scale >= LEGIBLE || !this.boxes.length) return undefined;
    this.scale = LEGIBLE;
    const first = this.boxes.filter((b) => b.up < this.bounds[1] + 40);
    const middle = first.reduce((sum, b) => sum + b.left + b.width / 2, 0) / first.length;
    this.left = width / 2 - middle * this.scale;
    this.top = 24 - this.bounds[1] * this.scale;
    return this.canvas.again();
  }

  /** All of it, however small. */
  all() {
    if (!this.boxes.length) return;
    const { width, height } = this.canvas;
    const [x0, y0, x1, y1] = this.bounds;
    this.scale = Math.min(1, width / (x1 - x0 + 60), height / (y1 - y0 + 60));
    this.left = width / 2 - ((x0 + x1) / 2) * this.scale;
    this.top = height / 2 - ((y0 + y1) / 2) * this.scale;
    this.canvas.again();
  }

  /** A box at a point of the screen. */
  put(box, x, y) {
    this.picked = box;
    this.isMoved = true;
    this.left = x - box.left * this.scale;
    this.top = y - box.up * this.scale;
    this.canvas.again();
  }

  /** A box in the middle. */
  centre(box) {
    const { width, height } = this.canvas;
    if (!width) return requestAnimationFrame(() => this.centre(box));
    this.picked = box;
    this.isMoved = true;
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

  crosses({ from: a, to: b }) {
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

  edge(c, { from: a, to: b, points }, whole = false) {
    if (points) return route(c, points);
    const x0 = a.left + a.width / 2;
    const y0 = a.up + a.height;
    const x1 = b.left + b.width / 2;
    const y1 = b.up;
    const bend = Math.max(8, (y1 - y0) / 2);
    if (!whole && Math.abs(y1 - y0) + Math.abs(x1 - x0) > FAR) {
      const lean = Math.sign(x1 - x0) * Math.min(10, Math.abs(x1 - x0));
      c.moveTo(x0, y0);
      c.lineTo(x0 + lean, y0 + STUB);
      c.moveTo(x1 - lean, y1 - STUB);
      return c.lineTo(x1, y1);
    }
    c.moveTo(x0, y0);
    if (this.scale < 0.12) return c.lineTo(x1, y1);
    const aside = Math.abs(x1 - x0) < bend / 4 && y1 - y0 > FAR ? 100 : 0; // past the boxes between the two
    return c.bezierCurveTo(x0 + aside, y0 + bend, x1 + aside, y1 - bend, x1, y1);
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
    this.isMoved = true;
    this.left = x - ((x - this.left) * k) / this.scale;
    this.top = y - ((y - this.top) * k) / this.scale;
    this.scale = k;
    this.canvas.again();
  }

  wheel(event) {
    event.preventDefault();
    if (event.shiftKey) {
      this.isMoved = true;
      this.left -= event.deltaY;
      this.canvas.again();
    } else this.zoom(Math.exp(-event.deltaY / 400), ...this.canvas.at(event));
  }

  move(event) {
    if (this.drag && event.buttons) {
      this.isMoved = true;
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
    const [mine, its] = step ? ["from", "to"] : ["to", "from"];
    const edge = (this.near.get(this.picked) ?? []).find((e) => e[mine] === this.picked);
    if (!edge) return;
    this.centre(edge[its]);
    this.onpick(edge[its]);
  }
}

/** A way through some points, round at each but the ends. */
function route(c, points) {
  c.moveTo(...points[0]);
  for (let n = 1; n < points.length - 1; n++) {
    const [x, y] = points[n];
    const [nx, ny] = points[n + 1];
    const isLast = n === points.length - 2;
    c.quadraticCurveTo(x, y, isLast ? nx : (x + nx) / 2, isLast ? ny : (y + ny) / 2);
  }
  if (points.length === 2) c.lineTo(...points[1]);
}
