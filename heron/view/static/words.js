// Words of HLO, MLIR, LLVM, PTX and assembly, coloured by CodeMirror: one tokeniser reads them all.

import { h } from "./dom.js";

const { HighlightStyle, StreamLanguage, highlightCode, syntaxHighlighting, tags } = codemirror;

/** What a word may be, by CodeMirror's names; the first that fits counts. */
const WORDS = [
  ["comment", /^(?:\/\/.*|;.*|#\s.*)/],
  ["string", /^"(?:[^"\\]|\\.)*"/],
  ["variableName", /^(?:[%@$][\w.$-]+)/],
  ["typeName", /^(?:(?:pred|token|index|ptr|float|double|half|(?:[suif]|bf|c)\d+\w*)\b(?:\[[^\]]*\](?:\{[^}]*\})?)?|(?:tensor|vector|memref)<[^>]*>)/],
  ["number", /^-?(?:0x[\da-fA-F]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?)\b/],
  ["keyword", /^(?:ROOT|ENTRY|define|call|ret|br|store|load|phi|iter_args|to|step|func|builtin|module)\b/],
  [null, /^[\w.-]+/],
];

const language = StreamLanguage.define({
  token(stream) {
    if (stream.eatSpace()) return null;
    const found = WORDS.find(([, words]) => stream.match(words));
    if (!found) stream.next();
    return found?.[0] ?? null;
  },
});

const style = HighlightStyle.define([
  { tag: tags.comment, class: "t-comment" },
  { tag: tags.string, class: "t-string" },
  { tag: tags.variableName, class: "t-name" },
  { tag: tags.typeName, class: "t-type" },
  { tag: tags.number, class: "t-number" },
  { tag: tags.keyword, class: "t-word" },
]);

export const colours = [language, syntaxHighlighting(style)];

/** A line as spans, for places that are not a text of lines. */
export function coloured(line) {
  const parts = [];
  highlightCode(line, language.parser.parse(line), style, (text, kind) => parts.push(kind ? h(`span.${kind}`, {}, text) : text), () => parts.push(" "));
  return parts;
}

/** The %name at a column of a line, without its sign; empty where there is none. */
export function nameAt(line, column) {
  for (const match of line.matchAll(/%[\w.$-]+/g)) {
    if (match.index <= column && column <= match.index + match[0].length) return match[0].slice(1);
  }
  return "";
}
