// How this compile (B) differs from an earlier one (A): figures, the first cause, decisions and steps.

import { h, put } from "./dom.js";
import { bytes, count, plural, seconds, whole } from "./format.js";
import { inspect } from "./inspector.js";
import { List } from "./list.js";
import { data } from "./state.js";

const d = data.difference;

const figure = (unit, n) => (unit === "s" ? seconds(n) : unit === "B" ? bytes(n) : whole(Math.round(n)));
const change = (a, b) => (a === b ? "" : a ? `${b > a ? "+" : ""}${((100 * (b - a)) / a).toFixed(1)} %` : "new");

class Difference {
  constructor() {
    this.input = h("input", { placeholder: "name, rule or reason", "aria-label": "filter decisions", oninput: () => this.filter() });
    this.kind = h("select", { "aria-label": "kind", onchange: () => this.filter() }, h("option", { value: "" }, "all kinds"), [...new Set(d.decisions.map((c) => c.kind))].map((k) => h("option", { value: k }, k)));
    this.said = h("span.dim");
    this.list = new List({ kind: "cells", height: 58, label: "decisions that differ", draw: (n) => this.row(this.found[n]), onpick: (n) => inspect((this.found[n].b ?? this.found[n].a).subject) });
    this.element = h(
      "div.view", {},
      h("div.split", { style: "flex:1" }, h("div.scroll", { style: "width:46%;border-right:1px solid var(--line)" }, this.figures()), h("div.scroll.grow", {}, this.steps())),
      h("div.bar", { style: "border-top:1px solid var(--line)" }, h("b", {}, `${plural(d.decisions.length, "decision")} differ, first cause first`), this.input, this.kind, this.said),
      this.list.element,
    );
    this.filter();
  }

  figures() {
    const rows = d.totals.filter((t) => t.a || t.b).map((t) => h("tr", {}, h("td", {}, t.name), h("td.num", {}, figure(t.unit, t.a)), h("td.num", {}, figure(t.unit, t.b)), h("td.num", { style: t.a === t.b ? "" : "font-weight:600" }, t.is_measured ? "" : change(t.a, t.b))));
    return [
      d.programs && h("div.note", {}, d.programs),
      d.options.map(([name, a, b]) => h("div.note", {}, `option ${name}: A ${a || "as by default"}, B ${b || "as by default"}`)),
      d.first_pass && h("div.note", {}, this.pass(d.first_pass)),
      d.same && h("div.note", {}, "the same passes, decisions and kernels"),
      h("table", {}, h("tr", {}, ["", "A", "B", "change"].map((t) => h("th", {}, t))), rows),
    ];
  }

  pass({ run, a, b, rules }) {
    if (!a || !b) return `the same passes up to run ${run + 1}, which only ${a ? "A" : "B"} has: ${(a ?? b).name}`;
    if (a.name !== b.name) return `the same up to pass run ${run + 1}: ${a.name} in A, ${b.name} in B`;
    const said = `the same up to pass run ${run + 1}, ${a.name}: ${whole(a.before)} → ${whole(a.after)} instructions in A, ${whole(b.before)} → ${whole(b.after)} in B`;
    return [said, rules.map(([rule, x, y]) => h("div.mono", {}, `${rule} fired ${plural(x, "time")} in A, ${y} in B`))];
  }

  steps() {
    const most = Math.max(...d.steps.map((s) => Math.abs(s.b_seconds - s.a_seconds)), 1e-12);
    const row = (s) => {
      const by = s.b_seconds - s.a_seconds;
      const bar = h("div", { style: `height:8px;border-radius:3px;width:${Math.max(1, (70 * Math.abs(by)) / most)}px;background:var(--${by > 0 ? "minus" : "plus"})` });
      return h("tr", {}, h("td.mono", {}, h("a", { onclick: () => inspect(s.name) }, s.name)), h("td.num", {}, s.a_runs ? seconds(s.a_seconds) : "–"), h("td.num", {}, s.b_runs ? seconds(s.b_seconds) : "–"), h("td.num", {}, `${by > 0 ? "+" : "−"}${seconds(Math.abs(by))}`), h("td", {}, bar));
    };
    return [h("h2", {}, `${plural(d.steps.length, "step")} of a run differ`), h("table", {}, h("tr", {}, ["step", "A", "B", "change", ""].map((t) => h("th", {}, t))), d.steps.slice(0, 100).map(row)), d.steps.length > 100 && h("p.dim", {}, `and ${plural(d.steps.length - 100, "step")} more`)];
  }

  filter() {
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const said = (c) => [c.a, c.b].map((x) => (x ? `${x.rule} ${x.subject} ${x.object} ${x.reason}` : "")).join(" ").toLowerCase();
    this.found = d.decisions.filter((c) => (!this.kind.value || c.kind === this.kind.value) && words.every((w) => said(c).includes(w)));
    put(this.said, `${whole(this.found.length)} of ${whole(d.decisions.length)}`);
    this.list.reset(this.found.length);
  }

  row(c) {
    const one = c.a ?? c.b;
    const answer = (x, kernels) => {
      const cost = x && x.cost_before !== null && x.cost_after !== null ? ` (${count(x.cost_before)} → ${count(x.cost_after)})` : "";
      return [x ? h(x.ok ? "span.yes" : "span.no-word", {}, x.ok ? "yes " : "no ") : h("span.dim", {}, "did not ask"), x && `${x.reason}${cost}`, kernels.map(([name, time]) => h("span.dim", {}, `  in ${name}, ${seconds(time)}`))];
    };
    return h("div", {}, h("div", { style: "line-height:18px" }, h("div", {}, h("span.dim", {}, `${one.rule}  `), h("span.mono", {}, one.subject + (one.object ? ` → ${one.object}` : "")), h("span.dim", {}, `  ${c.kind}`)), h("div", {}, h("b", {}, "A "), answer(c.a, c.a_kernels)), h("div", {}, h("b", {}, "B "), answer(c.b, c.b_kernels))));
  }
}

let view = null;

export const difference = {
  name: "difference",
  title: "Difference",
  isEmpty: () => !d.totals,
  hint: () => (d.totals ? whole(d.decisions.length) : ""),
  show() {
    view ??= new Difference();
    return view.element;
  },
  search: () => view?.input,
};
