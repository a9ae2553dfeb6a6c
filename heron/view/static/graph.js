// The program as a graph: what computes from what, fusions and loops as clusters that open and close.

import { h, put } from "./dom.js";
import { plural, whole } from "./format.js";
import { GraphCanvas } from "./graph_canvas.js";
import { hasPrograms, index, lastVersion, origin, read, text, versions } from "./hlo.js";
import { inspect } from "./inspector.js";
import { arrange } from "./layout.js";
import { go } from "./state.js";

/** Ops whose computations are worth a look; a reduction's is one scalar operation. */
const OPENS = new Set(["fusion", "while", "conditional", "call", "async-start"]);
/** With more instructions than this, clusters begin closed. */
const FEW = 250;

class Graph {
  constructor() {
    this.opened = new Set();
    this.canvas = new GraphCanvas((box) => this.pick(box), (box) => this.toggle(box));
    this.choice = h("select", { "aria-label": "version", onchange: () => go(["graph", this.choice.value]) }, versions.map((v) => h("option", { value: v.number }, `${v.number} ${v.name}`)));
    this.search = h("input", { placeholder: "find an instruction", "aria-label": "find an instruction", onkeydown: (e) => e.key === "Enter" && this.find(this.search.value.replace(/^%/, "")) });
    this.near = h("select", { "aria-label": "how much", onchange: () => this.draw() }, h("option", { value: "0" }, "whole program"), [1, 2, 3, 5].map((n) => h("option", { value: n }, `${plural(n, "edge")} around the chosen`)));
    this.said = h("span.dim");
    this.element = h("div.view", {}, h("div.bar", {}, this.choice, this.near, h("button", { onclick: () => this.openAll(true) }, "open all"), h("button", { onclick: () => this.openAll(false) }, "close all"), h("button", { onclick: () => this.canvas.all(), title: "0" }, "fit"), this.search, this.said), h("div.stage", {}, this.canvas.canvas.element));
  }

  show(number, name) {
    const version = versions[number] ?? lastVersion();
    if (version !== this.version) {
      this.version = version;
      this.choice.value = version.number;
      this.opened.clear();
      const size = version.computations.reduce((sum, c) => sum + c.body.length, 0);
      if (size <= FEW) this.clusters().forEach((c) => this.opened.add(c));
      this.chosen = name;
      if (!name) this.draw();
    }
    if (name) this.find(name);
  }

  clusters() {
    return this.version.computations.flatMap((c) => c.body.map(read).filter((i) => OPENS.has(i.opcode)).map((i) => i.name));
  }

  openAll(open) {
    this.opened = new Set(open ? this.clusters() : []);
    this.draw();
  }

  toggle(box) {
    if (!OPENS.has(box.opcode)) return;
    if (!this.opened.delete(box.name)) this.opened.add(box.name);
    const { scale, left, top } = this.canvas;
    const [x, y] = [box.left * scale + left, box.up * scale + top];
    this.draw(box.name, (now) => this.canvas.put(now, x, y));
  }

  /** Lay the graph out from the box `name`, or the one around it, and show it; then(box) as soon as that box has a place. */
  draw(name = this.chosen, then = null, notice = "") {
    const steps = Number(this.near.value);
    const entry = this.version.computations.find((c) => c.isEntry);
    const home = steps && this.chosen ? (index(this.version).get(this.chosen)?.computation ?? entry.name) : entry.name;
    const graph = this.build(home, steps && this.chosen ? this.around(steps) : null);
    const first = graph.boxes.find((box) => holds(box, name));
    this.size = boxesIn(graph);
    arrange(graph, first, (done, total) => {
      if (done === 1) {
        this.canvas.show(graph);
        const box = this.canvas.boxes.find((b) => b.name === name);
        if (then && box) then(box);
        else this.canvas.fit();
      } else this.canvas.grown(done === total && !then);
      const part = done < total ? `, ${Math.floor((100 * done) / total)} % laid out` : "";
      put(this.said, `${notice}${whole(this.size)} boxes${part}; double click opens and closes`);
    });
  }

  /** The names that are at most so many edges away from the chosen one. */
  around(steps) {
    const all = index(this.version);
    const found = new Set([this.chosen]);
    let edge = [this.chosen];
    for (let n = 0; n < steps; n++) {
      edge = edge.flatMap((name) => [...read(all.get(name).line).operands, ...all.get(name).users]).filter((name) => all.has(name) && !found.has(name));
      edge.forEach((name) => found.add(name));
    }
    return found;
  }

  /** The boxes of a computation; scalar constants are written into their readers. */
  build(name, chosen) {
    const body = this.version.bodies.get(name) ?? [];
    const constants = new Map();
    const boxes = new Map();
    for (const line of body) {
      const i = read(line);
      if (chosen && !chosen.has(i.name)) continue;
      if (i.opcode === "constant" && i.shape.includes("[]") && !i.isRoot) constants.set(i.name, i.inner);
      else boxes.set(i.name, this.box(i, line, constants));
    }
    const edges = [];
    for (const box of boxes.values()) {
      for (const o of new Set(box.operands)) if (boxes.has(o)) edges.push({ from: boxes.get(o), to: box });
    }
    return { name, boxes: [...boxes.values()], edges };
  }

  box(i, line, constants) {
    const small = i.operands.filter((o) => constants.has(o)).map((o) => constants.get(o));
    const opens = OPENS.has(i.opcode);
    const isOpen = opens && this.opened.has(i.name);
    const sign = opens ? (isOpen ? "▾ " : "▸ ") : "";
    const what = i.name.startsWith(i.opcode) ? i.name : `${i.name} = ${i.opcode}`;
    return {
      name: i.name,
      opcode: i.opcode,
      isRoot: i.isRoot,
      operands: i.operands,
      label: `${sign}${what}${small.length ? ` (${small.join(", ")})` : ""}`.slice(0, 60),
      detail: i.shape.slice(0, 60),
      note: [text(line), origin(line)].filter(Boolean).join("\n"),
      inside: isOpen ? i.called.filter((c) => this.version.bodies.has(c)).map((c) => this.build(c, null)) : [],
    };
  }

  pick(box) {
    this.chosen = box.name;
    go(["graph", this.version.number, box.name], true);
    inspect(box.name, this.version);
  }

  /** Show an instruction: its cluster is opened. */
  find(name) {
    const all = index(this.version);
    if (!all.has(name)) {
      this.chosen = undefined;
      this.draw("", null, `version ${this.version.number} has no ${name}; `);
      return;
    }
    this.chosen = name;
    const owners = new Map(this.clusters().flatMap((c) => read(all.get(c).line).called.map((inner) => [inner, c])));
    let isNew = Number(this.near.value) > 0;
    for (let home = all.get(name).computation; owners.has(home); home = all.get(owners.get(home)).computation) {
      isNew ||= !this.opened.has(owners.get(home));
      this.opened.add(owners.get(home));
    }
    const box = isNew ? null : this.canvas.boxes.find((b) => b.name === name);
    if (box) this.canvas.centre(box);
    else this.draw(name, (found) => this.canvas.centre(found));
    inspect(name, this.version);
  }
}

const holds = (box, name) => box.name === name || box.inside.some((graph) => graph.boxes.some((b) => holds(b, name)));
const boxesIn = (graph) => graph.boxes.reduce((sum, b) => sum + 1 + b.inside.reduce((n, g) => n + boxesIn(g), 0), 0);

let view = null;

export const graph = {
  name: "graph",
  title: "Graph",
  hint: () => "",
  show([number, name]) {
    if (!hasPrograms) return h("div.empty", {}, "The trace holds no program.");
    view ??= new Graph();
    view.show(number === undefined || number === "" ? (view.version?.number ?? versions.length - 1) : Number(number), name);
    view.canvas.canvas.again();
    return view.element;
  },
  search: () => view?.search,
};
