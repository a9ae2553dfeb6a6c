"""Products that a CPU kernel computes itself, with what is around them, instead of a call for each matrix.

A call costs as much as some hundred multiplications. A kernel adds up the few products of an element where it needs it:
in vectors where the columns lie side by side, else one by one, which pays for the smallest matrices alone.
"""

from __future__ import annotations

from math import prod

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape

#: most products of an element
MOST_SUMMED = 16
#: multiplications of a matrix that are quicker one by one than in a call; of a product with a vector, for which BLAS is
#: called
_TINY, _TINY_VECTOR = 125, 256
#: rows or columns of what is computed in vectors: the fewest columns, and the most of either
_LEAST_COLUMNS, _MOST_LINES = 4, 16
#: elements of a matrix's row up to which vectors of its products with a vector are shuffled out of as many rows
_MOST_OF_ROW = 8


def is_small_product(i: Instruction) -> bool:
    """Whether `i` is a product of small or thin matrices, row-major and of one type."""
    if not _is_plain(i):
        return False
    lhs, rhs = (o.shape for o in i.operands)
    k = prod(lhs.dims[d] for d in i.lhs_contracting_dims or ())
    batch = prod(lhs.dims[d] for d in i.lhs_batch_dims or ())
    if not 1 < k <= MOST_SUMMED:
        return False
    m, n = (x.num_elements // (k * batch) for x in (lhs, rhs))
    if m * n * k <= (_TINY_VECTOR if min(m, n) == 1 else _TINY):
        return True
    if min(m, n) == 1 and k <= _MOST_OF_ROW:
        return True
    return _in_vectors(i, n) and min(m, n) <= _MOST_LINES and (batch == 1 or max(m, n) <= _MOST_LINES)


def _is_plain(i: Instruction) -> bool:
    """Whether `i` is a product of row-major matrices of one type, for which no algorithm is asked."""
    if i.opcode != "dot" or len(i.operands) != 2 or i.attrs.get("algorithm"):
        return False
    t = i.shape.element_type
    if not (t.is_complex or t.bits in (32, 64)) or not i.shape.num_elements:
        return False
    shapes = [i.shape, *(o.shape for o in i.operands)]
    return all(s.element_type is t and not any(s.dynamic) and _row_major(s) for s in shapes)


def _in_vectors(i: Instruction, columns: int) -> bool:
    """Whether the numbers that neighbouring elements of a product are made of lie side by side."""
    lhs, rhs = (o.shape for o in i.operands)
    if columns >= _LEAST_COLUMNS:
        return rhs.rank - 1 not in i.rhs_contracting_dims
    return columns == 1 and lhs.rank - 1 not in i.lhs_contracting_dims


def _row_major(shape: Shape) -> bool:
    return shape.layout is None or shape.layout.is_default
