// The program after any pass, and what that pass changed.

import { programChanges, tally } from "./changes.js";
import { h, put } from "./dom.js";
import { plural, seconds, whole } from "./format.js";
import { hasPrograms, isWhole, nameOf, origin, text, versions } from "./hlo.js";
import { inspect } from "./inspector.js";
import { List } from "./list.js";
import { go, settings } from "./state.js";
import { TextView } from "./text.js";

const CONTEXT = 3;
const rowsOf = [];
const tallies = [];

function changes(n) {
  if (!rowsOf[n]) {
    rowsOf[n] = programChanges(n ? versions[n - 1] : null, versions[n]);
    tallies[n] = tally(rowsOf[n]);
    const kept = Object.keys(rowsOf);
    if (kept.length > 8) delete rowsOf[kept.find((k) => Number(k) !== n)];
  }
  return rowsOf[n];
}

function talliesOf(n) {
  if (!tallies[n]) changes(n);
  return tallies[n];
}

class Program {
  constructor() {
    this.isFolded = settings.get("folded", "yes") === "yes";
    this.isSplit = settings.get("split", "no") === "yes";
    this.steps = new List({ kind: "cells", height: 40, label: "versions", draw: (n) => this.step(n), onpick: (n) => go(["program", n]) });
    this.left = new TextView({ label: "program before", onpick: (n, name) => this.pick(n, name, "before") });
    this.right = new TextView({ label: "program after", onpick: (n, name) => this.pick(n, name, "after") });
    this.left.pair(this.right);
    this.steps.reset(versions.length);
    this.title = h("span");
    this.found = h("span.dim");
    this.search = h("button", { onclick: () => this.right.focus(), title: "f" }, "find");
    this.folds = h("button", { onclick: () => this.set("isFolded", "folded") }, "changes only");
    this.splits = h("button", { onclick: () => this.set("isSplit", "split") }, "side by side");
    this.body = h("div.split");
    this.element = h("div.split", {}, h("div.side", {}, this.steps.element), h("div.view", {}, h("div.bar", {}, this.buttons(), this.title, h("span", { style: "margin-left:auto" }), this.found, this.search, this.folds, this.splits), this.body));
  }

  buttons() {
    const by = (step) => go(["program", Math.max(0, Math.min(versions.length - 1, this.number + step))]);
    return [h("button", { onclick: () => by(-1), title: "[", "aria-label": "version before" }, "‹"), h("button", { onclick: () => by(1), title: "]", "aria-label": "next version" }, "›")];
  }

  set(field, key) {
    this[field] = !this[field];
    settings.set(key, this[field] ? "yes" : "no");
    this.show(this.number, this.name);
  }

  step(n) {
    const v = versions[n];
    const t = tallies[n];
    const said = t ? [["plus", "+"], ["minus", "−"], ["edit", "~"], ["moved", "↕"]].filter(([k]) => t[k]).map(([k, sign]) => h("span", { style: `color:var(--${k === "moved" ? "dim" : k})` }, `${sign}${whole(t[k])} `)) : "";
    return h("div", {}, h("span.num.dim", { style: "width:24px" }, `${n}`), h("div.grow", { style: "line-height:1.35" }, h("div.mono", {}, v.name), h("div.dim", {}, v.record ? [`${seconds(v.record[3])} `, said] : "")));
  }

  show(number, name = "") {
    const isNew = this.number !== number;
    this.number = number;
    this.name = name;
    this.folds.setAttribute("aria-pressed", this.isFolded);
    this.splits.setAttribute("aria-pressed", this.isSplit);
    this.folds.disabled = this.splits.disabled = number === 0;
    talliesOf(number);
    this.steps.mark(number);
    this.steps.redraw();
    this.steps.reveal(number);
    this.make();
    put(this.body, this.isSplit && number ? this.left.element : null, this.right.element);
    const v = versions[number];
    const size = v.computations.reduce((sum, c) => sum + c.body.length, 0);
    put(this.title, h("b", {}, v.name), h("span.dim", {}, ` ${plural(size, "instruction")}${v.record ? ` · in ${v.record[1]}` : ""}`));
    if (!isWhole) put(this.found, "the versions between are kept by --full or --view");
    const named = name ? this.rows.findIndex((r) => r.name === name && r.kind !== "minus") : -1;
    const at = named < 0 && isNew && number ? this.rows.findIndex((r) => r.kind !== "same") : named;
    this.right.reveal(at);
    if (named >= 0) this.right.mark(named);
    if (name) inspect(name, v);
  }

  /** The rows in sight: edited lines as two unless side by side, long runs without change folded. */
  make() {
    const all = [];
    for (const r of changes(this.number)) {
      const row = { ...r, name: r.head ? "" : nameOf(r.after >= 0 ? r.after : r.before) };
      if (r.kind !== "edit" || this.isSplit) all.push(row);
      else all.push({ ...row, kind: "minus", twin: r.after }, { ...row, kind: "plus", twin: r.before });
    }
    this.rows = all;
    const folded = this.isFolded && this.number ? unchanged(all) : [];
    this.right.show(all.map((r) => this.shown(r, "after")), folded);
    if (this.isSplit && this.number) this.left.show(all.map((r) => this.shown(r, "before")), folded);
  }

  /** A row as a line of the text on one side. */
  shown(r, side) {
    const isLeft = this.isSplit && side === "before";
    if (r.head !== undefined) return isLeft && r.kind === "plus" ? { text: "" } : { text: r.head, kind: r.kind };
    const line = isLeft ? r.before : r.kind === "minus" ? (this.isSplit ? -1 : r.before) : r.after;
    if (line === undefined || line < 0) return { text: "" };
    const kind = r.kind === "edit" ? (isLeft ? "minus" : "plus") : r.kind;
    const twin = r.kind === "edit" ? (isLeft ? r.after : r.before) : r.twin;
    return { text: written(line), kind, twin: twin === undefined ? undefined : written(twin) };
  }

  pick(n, word, side) {
    const r = this.rows[n];
    const name = word || r.name;
    if (!name) return;
    go(["program", this.number, name], true);
    inspect(name, versions[side === "before" || r.kind === "minus" ? this.number - 1 : this.number]);
  }

  /** The next or previous changed row. */
  jump(step) {
    const is = (n) => n >= 0 && n < this.rows.length && this.rows[n].kind !== "same";
    let n = Math.max(-1, this.right.picked);
    while (is(n)) n += step;
    while (n >= -1 && n < this.rows.length && !is(n)) n += step;
    if (!is(n)) return;
    this.right.mark(n);
    this.right.reveal(n);
  }
}

/** An instruction as a line, with its place in the Python program behind it. */
function written(line) {
  const place = origin(line);
  return `  ${text(line)}${place ? `  // ${place}` : ""}`;
}

/** Runs [first, last] of rows that are not near a change. */
function unchanged(rows) {
  const near = new Uint8Array(rows.length);
  rows.forEach((row, n) => row.kind !== "same" && near.fill(1, Math.max(0, n - CONTEXT), n + CONTEXT + 1));
  const runs = [];
  for (let n = 0; n < rows.length; n++) {
    if (near[n]) continue;
    const first = n;
    while (n + 1 < rows.length && !near[n + 1]) n++;
    if (n > first) runs.push([first, n]);
  }
  return runs;
}

let view = null;

export const program = {
  name: "program",
  title: "Program",
  hint: () => (versions.length > 1 ? `${versions.length - 1} changes` : ""),
  show([number, name]) {
    if (!hasPrograms) return h("div.empty", {}, "The trace holds no program. ", h("code", {}, "heron compile FILE --view OUT.html"), " keeps it after every pass.");
    view ??= new Program();
    const n = number === undefined || number === "" ? Math.max(0, view.number ?? 0) : Number(number);
    view.show(Math.min(versions.length - 1, Math.max(0, n || 0)), name);
    return view.element;
  },
  keys: {
    "[": () => go(["program", Math.max(0, view.number - 1)]),
    "]": () => go(["program", Math.min(versions.length - 1, view.number + 1)]),
    n: () => view.jump(1),
    p: () => view.jump(-1),
  },
  search: () => view.right,
};
