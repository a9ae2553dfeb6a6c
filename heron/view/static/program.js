// The program after any pass, and what that pass changed.

import { programChanges, tally } from "./changes.js";
import { h, put } from "./dom.js";
import { plural, seconds, whole } from "./format.js";
import { coloured, differing } from "./highlight.js";
import { hasPrograms, isWhole, nameOf, origin, text, versions } from "./hlo.js";
import { inspect } from "./inspector.js";
import { List } from "./list.js";
import { go, settings } from "./state.js";

const MARKS = { plus: "+", minus: "−", moved: "↕", same: "" };
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
    this.opened = new Set();
    this.steps = new List({ kind: "cells", height: 40, label: "versions", draw: (n) => this.step(n), onpick: (n) => go(["program", n]) });
    this.left = this.list("before");
    this.right = this.list("after");
    this.steps.reset(versions.length);
    this.title = h("span");
    this.search = h("input", { style: "width:150px", placeholder: "find in this program", "aria-label": "find in this program", oninput: () => this.find(0), onkeydown: (e) => e.key === "Enter" && this.find(e.shiftKey ? -1 : 1) });
    this.found = h("span.dim");
    this.folds = h("button", { onclick: () => this.set("isFolded", "folded") }, "changes only");
    this.splits = h("button", { onclick: () => this.set("isSplit", "split") }, "side by side");
    this.body = h("div.split");
    this.element = h("div.split", {}, h("div.side", {}, this.steps.element), h("div.view", {}, h("div.bar", {}, this.buttons(), this.title, h("span", { style: "margin-left:auto" }), this.search, this.found, this.folds, this.splits), this.body));
  }

  buttons() {
    const by = (step) => go(["program", Math.max(0, Math.min(versions.length - 1, this.number + step))]);
    return [h("button", { onclick: () => by(-1), title: "[", "aria-label": "version before" }, "‹"), h("button", { onclick: () => by(1), title: "]", "aria-label": "next version" }, "›")];
  }

  list(side) {
    const list = new List({ draw: (n) => this.row(n, side), label: `program ${side}`, onpick: (n, event) => this.pick(n, side, event) });
    list.element.addEventListener("scroll", () => {
      const other = side === "after" ? this.left : this.right;
      if (this.isSplit && other.element.scrollTop !== list.element.scrollTop) other.element.scrollTop = list.element.scrollTop;
    });
    return list;
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
    if (isNew) this.opened.clear();
    this.folds.setAttribute("aria-pressed", this.isFolded);
    this.splits.setAttribute("aria-pressed", this.isSplit);
    this.folds.disabled = this.splits.disabled = number === 0;
    talliesOf(number);
    this.steps.mark(number);
    this.steps.redraw();
    this.steps.reveal(number);
    this.make(name);
    put(this.body, this.isSplit && number ? this.left.element : null, this.right.element);
    this.left.reset(this.rows.length);
    this.right.reset(this.rows.length);
    const v = versions[number];
    const size = v.computations.reduce((sum, c) => sum + c.body.length, 0);
    put(this.title, h("b", {}, v.name), h("span.dim", {}, ` ${plural(size, "instruction")}${v.record ? ` · in ${v.record[1]}` : ""}`));
    if (!isWhole) put(this.found, "the versions between are kept by --full or --view");
    const at = name ? this.rows.findIndex((r) => r.name === name) : isNew && number ? this.rows.findIndex((r) => r.kind !== "same" && r.kind !== "fold") : -1;
    this.scroll(at < 0 ? 0 : at, Boolean(name));
    if (name) inspect(name, v);
  }

  scroll(at, pick) {
    requestAnimationFrame(() => {
      this.right.reveal(at, at > 0);
      if (pick) this.right.mark(at);
    });
  }

  /** The rows in sight: edited lines as two unless side by side, long runs without change as one. */
  make(name) {
    const all = [];
    for (const r of changes(this.number)) {
      const row = { ...r, name: r.head ? "" : nameOf(r.after >= 0 ? r.after : r.before) };
      if (r.kind !== "edit" || this.isSplit) all.push(row);
      else all.push({ ...row, kind: "minus", name: "", twin: r.after }, { ...row, kind: "plus", twin: r.before });
    }
    this.rows = this.isFolded && this.number ? this.fold(all, name) : all;
  }

  fold(all, name) {
    const near = new Uint8Array(all.length);
    all.forEach((row, n) => {
      if (row.kind === "same" && !(name && row.name === name)) return;
      near.fill(1, Math.max(0, n - CONTEXT), n + CONTEXT + 1);
    });
    const rows = [];
    for (let n = 0; n < all.length; n++) {
      if (near[n] || this.opened.has(n)) rows.push(all[n]);
      else {
        let end = n;
        while (end < all.length && !near[end] && !this.opened.has(end)) end++;
        rows.push({ kind: "fold", first: n, end, count: end - n });
        n = end - 1;
      }
    }
    return rows;
  }

  row(n, side) {
    const r = this.rows[n];
    if (r.kind === "fold") return h("div.fold", {}, h("span.no"), h("span.mark", {}, "⋯"), plural(r.count, "line") + " without change");
    const line = this.isSplit && side === "before" ? (r.before ?? -1) : r.kind === "minus" && !this.isSplit ? r.before : (r.after ?? -1);
    if (r.head !== undefined) return h(`div.${r.kind}`, {}, h("span.no"), h("span.mark", {}, MARKS[r.kind]), h("span.code", {}, coloured(r.head)));
    if (line < 0) return h("div", {}, h("span.no"), h("span.mark"), "");
    const kind = r.kind === "edit" ? (side === "before" ? "minus" : "plus") : r.kind;
    const other = r.kind === "edit" ? (side === "before" ? r.after : r.before) : r.twin;
    const code = other === undefined ? coloured(text(line)) : kind === "minus" ? differing(text(line), text(other))[0] : differing(text(other), text(line))[1];
    return h(`div.${kind}${this.query && text(line).includes(this.query) ? ".find" : ""}`, {}, h("span.no", {}, `${n + 1}`), h("span.mark", {}, MARKS[kind]), h("span.code.in", {}, code), h("span.place", {}, origin(line)));
  }

  pick(n, side, event) {
    const r = this.rows[n];
    if (r.kind === "fold") {
      for (let at = r.first; at < r.end; at++) this.opened.add(at);
      const top = this.right.element.scrollTop;
      this.make("");
      this.left.reset(this.rows.length);
      this.right.reset(this.rows.length);
      this.right.element.scrollTop = top;
      return;
    }
    const name = event?.target?.closest?.("[data-name]")?.dataset.name ?? r.name ?? "";
    if (!name) return;
    go(["program", this.number, name], true);
    inspect(name, versions[side === "before" || r.kind === "minus" ? this.number - 1 : this.number]);
  }

  find(step) {
    this.query = this.search.value;
    if (!this.query) {
      put(this.found, "");
      this.right.redraw();
      return;
    }
    const said = (r) => (r.head ?? (r.kind === "fold" ? "" : text(r.after >= 0 ? r.after : r.before)));
    const hits = this.rows.flatMap((r, n) => (said(r).includes(this.query) ? [n] : []));
    const now = this.right.picked;
    const at = step < 0 ? hits.findLast((n) => n < now) ?? hits.at(-1) : hits.find((n) => (step ? n > now : n >= now)) ?? hits[0];
    put(this.found, hits.length ? `${hits.indexOf(at) + 1} of ${whole(hits.length)}` : "not found");
    this.right.redraw();
    if (at !== undefined) {
      this.right.mark(at);
      this.right.reveal(at);
    }
  }

  /** The next or previous changed row. */
  jump(step) {
    const is = (n) => n >= 0 && n < this.rows.length && !["same", "fold"].includes(this.rows[n].kind);
    let n = Math.max(-1, this.right.picked);
    while (is(n)) n += step;
    while (n >= -1 && n < this.rows.length && !is(n)) n += step;
    if (is(n)) {
      this.right.mark(n);
      this.right.reveal(n, true);
    }
  }
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
  search: () => view.search,
};
