// The difference of two versions of a program: rows of equal, removed, added, moved and edited lines.

import { nameOf } from "./hlo.js";

/** How a body became another: rows [kind, line before or -1, line after or -1]. Lines of a body are distinct. */
export function bodyChanges(before, after) {
  const place = new Map(before.map((line, n) => [line, n]));
  const kept = longestRise(after.map((line) => place.get(line) ?? -1));
  const still = new Set(after);
  const rows = [];
  let n = 0;
  const flush = (until) => {
    for (; n < until; n++) rows.push([still.has(before[n]) ? "away" : "minus", before[n], -1]);
  };
  after.forEach((line, m) => {
    if (kept.has(m)) {
      flush(place.get(line));
      rows.push(["same", line, line]);
      n++;
    } else rows.push([place.has(line) ? "moved" : "plus", -1, line]);
  });
  flush(before.length);
  return paired(rows.filter(([kind]) => kind !== "away"));
}

/** A removed line and an added one of the same instruction are one edited line. */
function paired(rows) {
  const removed = new Map();
  rows.forEach(([kind, before], at) => kind === "minus" && removed.set(nameOf(before), at));
  const gone = new Set();
  for (const row of rows) {
    if (row[0] !== "plus") continue;
    const at = removed.get(nameOf(row[2]));
    if (at === undefined) continue;
    gone.add(at);
    row[0] = "edit";
    row[1] = rows[at][1];
  }
  return rows.filter((_, at) => !gone.has(at));
}

/** The places of a longest rising subsequence; numbers below 0 take no part. */
function longestRise(numbers) {
  const tails = [];
  const before = new Array(numbers.length).fill(-1);
  numbers.forEach((value, at) => {
    if (value < 0) return;
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numbers[tails[middle]] < value) low = middle + 1;
      else high = middle;
    }
    before[at] = low ? tails[low - 1] : -1;
    tails[low] = at;
  });
  const found = new Set();
  for (let at = tails.length ? tails[tails.length - 1] : -1; at >= 0; at = before[at]) found.add(at);
  return found;
}

/** Rows of a whole version against the one before: heads of computations too, {kind, before, after, head}. */
export function programChanges(before, after) {
  const rows = [];
  const names = new Set(after.computations.map((c) => c.name));
  const gone = (before?.computations ?? []).filter((c) => !names.has(c.name));
  for (const c of after.computations) {
    const old = before?.bodies.get(c.name);
    const kind = before && !old ? "plus" : "same";
    rows.push({ kind, head: `${c.isEntry ? "ENTRY " : ""}%${c.name} {` });
    const body = before ? bodyChanges(old ?? [], c.body) : c.body.map((line) => ["same", line, line]);
    for (const [what, a, b] of body) rows.push({ kind: what, before: a, after: b });
    rows.push({ kind, head: "}" });
  }
  for (const c of gone) {
    rows.push({ kind: "minus", head: `%${c.name} {` });
    for (const line of c.body) rows.push({ kind: "minus", before: line, after: -1 });
    rows.push({ kind: "minus", head: "}" });
  }
  return rows;
}

/** How many lines were added, removed, edited and moved. */
export function tally(rows) {
  const found = { plus: 0, minus: 0, edit: 0, moved: 0 };
  for (const row of rows) if (row.kind in found && !row.head) found[row.kind]++;
  return found;
}
