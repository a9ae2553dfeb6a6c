// Search over everything, and the table of keys.

import { h, put } from "./dom.js";
import { versions, lastVersion, nameOf } from "./hlo.js";
import { inspect } from "./inspector.js";
import { data, go } from "./state.js";

const MOST = 60;
let items = null;

/** All that can be gone to: [kind, name, how]. */
function everything() {
  const found = [];
  for (const v of versions.slice(1)) found.push(["pass", `${v.name} (version ${v.number})`, () => go(["program", v.number])]);
  for (const k of data.kernels.kernels) found.push(["kernel", k.name, () => go(["kernels", k.name])]);
  for (const v of data.memory.values) found.push(["value", v[1], () => go(["memory", v[1]])]);
  const seen = new Set();
  for (const v of [versions[0], lastVersion()]) {
    for (const c of v?.computations ?? []) {
      for (const line of c.body) {
        const name = nameOf(line);
        if (seen.has(name)) continue;
        seen.add(name);
        found.push(["instruction", name, () => inspect(name)]);
      }
    }
  }
  return found;
}

let veil = null;

export function closeDialog() {
  veil?.remove();
  veil = null;
}

export const isOpen = () => veil !== null;

function dialog(...content) {
  closeDialog();
  veil = h("div.veil", { onmousedown: (e) => e.target === veil && closeDialog() }, h("div.dialog", { role: "dialog", "aria-modal": "true" }, ...content));
  document.body.append(veil);
}

/** The search over names. */
export function openPalette() {
  items ??= everything();
  let hits = [];
  let picked = 0;
  const list = h("div.hits", { role: "listbox" });
  const draw = () => put(list, hits.map((item, n) => h(`div.hit${n === picked ? ".on" : ""}`, { role: "option", onclick: () => choose(n) }, h("span.mono", {}, item[1]), h("span.dim", {}, item[0]))));
  const choose = (n) => {
    closeDialog();
    if (hits[n]) hits[n][2]();
    else if (input.value) go(["why", input.value]);
  };
  const search = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    hits = [];
    for (const item of items) {
      const said = `${item[1]} ${item[0]}`.toLowerCase();
      if (words.every((w) => said.includes(w)) && hits.push(item) >= MOST) break;
    }
    const first = words[0] ?? "";
    hits.sort((a, b) => (b[1].toLowerCase() === first) - (a[1].toLowerCase() === first) || a[1].length - b[1].length);
    picked = 0;
    draw();
  };
  const move = (by) => {
    picked = Math.max(0, Math.min(hits.length - 1, picked + by));
    draw();
    list.children[picked]?.scrollIntoView({ block: "nearest" });
  };
  const keys = { ArrowDown: () => move(1), ArrowUp: () => move(-1), Enter: () => choose(picked), Escape: closeDialog };
  const input = h("input", { placeholder: "instruction, kernel, pass or value; Enter without a hit asks the decisions", "aria-label": "search", oninput: search, onkeydown: (e) => keys[e.key] && (e.preventDefault(), e.stopPropagation(), keys[e.key]()) });
  dialog(input, list);
  search();
  input.focus();
}

const KEYS = [
  ["/ or Ctrl K", "search everything"],
  ["f", "search in this view"],
  ["1 … 9", "views"],
  ["[ and ]", "pass before, next pass"],
  ["n and p", "next change, change before"],
  ["Esc", "close"],
  ["d", "dark or light"],
  ["↑ ↓ Enter", "move in a list, open"],
  ["+ − 0", "zoom a picture, show all"],
  ["?", "these keys"],
];

/** The table of keys. */
export function openKeys() {
  dialog(h("div.keys", {}, KEYS.map(([key, what]) => h("div", {}, h("span", {}, what), h("kbd", {}, key)))));
}
