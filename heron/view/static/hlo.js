// Programs: the lines of every version, and what a line says: name, opcode, operands, called computations.

import { data } from "./state.js";

const stored = data.programs;
export const versions = [];

/** A version: its label, the pass before it, and its computations as {name, isEntry, body: numbers of lines}. */
function readVersions() {
  let last = new Map();
  for (const v of stored.versions ?? []) {
    const now = new Map();
    const computations = v.computations.map(([label, change]) => {
      const isEntry = label.startsWith("ENTRY ");
      const name = isEntry ? label.slice(6) : label;
      const body = bodyOf(change, last.get(name) ?? []);
      now.set(name, body);
      return { name, isEntry, body };
    });
    const pass = v.pass >= 0 ? data.timeline.passes[v.pass] : null;
    versions.push({ number: versions.length, pass: v.pass, name: pass ? pass[0] : stored.is_whole ? "as given" : "as scheduled", record: pass, computations, bodies: now });
    last = now;
  }
}

function bodyOf(change, before) {
  if (!Array.isArray(change)) return before;
  const body = [];
  for (let n = 0; n < change.length; n++) {
    if (change[n] >= 0) body.push(change[n]);
    else {
      const start = -change[n] - 1;
      for (let k = 0; k < change[n + 1]; k++) body.push(before[start + k]);
      n++;
    }
  }
  return body;
}

readVersions();

export const text = (line) => stored.lines[line];
export const origin = (line) => stored.places[stored.origins[line]];
export const hasPrograms = versions.length > 0;
export const isWhole = Boolean(stored.is_whole);

const facts = new Map();

/** What a line says, read once. */
export function read(line) {
  let found = facts.get(line);
  if (!found) facts.set(line, (found = parse(stored.lines[line])));
  return found;
}

/** {name, isRoot, shape, opcode, operands, called, attributes} of the text of an instruction. */
export function parse(line) {
  const isRoot = line.startsWith("ROOT ");
  const start = line.indexOf(" = ");
  const name = line.slice(isRoot ? 6 : 1, start);
  const shapeEnd = line[start + 3] === "(" ? closing(line, start + 3) + 1 : line.indexOf(" ", start + 3);
  const open = line.indexOf("(", shapeEnd);
  const opcode = line.slice(shapeEnd + 1, open);
  const close = closing(line, open);
  const inner = line.slice(open + 1, close);
  const attributes = line.slice(close + 1);
  const operands = opcode === "constant" || opcode === "parameter" ? [] : (inner.match(/%[\w.$-]+/g) ?? []).map((n) => n.slice(1));
  const called = (attributes.match(/%[\w.$-]+/g) ?? []).map((n) => n.slice(1));
  return { name, isRoot, shape: line.slice(start + 3, shapeEnd), opcode, inner, operands, called, attributes };
}

/** The index of the bracket that closes the one at `open`; of text in quotes no bracket counts. */
function closing(line, open) {
  let depth = 0;
  for (let n = open; n < line.length; n++) {
    const c = line[n];
    if (c === '"') {
      for (n++; n < line.length && line[n] !== '"'; n++) if (line[n] === "\\") n++;
    } else if (c === "(") depth++;
    else if (c === ")" && --depth === 0) return n;
  }
  return line.length;
}

const indices = new Map();

/** Where each instruction of a version is: name -> {computation, line, users}. */
export function index(version) {
  let found = indices.get(version.number);
  if (found) return found;
  found = new Map();
  for (const c of version.computations) {
    for (const line of c.body) found.set(read(line).name, { computation: c.name, line, users: [] });
  }
  for (const c of version.computations) {
    for (const line of c.body) for (const o of read(line).operands) found.get(o)?.users.push(read(line).name);
  }
  if (indices.size > 6) indices.clear();
  indices.set(version.number, found);
  return found;
}

export const lastVersion = () => versions[versions.length - 1];

/** The last version that has an instruction of that name. */
export function latestWith(name) {
  for (let n = versions.length - 1; n >= 0; n--) {
    const version = versions[n];
    for (const c of version.computations) for (const line of c.body) if (nameOf(line) === name) return version;
  }
  return null;
}

const names = [];

/** The name of a line's instruction, without reading the rest. */
export function nameOf(line) {
  let found = names[line];
  if (found === undefined) {
    const t = stored.lines[line];
    const start = t.startsWith("ROOT ") ? 6 : 1;
    found = names[line] = t.slice(start, t.indexOf(" = "));
  }
  return found;
}
