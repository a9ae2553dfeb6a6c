"""Ranges of integers and indices, as far as the ops that produce them determine.

Ranges are of signed numbers, ends included. Loop variables know their bounds, results of `xla_gpu.apply_indexing` the
domain of their map; values carried by loops, read from memory or passed in may be anything of their type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xdsl.dialects import arith, gpu, scf
from xdsl.dialects.builtin import IntegerType, i1
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from heron.codegen.ir.dialects.xla_gpu import ApplyIndexingOp, LoopOp
from heron.codegen.ir.editing import constant_value

Range: TypeAlias = tuple[int, int]
#: an i1, which is no number to compute with: 1 is its -1
_BIT: Range = (0, 1)
#: how many ops back a range is looked for
DEPTH = 8
#: launches have fewer threads and blocks than this in each dimension
IDS: Range = (0, 2**31 - 1)


def type_range(type_: Attribute) -> Range:
    """The range of a type; an index has 64 bits."""
    bits = type_.width.data if isinstance(type_, IntegerType) else 64
    return _BIT if bits == 1 else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


class Ranges:
    """Ranges of the values of a function, remembered while it does not change."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[SSAValue, Range] = {}

    def of(self, value: SSAValue, depth: int = DEPTH) -> Range:
        """A range that holds the value wherever it is defined."""
        found = self._known.get(value)
        if found is None:
            found = self._find(value, depth)
            if depth == DEPTH:
                self._known[value] = found
        return found

    def _find(self, value: SSAValue, depth: int) -> Range:
        whole = type_range(value.type)
        if not isinstance(value, OpResult):
            found = self._argument(value, depth)
        elif (known := constant_value(value)) is not None:
            found = (known & 1, known & 1) if whole == _BIT else (known, known)
        elif isinstance(value.op, ApplyIndexingOp):
            found = value.op.map.range_of(value.op.map.results[value.index])
        elif depth and whole != _BIT and (rule := _RULES.get(type(value.op))) is not None:
            found = rule(value.op, [self.of(v, depth - 1) for v in value.op.operands])
        else:
            found = None
        return found if found is not None and whole[0] <= found[0] and found[1] <= whole[1] else whole

    def _argument(self, value: SSAValue, depth: int) -> Range | None:
        loop = value.owner.parent_op()  # pyright: ignore[reportAttributeAccessIssue]
        index = value.index  # pyright: ignore[reportAttributeAccessIssue]
        if isinstance(loop, LoopOp):
            m = loop.map
            if index < len(m.syms):
                return m.syms[index][:2]
            index -= len(m.syms)
            return m.range_of(m.results[index]) if index < len(m.results) else None
        if isinstance(loop, scf.ForOp) and index == 0 and depth:
            (low, _), (_, high) = (self.of(v, depth - 1) for v in loop.operands[:2])
            return (low, max(low, high - 1))
        return None


def _corners(f: Callable[[int, int], int]) -> Callable[[Operation, list[Range]], Range]:
    """The rule of an op that is monotonic in each operand."""

    def rule(_: Operation, operands: list[Range]) -> Range:
        (a, b), (c, d) = operands
        values = (f(a, c), f(a, d), f(b, c), f(b, d))
        return min(values), max(values)

    return rule


def _and(_: Operation, operands: list[Range]) -> Range | None:
    tops = [high for low, high in operands if low >= 0]  # x & y <= y where y >= 0
    return (0, min(tops)) if tops else None


def _divide(_: Operation, operands: list[Range]) -> Range | None:
    (a, b), (c, d) = operands
    return (a // d, b // c) if a >= 0 and c > 0 else None


def _remainder(_: Operation, operands: list[Range]) -> Range | None:
    (a, b), (c, d) = operands
    return (0, min(b, d - 1)) if a >= 0 and c > 0 else None


def _shift_right(_: Operation, operands: list[Range]) -> Range | None:
    (a, b), (c, d) = operands
    return (a >> d, b >> c) if a >= 0 and 0 <= c and d < 64 else None


def _select(_: Operation, operands: list[Range]) -> Range:
    (a, b), (c, d) = operands[1:]
    return min(a, c), max(b, d)


def _narrow(_: Operation, operands: list[Range]) -> Range:
    return operands[0]  # where that does not fit, what the type holds


def _signed(op: Operation, operands: list[Range]) -> Range:
    return (-1, 0) if op.operands[0].type == i1 else operands[0]


def _unsigned(op: Operation, operands: list[Range]) -> Range:
    """A zero extension: negative values become large."""
    low, high = operands[0]
    return (low, high) if low >= 0 else (0, 2 * type_range(op.operands[0].type)[1] + 1)


def _index_cast(op: Operation, operands: list[Range]) -> Range:
    return (_unsigned if "heron.unsigned" in op.attributes else _signed)(op, operands)


def _ids(_: Operation, __: list[Range]) -> Range:
    return IDS


_RULES: dict[type[Operation], Callable[[Operation, list[Range]], Range | None]] = {
    arith.AddiOp: lambda _, r: (r[0][0] + r[1][0], r[0][1] + r[1][1]),
    arith.SubiOp: lambda _, r: (r[0][0] - r[1][1], r[0][1] - r[1][0]),
    arith.MuliOp: _corners(lambda a, b: a * b),
    arith.MinSIOp: _corners(min),
    arith.MaxSIOp: _corners(max),
    arith.AndIOp: _and,
    arith.DivUIOp: _divide,
    arith.DivSIOp: _divide,
    arith.FloorDivSIOp: _divide,
    arith.RemUIOp: _remainder,
    arith.RemSIOp: _remainder,
    arith.ShRUIOp: _shift_right,
    arith.ShRSIOp: _shift_right,
    arith.SelectOp: _select,
    arith.ExtSIOp: _signed,
    arith.ExtUIOp: _unsigned,
    arith.TruncIOp: _narrow,
    arith.IndexCastOp: _index_cast,
    gpu.ThreadIdOp: _ids,
    gpu.BlockIdOp: _ids,
}
