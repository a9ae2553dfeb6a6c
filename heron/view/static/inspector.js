// What is known of one instruction, with ways to every other view of it.

import { h, put } from "./dom.js";
import { bytes, seconds, whole } from "./format.js";
import { hasPrograms, index, latestWith, nameOf, origin, read, text, versions } from "./hlo.js";
import { data, go } from "./state.js";
import { coloured } from "./words.js";

const panel = h("aside.inspector", { "aria-label": "instruction", hidden: true });
export const inspector = panel;

const decisionsOf = new Map();
{
  const { words, rows } = data.decisions;
  rows.forEach((row, n) => {
    for (const name of [words[row[3]], ...words[row[4]].split(", ")]) {
      if (!decisionsOf.has(name)) decisionsOf.set(name, []);
      decisionsOf.get(name).push(n);
    }
  });
}

/** The instruction or kernel that an old one became part of, at the end of the chain. */
export function home(name) {
  const { became } = data.kernels;
  const seen = new Set();
  while (name in became && !seen.has(name)) {
    seen.add(name);
    name = became[name];
  }
  return name;
}

export const kernelOf = (name) => data.kernels.kernels.find((k) => k.name === name || k.sources.includes(name) || k.names.includes(name));

export function close() {
  panel.hidden = true;
}

/** Show an instruction, as it is in `version` or else in the last version that has it. */
export function inspect(name, version = null) {
  const where = version && index(version).has(name) ? version : hasPrograms ? latestWith(name) : null;
  put(
    panel,
    h("div.top", {}, h("h2", {}, name), h("button", { onclick: close, title: "Esc", "aria-label": "close" }, "×")),
    where && facts(name, where),
    links(name, where),
    history(name),
    kernel(name),
    memory(name),
    decisions(name),
  );
  panel.hidden = false;
  panel.scrollTop = 0;
}

function facts(name, version) {
  const found = index(version).get(name);
  const said = read(found.line);
  const place = origin(found.line);
  return [
    place && h("div", {}, h("b", {}, place)),
    h("p.mono", {}, coloured(text(found.line))),
    names("operands", said.operands, version),
    names("read by", [...new Set(found.users)], version),
    h("div.dim", {}, `in %${found.computation}, version ${version.number}: ${version.name}`),
  ];
}

function names(title, list, version) {
  if (!list.length) return null;
  const shown = list.slice(0, 12).flatMap((n, at) => [at ? ", " : "", h("a.mono", { onclick: () => inspect(n, version) }, n)]);
  return h("div", {}, h("span.dim", {}, `${title} `), shown, list.length > 12 && ` and ${list.length - 12} more`);
}

function links(name, version) {
  const at = version ? version.number : 0;
  return h(
    "div.links",
    {},
    version && h("button", { onclick: () => go(["program", at, name]) }, "in the program"),
    version && h("button", { onclick: () => go(["graph", at, name]) }, "in the graph"),
    h("button", { onclick: () => go(["why", name]) }, "why"),
  );
}

/** The passes that made, changed or removed it. */
function history(name) {
  if (versions.length < 2) return null;
  const steps = [];
  let before = -1;
  for (const version of versions) {
    let now = -1;
    for (const c of version.computations) for (const line of c.body) if (nameOf(line) === name) now = line;
    if (now !== before) steps.push([version, before < 0 ? "made" : now < 0 ? "gone" : "changed"]);
    before = now;
  }
  if (!steps.length) return null;
  const row = ([v, what]) =>
    h("li", {}, `${v.number || what !== "made" ? what : "given"} `, h("a", { onclick: () => go(["program", v.number, name]) }, v.number ? `by ${v.name}` : "in the program"));
  return [h("h3", {}, "Who changed it"), h("ul", {}, steps.map(row))];
}

function kernel(name) {
  const last = home(name);
  const found = kernelOf(last) ?? kernelOf(name);
  const steps = data.roofline.steps?.filter((step) => step[0] === last) ?? [];
  if (!found && !steps.length) return null;
  return [
    h("h3", {}, "Kernel"),
    found && h("div", {}, h("a.mono", { onclick: () => go(["kernels", found.name]) }, found.name), ` (${found.emitter})`),
    last !== name && h("div.dim", {}, `${name} became part of ${last}`),
    steps.map((step) => h("div", {}, `${seconds(step[4])} estimated, ${step[8]} limits it`)),
  ];
}

function memory(name) {
  const found = data.memory.values.filter((v) => v[1] === name || v[1].startsWith(`${name}{`));
  if (!found.length) return null;
  const row = ([allocation, value, , offset, size, live]) =>
    h("li", {}, h("a.mono", { onclick: () => go(["memory", value]) }, value), ` ${bytes(size)} at ${whole(offset)} of ${data.memory.allocations[allocation][0]}, ticks ${live.map((l) => l.join("–")).join(", ")}`);
  return [h("h3", {}, "Memory"), h("ul", {}, found.slice(0, 8).map(row))];
}

function decisions(name) {
  const found = decisionsOf.get(name) ?? [];
  if (!found.length) return null;
  const { words, rows } = data.decisions;
  const row = (n) => {
    const [ok, rule, reason, subject, object] = rows[n];
    const other = words[subject] === name ? words[object] : words[subject];
    return h("li", {}, h(ok ? "span.yes" : "span.no-word", {}, ok ? "yes " : "no "), h("span.dim", {}, `${words[rule]}: `), other && `${other}: `, words[reason]);
  };
  return [h("h3", {}, `Decisions (${found.length})`), h("ul", {}, found.slice(0, 30).map(row)), found.length > 30 && h("a", { onclick: () => go(["why", name]) }, "all")];
}
