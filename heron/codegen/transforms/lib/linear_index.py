"""From the indices of a tensor access to one simplified linear index.

Indices that come from `xla_gpu.apply_indexing` are followed back to their operands, so that
`(d0 floordiv 8) * 8 + d0 mod 8` becomes `d0` before any arithmetic is emitted. Ranges come from the maps on the way and
from the tensor itself: an access is in bounds.

A map may know more of a value than what the value is made of tells: of the place in a tile that begins early in order
to be whole. Where that saves divisions, such values are followed no further.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import OpResult, SSAValue

from heron.analysis.indexing import Const, Dim, Expr, Simplifier
from heron.analysis.indexing.expr import BinaryExpr, FloorDiv, Mod
from heron.analysis.indexing.simplify import Range
from heron.codegen.ir.dialects.xla_gpu import ApplyIndexingOp
from heron.codegen.ir.editing import constant_value
from heron.codegen.transforms.lib.buffers import strides

Ranges: TypeAlias = dict[int, Range]  # leaf number -> range
UNKNOWN: Range = (-(2**62), 2**62)


class LinearIndexer:
    """Composes and simplifies access indices of one function; `Dim(n)` stands for its n-th leaf value."""

    def __init__(self) -> None:
        self._leaves: list[SSAValue] = []
        self._numbers: dict[SSAValue, int] = {}
        self._resolved: dict[tuple[SSAValue, bool], tuple[Expr, Ranges]] = {}
        self._simplifiers: dict[tuple[tuple[int, Range], ...], Simplifier] = {}
        self._linear: dict[tuple[object, ...], tuple[Expr, Simplifier]] = {}

    def leaf(self, e: Expr) -> SSAValue:
        """The value a variable stands for."""
        return self._leaves[e.index]  # pyright: ignore[reportAttributeAccessIssue]

    def linear(self, type_: TensorType, indices: Sequence[SSAValue]) -> tuple[Expr, Simplifier]:
        """The simplified linear index of an access, and the simplifier that knows its variables' ranges."""
        key = (type_, *indices)
        found = self._linear.get(key)
        if found is None:
            found = self._compute(type_, indices, to_the_end=True)
            divisions = _divisions(found[0])
            if divisions:
                other = self._compute(type_, indices, to_the_end=False)
                found = other if _divisions(other[0]) < divisions else found
            self._linear[key] = found
        return found

    def _compute(self, type_: TensorType, indices: Sequence[SSAValue], to_the_end: bool) -> tuple[Expr, Simplifier]:
        total: Expr = Const(0)
        ranges: Ranges = {}
        for index, size, stride in zip(indices, type_.get_shape(), strides(type_), strict=True):
            if size == 1:
                continue  # the only index in bounds is 0
            e, leaves = self._resolve(index, to_the_end)
            for n, r in leaves.items():
                ranges[n] = _meet(ranges.get(n, UNKNOWN), r)
            if isinstance(e, Dim):
                ranges[e.index] = _meet(ranges[e.index], (0, size - 1))
            total = total + e * stride
        simplifier = self._simplifier(ranges)
        return simplifier.simplify(total), simplifier

    def _simplifier(self, ranges: Ranges) -> Simplifier:
        key = tuple(sorted(ranges.items()))
        found = self._simplifiers.get(key)
        if found is None:  # only the numbers in `ranges` occur, so a dict does as the table of dimensions
            found = self._simplifiers[key] = Simplifier(dict(ranges))  # pyright: ignore[reportArgumentType]
        return found

    def _resolve(self, value: SSAValue, to_the_end: bool) -> tuple[Expr, Ranges]:
        """`value` as an expression over leaves, with the leaves' ranges that hold wherever `value` is defined.

        ``to_the_end``: also where a map knows more of a value than what it is made of tells.
        """
        found = self._resolved.get((value, to_the_end))
        if found is None:
            found = self._resolved[value, to_the_end] = self._follow(value, to_the_end)
        return found

    def _follow(self, value: SSAValue, to_the_end: bool) -> tuple[Expr, Ranges]:
        known = constant_value(value)
        if known is not None:
            return Const(known), {}
        if not isinstance(value, OpResult) or not isinstance(value.op, ApplyIndexingOp):
            return self._as_leaf(value)
        m = value.op.map
        e = m.results[value.index]
        used = e.variables()
        ranges: Ranges = {}
        exprs: list[Expr | None] = []
        n = len(m.dims)
        for i, (operand, v) in enumerate(zip(value.op.operands, (*m.dims, *m.syms, *m.rt_vars), strict=True)):
            resolved, inner = self._resolve(operand, to_the_end)
            exprs.append(resolved)
            if not any(u.index == (i if isinstance(u, Dim) else i - n) for u in used):  # pyright: ignore
                continue
            if not to_the_end and self._may_leave(resolved, inner, (v.lo, v.hi)):
                resolved, inner = self._as_leaf(operand)
                exprs[-1] = resolved
            for number, r in inner.items():
                ranges[number] = _meet(ranges.get(number, UNKNOWN), r)
            if isinstance(resolved, Dim):
                ranges[resolved.index] = _meet(ranges[resolved.index], (v.lo, v.hi))
        return e.substitute(exprs[:n], exprs[n:]), ranges

    def _as_leaf(self, value: SSAValue) -> tuple[Expr, Ranges]:
        number = self._numbers.setdefault(value, len(self._leaves))
        if number == len(self._leaves):
            self._leaves.append(value)
        return Dim(number), {number: UNKNOWN}

    def _may_leave(self, e: Expr, ranges: Ranges, known: Range) -> bool:
        """Whether a sum or a product could leave its known range, as far as its parts tell."""
        if isinstance(e, (Const, Dim)):
            return False
        low, high = self._simplifier(ranges).range_of(e)
        return low < known[0] or high > known[1]


def _divisions(e: Expr) -> int:
    """Quotients and remainders in an expression."""
    if not isinstance(e, BinaryExpr):
        return 0
    return isinstance(e, (FloorDiv, Mod)) + _divisions(e.lhs) + _divisions(e.rhs)


def _meet(a: Range, b: Range) -> Range:
    lo, hi = max(a[0], b[0]), min(a[1], b[1])
    return (lo, hi) if lo <= hi else b  # contradictory ranges: the code is never reached
