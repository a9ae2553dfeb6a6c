// The parts of CodeMirror that the page uses, under one global name.
export { EditorState, RangeSetBuilder, StateEffect, StateField, Text } from "@codemirror/state";
export { Decoration, EditorView, GutterMarker, ViewPlugin, gutter, keymap, lineNumbers } from "@codemirror/view";
export { HighlightStyle, StreamLanguage, codeFolding, foldEffect, foldGutter, foldKeymap, foldService, foldedRanges, syntaxHighlighting, unfoldEffect } from "@codemirror/language";
export { openSearchPanel, search, searchKeymap } from "@codemirror/search";
export { presentableDiff } from "@codemirror/merge";
export { highlightCode, tags } from "@lezer/highlight";
