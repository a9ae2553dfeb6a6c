// The first page: what was compiled, and where to look next.

import { h } from "./dom.js";
import { bytes, plural, seconds, whole } from "./format.js";
import { isWhole, versions } from "./hlo.js";
import { data, go } from "./state.js";

export const overview = {
  name: "overview",
  title: "Overview",
  hint: () => "",
  show: () => h("div.scroll.grow", {}, h("div.cards", {}, cards())),
};

function cards() {
  const o = data.overview;
  return [
    card("Compile", h("div.big", {}, seconds(o.seconds)), stages(), o.notes.map((n) => h("div.note", {}, n))),
    card("Run, estimated", h("div.big", {}, data.roofline.seconds === undefined ? "–" : seconds(data.roofline.seconds)), limits(), slowest()),
    card("Memory", h("div.big", {}, o.memory.peak === undefined ? "–" : bytes(o.memory.peak)), memory(o.memory)),
    card("Kernels", h("div.big", {}, whole(o.launches)), h("div.dim", {}, `launches of ${plural(o.kernels, "distinct kernel")}`), pairs({ ...o.emitters, ...o.thunks })),
    card("Decisions", h("div.big", {}, whole(o.taken + o.refused)), h("div.dim", {}, `${whole(o.taken)} taken, ${whole(o.refused)} refused; most refusals:`), refusals()),
    card("Program", program(), Object.keys(o.options).length ? [h("h3", {}, "Options"), pairs(o.options)] : null),
  ];
}

const card = (title, ...content) => h("section.card", {}, h("h2", {}, title), ...content);

const pairs = (object) => h("table", {}, Object.entries(object).map(([key, value]) => h("tr", {}, h("td", {}, key), h("td.num", {}, typeof value === "number" ? whole(value) : String(value)))));

function stages() {
  const top = data.timeline.stages.filter(([depth]) => depth === 0);
  const most = Math.max(...top.map((t) => t[3]), 1e-9);
  const row = ([, name, , time]) =>
    h("tr", {}, h("td", {}, h("a", { onclick: () => go(["timeline"]) }, name)), h("td.num", {}, seconds(time)), h("td", { style: "width:100px" }, h("div.meter", {}, h("div", { style: `width:${(100 * time) / most}%` }))));
  return h("table", {}, top.map(row));
}

/** Each kernel once, however many steps run it: [name, seconds]. */
function byTime() {
  const found = new Map();
  for (const step of data.roofline.steps ?? []) found.set(step[0], (found.get(step[0]) ?? 0) + step[2] * step[4]);
  return [...found].sort((a, b) => b[1] - a[1]);
}

function slowest() {
  const rows = byTime().slice(0, 6);
  return h("table", {}, rows.map(([name, time]) => h("tr", {}, h("td.mono", {}, h("a", { onclick: () => go(["roofline", name]) }, name)), h("td.num", {}, seconds(time)))));
}

function limits() {
  const sums = {};
  for (const step of data.roofline.steps ?? []) sums[step[8]] = (sums[step[8]] ?? 0) + step[2] * step[4];
  const all = Object.values(sums).reduce((a, b) => a + b, 0) || 1;
  const words = Object.entries(sums).sort((a, b) => b[1] - a[1]).map(([limit, time]) => `${limit} ${Math.round((100 * time) / all)} %`);
  return h("div.dim", {}, words.length ? `limited by ${words.join(", ")}` : "the trace has no estimates");
}

function memory(kinds) {
  return h("table", {}, Object.entries(kinds).filter(([k]) => k !== "peak").map(([k, n]) => h("tr", {}, h("td", {}, k), h("td.num", {}, bytes(n)))));
}

function refusals() {
  const { words, rows } = data.decisions;
  const found = new Map();
  for (const [ok, rule, reason] of rows) {
    if (ok) continue;
    const key = `${words[rule]}: ${words[reason].replace(/'[^']*'/g, "'…'")}`;
    found.set(key, (found.get(key) ?? 0) + 1);
  }
  const most = [...found].sort((a, b) => b[1] - a[1]).slice(0, 5);
  return h("ul", { style: "padding-left:16px;margin:4px 0" }, most.map(([text, n]) => h("li", {}, `${whole(n)} × `, h("a", { onclick: () => go(["why", text.split(":")[0]]) }, text))));
}

function program() {
  const size = (v) => v.computations.reduce((sum, c) => sum + c.body.length, 0);
  if (!versions.length) return h("div.dim", {}, "the trace holds no program");
  const first = versions[0];
  const last = versions[versions.length - 1];
  if (!isWhole) return h("div.dim", {}, `${plural(size(last), "instruction")} as scheduled; --full keeps the versions between`);
  return [
    h("div.big", {}, `${whole(size(first))} → ${whole(size(last))}`),
    h("div.dim", {}, "instructions as given and as scheduled"),
    h("div", {}, h("a", { onclick: () => go(["program"]) }, `${plural(versions.length - 1, "change")} by ${plural(data.timeline.passes.length, "pass run")}`)),
  ];
}
