// A text of lines, shown by CodeMirror: search, folding, line numbers, marks; 100,000 lines scroll as ten do.

import { h, put } from "./dom.js";
import { plural } from "./format.js";
import { colours, nameAt } from "./words.js";

const { Decoration, EditorState, EditorView, GutterMarker, RangeSetBuilder, StateEffect, StateField, Text, ViewPlugin } = codemirror;
const { codeFolding, foldEffect, foldGutter, foldKeymap, foldService, foldedRanges, gutter, keymap, lineNumbers } = codemirror;
const { openSearchPanel, presentableDiff, search, searchKeymap, unfoldEffect } = codemirror;

const setMarks = StateEffect.define();
const differs = Decoration.mark({ tagName: "em" });

class Sign extends GutterMarker {
  constructor(sign, kind) {
    super();
    this.sign = sign;
    this.elementClass = `cm-${kind}`;
  }

  eq(other) {
    return other.sign === this.sign && other.elementClass === this.elementClass;
  }

  toDOM() {
    return document.createTextNode(this.sign);
  }
}

const SIGNS = { plus: new Sign("+", "plus"), minus: new Sign("−", "minus"), moved: new Sign("↕", "moved") };

export class TextView {
  /** onpick(row, name, event): a click on a line, and the %name under it. onhover(row): the pointer is over a line. */
  constructor({ label, onpick, onhover = null }) {
    this.label = label;
    this.onpick = onpick;
    this.onhover = onhover;
    this.rows = [];
    this.picked = -1;
    this.marks = new Map();
    this.view = new EditorView({ state: this.state(), dispatchTransactions: (all) => this.take(all) });
    this.element = h("div.text", { onmouseover: (e) => this.hover(e) }, this.view.dom);
  }

  /**
   * Show other rows {text, kind, twin}, unmarked, from the top: kind "plus", "minus" or "moved" has a sign, words that
   * differ from twin's are emphasised. folded: ranges [first, last] of rows.
   */
  show(rows, folded = []) {
    this.rows = rows;
    this.picked = -1;
    this.marks.clear();
    this.view.setState(this.state());
    this.view.scrollDOM.scrollTop = 0;
    const { doc } = this.view.state;
    const range = ([first, last]) => foldEffect.of({ from: doc.line(first + 1).from, to: doc.line(last + 1).to });
    if (folded.length) this.view.dispatch({ effects: folded.map(range) });
  }

  state() {
    const lines = this.rows.map((r) => r.text.replace(/[\r\n]/g, "␤"));
    return EditorState.create({
      doc: Text.of(lines.length ? lines : [""]),
      extensions: [
        EditorState.readOnly.of(true),
        EditorView.editable.of(false),
        EditorView.contentAttributes.of({ tabindex: "0", "aria-label": this.label }),
        lineNumbers({ domEventHandlers: { mousedown: (view, block, e) => this.click(view, block.from, e) } }),
        this.rows.some((r) => r.kind in SIGNS) ? gutter({ class: "signs", lineMarker: (view, block) => SIGNS[this.rowAt(view, block.from)?.kind] ?? null }) : [],
        folding(),
        search(),
        keymap.of([...this.keys(), ...searchKeymap, ...foldKeymap]),
        this.kinds(),
        marked(this),
        emphasis(this),
        colours,
        EditorView.domEventHandlers({ click: (e, view) => this.click(view, view.posAtCoords({ x: e.clientX, y: e.clientY }), e) }),
      ],
    });
  }

  rowAt(view, position) {
    return this.rows[view.state.doc.lineAt(position).number - 1];
  }

  /** The background of added, removed and moved lines. */
  kinds() {
    return EditorView.decorations.of((view) => {
      const all = new RangeSetBuilder();
      eachLine(view, (line) => {
        const { kind } = this.rows[line.number - 1] ?? {};
        if (kind && kind !== "same") all.add(line.from, line.from, Decoration.line({ class: `cm-${kind}` }));
      });
      return all.finish();
    });
  }

  keys() {
    const go = (step) => () => this.step(step);
    const page = Math.max(1, Math.floor(innerHeight / 24));
    return [
      ...[["ArrowDown", 1], ["ArrowUp", -1], ["PageDown", page], ["PageUp", -page], ["Home", -Infinity], ["End", Infinity]].map(([key, by]) => ({ key, run: go(by) })),
      { key: "Enter", run: () => this.picked >= 0 && (this.pick(this.picked), true) },
    ];
  }

  step(by) {
    const n = Math.max(0, Math.min(this.rows.length - 1, this.picked + by));
    this.pick(n);
    this.reveal(n, "nearest");
    return true;
  }

  click(view, position, event) {
    if (position === null || !view.state.selection.main.empty || event.target.closest?.(".cm-foldPlaceholder")) return false;
    const line = view.state.doc.lineAt(position);
    this.pick(line.number - 1, nameAt(line.text, position - line.from), event);
    return false;
  }

  pick(n, name = "", event = null) {
    this.mark(n);
    this.onpick(n, name, event);
  }

  /** Mark a row as the picked one. */
  mark(n) {
    this.picked = n;
    this.setMarks("pick", n < 0 ? [] : [n]);
  }

  /** Mark rows as of a kind, and none else. */
  setMarks(kind, rows) {
    const before = this.marks.get(kind) ?? new Set();
    const now = new Set(rows);
    if (before.size === now.size && [...now].every((n) => before.has(n))) return;
    this.marks.set(kind, now);
    this.view.dispatch({ effects: setMarks.of(null) });
  }

  hover(event) {
    if (!this.onhover) return;
    const line = event.target.closest(".cm-line");
    if (line) this.onhover(this.view.state.doc.lineAt(this.view.posAtDOM(line)).number - 1);
  }

  /** Scroll so that a row is in sight; y: where, as CodeMirror names it. */
  reveal(n, y = "center") {
    if (n < 0 || n >= this.rows.length) return;
    const { from } = this.view.state.doc.line(n + 1);
    const hidden = [];
    foldedRanges(this.view.state).between(from, from, (a, b) => void hidden.push(unfoldEffect.of({ from: a, to: b })));
    this.view.dispatch({ effects: [...hidden, EditorView.scrollIntoView(from, { y, yMargin: 40 })] });
  }

  /** Open the search panel. */
  focus() {
    openSearchPanel(this.view);
    this.view.dom.querySelector("[main-field]").focus();
  }

  /** Scroll and fold as another text of as many rows does, and the other way round. */
  pair(other) {
    this.other = other;
    other.other = this;
    for (const [a, b] of [[this, other], [other, this]]) {
      a.view.scrollDOM.addEventListener("scroll", () => {
        if (b.element.isConnected && b.view.scrollDOM.scrollTop !== a.view.scrollDOM.scrollTop) b.view.scrollDOM.scrollTop = a.view.scrollDOM.scrollTop;
      });
    }
  }

  take(all) {
    this.view.update(all);
    const { other } = this;
    if (!other || other.rows.length !== this.rows.length || other.isTold) return;
    const folds = all.flatMap((t) => t.effects).filter((e) => e.is(foldEffect) || e.is(unfoldEffect));
    if (!folds.length) return;
    this.isTold = true;
    const [mine, its] = [this.view.state.doc, other.view.state.doc];
    const place = (at) => {
      const line = mine.lineAt(at);
      return at === line.from ? its.line(line.number).from : its.line(line.number).to;
    };
    const same = ({ from, to }) => ({ from: place(from), to: its.line(mine.lineAt(to).number).to });
    other.view.dispatch({ effects: folds.map((e) => (e.is(foldEffect) ? foldEffect : unfoldEffect).of(same(e.value))) });
    this.isTold = false;
  }
}

function eachLine(view, f) {
  for (const { from, to } of view.visibleRanges) {
    for (let at = from; at <= to; ) {
      const line = view.state.doc.lineAt(at);
      f(line);
      at = line.to + 1;
    }
  }
}

/** The lines that are marked, by kind, wherever they are. */
function marked(text) {
  const build = (state) => {
    const lines = new Map();
    for (const [kind, rows] of text.marks) for (const n of rows) lines.set(n, `${lines.get(n) ?? ""} cm-${kind}`);
    const all = new RangeSetBuilder();
    for (const n of [...lines.keys()].sort((a, b) => a - b)) {
      if (n >= state.doc.lines) continue;
      const { from } = state.doc.line(n + 1);
      all.add(from, from, Decoration.line({ class: lines.get(n).trim() }));
    }
    return all.finish();
  };
  return StateField.define({
    create: build,
    update: (value, transaction) => (transaction.effects.some((e) => e.is(setMarks)) ? build(transaction.state) : value),
    provide: (field) => EditorView.decorations.from(field),
  });
}

/** In lines with a twin, the words in which the two differ. */
function emphasis(text) {
  const build = (view) => {
    const all = new RangeSetBuilder();
    eachLine(view, (line) => {
      const twin = text.rows[line.number - 1]?.twin;
      if (twin === undefined) return;
      for (const { fromB, toB } of presentableDiff(twin, line.text, { scanLimit: 500 })) {
        if (toB > fromB) all.add(line.from + fromB, line.from + toB, differs);
      }
    });
    return all.finish();
  };
  const plugin = class {
    constructor(view) {
      this.decorations = build(view);
    }

    update(update) {
      if (update.viewportChanged) this.decorations = build(update.view);
    }
  };
  return ViewPlugin.fromClass(plugin, { decorations: (p) => p.decorations });
}

/** Parts fold behind their first line; a run of rows without change is one line. */
const folding = () => {
  return [
    codeFolding({
      preparePlaceholder: (state, { from, to }) => [state.doc.lineAt(to).number - state.doc.lineAt(from).number, state.doc.lineAt(from).from === from],
      placeholderDOM: (view, onclick, [lines, isRun]) => put(h("span.cm-foldPlaceholder", { onclick, role: "button", title: "unfold" }), isRun ? `⋯ ${plural(lines + 1, "line")} without change` : ` ⋯ ${plural(lines, "line")}`),
    }),
    foldService.of(deeper),
    foldGutter({ openText: "▾", closedText: "▸" }),
  ];
};

/** A line's part: the lines behind it that stand deeper. */
function deeper(state, from) {
  const line = state.doc.lineAt(from);
  const depth = indent(line.text);
  let last = line;
  for (let n = line.number + 1; n <= state.doc.lines; n++) {
    const next = state.doc.line(n);
    if (!next.text) continue;
    if (indent(next.text) <= depth) break;
    last = next;
  }
  return last === line || !line.text ? null : { from: line.to, to: last.to };
}

const indent = (text) => text.length - text.trimStart().length;
