// Every decision, with its reason: filtered as one types.

import { h, put } from "./dom.js";
import { count, whole } from "./format.js";
import { inspect } from "./inspector.js";
import { List } from "./list.js";
import { data, go } from "./state.js";

const { words, rows } = data.decisions;

class Decisions {
  constructor() {
    this.input = h("input", { placeholder: "name, rule or reason; several words must all occur", "aria-label": "filter decisions", style: "width:380px", oninput: () => this.filter(true) });
    this.rule = h("select", { "aria-label": "rule", onchange: () => this.filter(true) }, h("option", { value: "" }, "all rules"), [...new Set(rows.map((r) => words[r[1]]))].sort().map((r) => h("option", { value: r }, r)));
    this.answer = h("select", { "aria-label": "answer", onchange: () => this.filter(true) }, h("option", { value: "" }, "yes and no"), h("option", { value: "1" }, "yes"), h("option", { value: "0" }, "no"));
    this.said = h("span.dim");
    this.widths = [26, 160, 190, 230, 130];
    this.list = new List({ kind: "cells", height: 24, label: "decisions", draw: (n) => this.row(n), onpick: (n, event) => this.pick(n, event) });
    const titles = ["", "rule", "subject", "object", "cost"];
    this.element = h("div.view", {}, h("div.bar", {}, this.input, this.rule, this.answer, this.said), h("div.head-row", {}, titles.map((t, n) => h("span", { style: `width:${this.widths[n]}px` }, t)), h("span", {}, "reason")), this.list.element);
  }

  show(query) {
    if (query !== undefined) this.input.value = query;
    this.filter(false);
  }

  filter(tell) {
    const query = this.input.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const { value: rule } = this.rule;
    const { value: answer } = this.answer;
    const holds = words.map((w) => query.map((q) => w.toLowerCase().includes(q)));
    this.found = rows.flatMap((r, n) => {
      if ((rule && words[r[1]] !== rule) || (answer && r[0] !== Number(answer))) return [];
      return query.every((_, q) => holds[r[1]][q] || holds[r[2]][q] || holds[r[3]][q] || holds[r[4]][q]) ? [n] : [];
    });
    put(this.said, `${whole(this.found.length)} of ${whole(rows.length)}`);
    this.list.reset(this.found.length);
    this.list.element.scrollTop = 0;
    if (tell) go(["why", this.input.value.trim()], true);
  }

  row(n) {
    const [ok, rule, reason, subject, object, before, after] = rows[this.found[n]];
    const cost = before === null || after === null ? "" : `${count(before)} → ${count(after)}`;
    const cell = (at, value, mono) => h(mono ? "span.mono" : "span", { style: `width:${this.widths[at]}px`, title: value }, value);
    return h("div", {}, h(ok ? "span.yes" : "span.no-word", { style: `width:${this.widths[0]}px` }, ok ? "yes" : "no"), cell(1, words[rule]), cell(2, words[subject], true), cell(3, words[object], true), cell(4, cost), h("span", {}, words[reason]));
  }

  pick(n, event) {
    const [, , , subject, object] = rows[this.found[n]];
    const isObject = event?.target?.title && event.target.title === words[object];
    inspect(isObject ? words[object].split(", ")[0] : words[subject]);
  }
}

let view = null;

export const decisions = {
  name: "why",
  title: "Decisions",
  hint: () => whole(rows.length),
  show([query]) {
    if (!rows.length) return h("div.empty", {}, "The trace holds no decisions.");
    view ??= new Decisions();
    view.show(query);
    return view.element;
  },
  search: () => view?.input,
};
