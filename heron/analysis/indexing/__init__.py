"""Indexing maps: affine expressions with ranges that say which elements an operation reads."""

from heron.analysis.indexing.expr import Add, Const, Dim, Expr, FloorDiv, Mod, Mul, Sym
from heron.analysis.indexing.map import Constraint, IndexingMap, Var, compose
from heron.analysis.indexing.simplify import Simplifier, simplify
from heron.analysis.indexing.text import format_map, parse_map

__all__ = [
    "Add",
    "Const",
    "Constraint",
    "Dim",
    "Expr",
    "FloorDiv",
    "IndexingMap",
    "Mod",
    "Mul",
    "Simplifier",
    "Sym",
    "Var",
    "compose",
    "format_map",
    "parse_map",
    "simplify",
]
