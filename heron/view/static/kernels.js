// Each kernel from HLO to machine code: two to four texts side by side, linked line by line.

import { h, put } from "./dom.js";
import { bytes, plural, seconds, whole } from "./format.js";
import { inspect } from "./inspector.js";
import { List } from "./list.js";
import { data, go } from "./state.js";
import { TextView } from "./text.js";

const all = data.kernels.kernels;
const timeOf = new Map();
for (const step of data.roofline.steps ?? []) timeOf.set(step[0], (timeOf.get(step[0]) ?? 0) + step[2] * step[4]);
const timeOfKernel = (k) => k.sources.reduce((sum, name) => sum + (timeOf.get(name) ?? 0), 0);

/** The step that a step's lines were made from. */
const before = (steps, n) => steps[n][1].base ?? n - 1;

/** Lines of a step by the lines of another one of the same kernel: through the steps between, where each knows its own. */
function linked(steps, from, lines, to) {
  let mine = new Set(lines);
  let its = steps[to][1].lines.map((_, n) => n);
  for (let [a, b] = [from, to]; a !== b; ) {
    const back = steps[Math.max(a, b)][1].from;
    if (!back) return null;
    if (a > b) {
      mine = new Set([...mine].map((line) => back[line]).filter((line) => line >= 0));
      a = before(steps, a);
    } else {
      its = its.map((line) => (line < 0 ? -1 : back[line]));
      b = before(steps, b);
    }
  }
  const found = new Set();
  its.forEach((line, n) => mine.has(line) && found.add(n));
  return found;
}

class Column {
  constructor(view, step) {
    this.view = view;
    this.kernel = view.kernel;
    this.step = step;
    this.line = -1;
    this.choice = h("select", { "aria-label": "step", onchange: () => this.view.choose(this, Number(this.choice.value)) });
    this.size = h("span.dim");
    this.list = new TextView({ label: "text", onpick: (n, name, e) => this.view.pin(this, n, name, e), onhover: (n) => this.view.link(this, n) });
    this.element = h("div.column", {}, h("div.bar", {}, this.choice, this.size, h("button", { onclick: () => this.view.remove(this), title: "close this text", "aria-label": "close this text", style: "margin-left:auto" }, "×")), this.list.element);
  }

  get text() {
    return this.kernel.steps[this.step][1];
  }

  fill() {
    put(this.choice, this.kernel.steps.map(([name], n) => h("option", { value: n }, name)));
    this.choice.value = this.step;
    put(this.size, plural(this.text.lines.length, "line"));
    this.list.show(this.text.lines.map((text) => ({ text })));
  }
}

class Kernels {
  constructor() {
    this.order = all.map((_, n) => n).sort((a, b) => timeOfKernel(all[b]) - timeOfKernel(all[a]));
    this.list = new List({ kind: "cells", height: 40, label: "kernels", draw: (n) => this.entry(all[this.order[n]]), onpick: (n) => go(["kernels", all[this.order[n]].name]) });
    this.list.reset(all.length);
    this.head = h("div.bar");
    this.columns = [];
    this.texts = h("div.columns");
    this.element = h("div.split", {}, h("div.side", {}, this.list.element), h("div.view", {}, this.head, this.texts));
  }

  entry(k) {
    const time = timeOfKernel(k);
    return h("div", {}, h("div.grow", { style: "line-height:1.35" }, h("div.mono", { title: k.name }, k.name), h("div.dim", {}, `${k.emitter}${k.sources.length > 1 ? ` × ${k.sources.length}` : ""}${time ? ` · ${seconds(time)}` : ""}`)));
  }

  show(name, steps) {
    const kernel = all.find((k) => k.name === name) ?? this.kernel ?? all[this.order[0]];
    const isNew = kernel !== this.kernel;
    this.kernel = kernel;
    const entry = this.order.indexOf(all.indexOf(kernel));
    this.list.mark(entry);
    this.list.reveal(entry);
    put(this.head, this.about());
    if (!kernel.steps.length) {
      this.columns = [];
      put(this.texts, h("div.empty", {}, "The trace has no texts of kernels. ", h("code", {}, "heron compile FILE -o OUT.trace --full"), " keeps them."));
      return;
    }
    const wanted = steps.map((s) => /^(.*?)(?::(\d+))?$/.exec(s)).map(([, step, line]) => [kernel.steps.findIndex(([n]) => n === step), Number(line) - 1]).filter(([n]) => n >= 0);
    if (isNew || !this.columns.length || wanted.length) this.set(wanted.length ? wanted.map(([n]) => n) : this.usual());
    const at = wanted.findIndex(([n, line]) => line < kernel.steps[n][1].lines.length);
    if (at >= 0) this.open(this.columns[at], wanted[at][1]);
  }

  /** HLO, the MLIR as emitted, and the last text. */
  usual() {
    const steps = this.kernel.steps;
    return [...new Set([0, Math.min(1, steps.length - 1), steps.length - 1])];
  }

  set(steps) {
    this.columns = steps.map((n) => new Column(this, n));
    put(this.texts, this.columns.map((c) => c.element));
    this.columns.forEach((c) => c.fill());
  }

  choose(column, step) {
    column.step = step;
    column.line = -1;
    column.fill();
    this.tell();
  }

  remove(column) {
    if (this.columns.length === 1) return;
    this.columns = this.columns.filter((c) => c !== column);
    column.element.remove();
    this.tell();
  }

  add() {
    const used = new Set(this.columns.map((c) => c.step));
    const next = this.kernel.steps.findIndex((_, n) => n > 0 && !used.has(n));
    if (next < 0 || this.columns.length >= 4) return;
    this.set([...used, next].sort((a, b) => a - b));
    this.tell();
  }

  /** A line of an address: in sight, and marked with all that belong to it. */
  open(column, n) {
    column.line = n;
    this.mark(column, n);
    column.list.reveal(n);
  }

  tell() {
    const said = (c) => this.kernel.steps[c.step][0] + (c.line >= 0 ? `:${c.line + 1}` : "");
    go(["kernels", this.kernel.name, ...this.columns.map(said)], true);
  }

  about() {
    const k = this.kernel;
    const { grid, block, work_items: items } = k.launch;
    const said = [k.emitter, grid && block && block.join() !== "1,1,1" ? `grid ${grid.join("×")}, block ${block.join("×")}` : items > 1 ? plural(items, "work item") : "", ...Object.entries(k.resources).filter(([key, n]) => n && key !== "code_bytes").map(([key, n]) => `${n} ${key.replaceAll("_", " ")}`), k.code_size ? bytes(k.code_size) : ""].filter(Boolean);
    return [h("b.mono", {}, k.name), h("span.dim", {}, said.join(" · ")), h("a", { onclick: () => inspect(k.sources[0] ?? k.name) }, plural(k.sources.length, "launch").replace("launchs", "launches")), k.steps.length > 0 && h("button", { onclick: () => this.add(), style: "margin-left:auto" }, "+ text")];
  }

  /** The lines of every column that belong to line `n` of one. */
  related(column, n) {
    const steps = this.kernel.steps;
    const of = column.text.of[n];
    return this.columns.map((c) => {
      const exact = linked(steps, column.step, new Set([n]), c.step);
      if (exact?.size) return exact;
      const same = new Set();
      if (of >= 0) c.text.of.forEach((o, at) => o === of && same.add(at));
      return same;
    });
  }

  link(column, n) {
    this.related(column, n).forEach((lines, at) => this.columns[at].list.setMarks("link", lines));
  }

  /** Mark the lines that belong to line `n` of a column; a click on a name of the program asks for it. */
  pin(column, n, name, event) {
    this.mark(column, n);
    column.line = n;
    for (const c of this.columns) if (c !== column) c.line = -1;
    this.tell();
    const of = column.text.of[n];
    const { names } = this.kernel;
    if (name && column.step === 0 && names.includes(name)) inspect(name);
    else if (of >= 0 && event?.detail === 2) inspect(names[of]);
  }

  mark(column, n) {
    this.related(column, n).forEach((lines, at) => {
      const c = this.columns[at];
      c.list.setMarks("pin", lines);
      if (c !== column && lines.size) c.list.reveal(Math.min(...lines));
    });
  }
}

let view = null;

export const kernels = {
  name: "kernels",
  title: "Kernels",
  hint: () => whole(all.length),
  show([name, ...steps]) {
    if (!all.length) return h("div.empty", {}, "The program has no kernels.");
    view ??= new Kernels();
    view.show(name, steps);
    return view.element;
  },
  search: () => view?.columns[0]?.list,
};
