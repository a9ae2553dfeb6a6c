"""Integers that a kernel computes from an element's position alone, as one expression of its index.

A counter of random bits, say, is the element's place in row-major order: iotas of the dimensions, each times the number
of elements from one to the next, added up. As one expression it is a single loop variable where the loops are joined.
"""

from __future__ import annotations

from heron.analysis.indexing.expr import Const, Expr, add, mul
from heron.analysis.indexing.hlo_maps import Index
from heron.hlo.facts import accumulates
from heron.hlo.ir.instruction import Instruction

#: ops between a sum and its iotas
_DEEPEST = 8
#: the number of each dimension's index, and a constant
_Terms = tuple[tuple[int, ...], int]


def position_sum(i: Instruction, index: Index) -> Expr | None:
    """The value of a sum of iotas, times constants, as an expression of its index; None for what is no such sum, or
    does not fit its type."""
    if i.opcode != "add" or not i.shape.element_type.is_integer or i.shape.element_type.bits < 32:
        return None
    terms = _terms(i, _DEEPEST)
    if terms is None or not any(terms[0]):
        return None
    factors, constant = terms
    most = constant + sum(f * (n - 1) for f, n in zip(factors, i.shape.dims, strict=True))
    if most >= 1 << 31:
        return None
    found: Expr = Const(constant)
    for factor, e in zip(factors, index, strict=True):
        if factor:
            found = add(found, mul(e, Const(factor)))
    return found


def _terms(i: Instruction, depth: int) -> _Terms | None:
    """`i` as a sum of its dimensions' indices; no factor is negative."""
    rank = i.shape.rank
    if i.opcode == "iota":
        return tuple(int(d == i.attrs["iota_dimension"]) for d in range(rank)), 0
    constant = _constant(i)
    if constant is not None:
        return ((0,) * rank, constant) if constant >= 0 else None
    if not depth or not accumulates(i.op):
        return None
    if i.opcode == "multiply":
        factor = next((c for o in i.operands if (c := _constant(o)) is not None), None)
        x = next((o for o in i.operands if _constant(o) is None), None)
        terms = _terms(x, depth - 1) if x is not None and factor is not None and factor >= 0 else None
        return None if terms is None or factor is None else (tuple(f * factor for f in terms[0]), terms[1] * factor)
    one = _terms(i.operands[0], depth - 1)
    other = _terms(i.operands[1], depth - 1) if one is not None else None
    if one is None or other is None:
        return None
    return tuple(a + b for a, b in zip(one[0], other[0], strict=True)), one[1] + other[1]


def _constant(i: Instruction) -> int | None:
    while i.opcode == "broadcast" and i.operands[0].shape.is_scalar:
        i = i.operands[0]
    return int(i.literal.array[()]) if i.opcode == "constant" and i.shape.is_scalar else None
