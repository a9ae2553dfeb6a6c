// Words of HLO, MLIR, LLVM, PTX and assembly, as coloured spans. Only lines in sight are coloured.

import { h } from "./dom.js";

const WORDS = new RegExp(
  [
    String.raw`(?<comment>//.*$|;.*$|\s#\s.*$)`,
    String.raw`(?<string>"(?:[^"\\]|\\.)*")`,
    String.raw`(?<name>%[A-Za-z_$0-9][\w.$-]*|@[\w.$-]+|\$[\w.]+)`,
    String.raw`(?<type>\b(?:pred|token|index|ptr|float|double|half|(?:[suif]|bf|c)\d+\w*)(?:\[[^\]]*\](?:\{[^}]*\})?)?|\b(?:tensor|vector|memref)<[^>]*>)`,
    String.raw`(?<number>\b-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?)\b)`,
    String.raw`(?<word>(?<![.\w])(?:ROOT|ENTRY|define|call|ret|br|store|load|phi|iter_args|to|step|func|builtin|module)\b)`,
  ].join("|"),
  "g",
);

/** A line as spans. Names carry data-name, so that a click on one can find it. */
export function coloured(line) {
  const parts = [];
  let end = 0;
  for (const match of line.matchAll(WORDS)) {
    if (match.index > end) parts.push(line.slice(end, match.index));
    const [kind] = Object.entries(match.groups).find(([, value]) => value !== undefined);
    const props = kind === "name" && match[0][0] === "%" ? { data: { name: match[0].slice(1) } } : {};
    parts.push(h(`span.t-${kind}`, props, match[0]));
    end = match.index + match[0].length;
  }
  if (end < line.length) parts.push(line.slice(end));
  return parts;
}

/** Two versions of a line: each as parts, what differs in <em>. The common start and end stay plain. */
export function differing(before, after) {
  const a = before.match(/[\w.%-]+|\s+|./g) ?? [];
  const b = after.match(/[\w.%-]+|\s+|./g) ?? [];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  return [a, b].map((words) => {
    const middle = words.slice(start, words.length - end).join("");
    return [
      ...coloured(words.slice(0, start).join("")),
      middle && h("em", {}, ...coloured(middle)),
      ...coloured(words.slice(words.length - end).join("")),
    ];
  });
}
