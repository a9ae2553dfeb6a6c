"""Products that a CPU kernel computes itself, with what is around them, instead of a call for each matrix.

A call costs as much as some hundred multiplications. A kernel adds up the few products of an element where it needs it:
in vectors where the columns lie side by side, else one by one, which pays for the smallest matrices alone.
"""

from __future__ import annotations

from math import prod

from heron.hlo.facts import is_expensive, reindexes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import BF16, F32, ElementType

#: most products of an element
MOST_SUMMED = 16
#: multiplications of a matrix that are quicker one by one than in a call; of a product with a vector, for which BLAS is
#: called
_TINY, TINY_VECTOR = 125, 256
#: rows or columns of what is computed in vectors: the fewest columns, and the most of either
_LEAST_COLUMNS, _MOST_LINES = 4, 16
#: the most of either where calls do better otherwise: large matrices in batches, and of types narrower than the result;
#: twice as many of integers, whose code for calls has no instruction for short sums
_FEW_LINES = 4
#: ops that an operand may be made by where it is shuffled
_MOST_OPS = 8
#: elements of a matrix's row up to which vectors of its products with a vector are shuffled out of as many rows
MOST_OF_ROW = 8
#: bytes of a row up to which vectors of neighbouring rows are shuffled out of it, and of as many numbers as there are
#: columns up to which registers keep the right matrix
_ROW_BYTES, _COLUMNS_BYTES = 32, 64


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
    if m * n * k <= (TINY_VECTOR if min(m, n) == 1 else _TINY):
        return True
    if min(m, n) == 1 and k <= MOST_OF_ROW:
        return True
    t, is_widened = i.shape.element_type, lhs.element_type is not i.shape.element_type
    is_long = batch > 1 and max(m, n) > _MOST_LINES
    lie_apart = rhs.rank - 1 in i.rhs_contracting_dims
    if (is_widened or is_long or lie_apart or n < _LEAST_COLUMNS) and not all(map(_is_loaded, i.operands)):
        return False
    if is_widened or is_long:
        lines = 2 * _FEW_LINES if is_widened and t.is_integer else _FEW_LINES
        if min(m, n) > lines or k * t.byte_size > _ROW_BYTES:
            return False
    return min(m, n) <= _MOST_LINES and _in_vectors(i, n, k)


def _is_loaded(operand: Instruction) -> bool:
    """Whether an operand takes next to nothing to compute from what is in memory.

    A kernel that shuffles loads has no vectors of anything else.
    """
    stack, seen = [operand], set[Instruction]()
    while stack:
        i = stack.pop()
        if i in seen or not (i.op.is_elementwise or reindexes(i) or i.opcode == "dot"):
            continue
        if i.opcode == "dot" or is_expensive(i) or len(seen) == _MOST_OPS:
            return False
        seen.add(i)
        stack += i.operands
    return True


def _is_plain(i: Instruction) -> bool:
    """Whether `i` is a product of row-major matrices of one type, for which no algorithm is asked.

    The result may have a wider type that a load of theirs gives at once.
    """
    if i.opcode != "dot" or len(i.operands) != 2 or i.attrs.get("algorithm"):
        return False
    t = i.shape.element_type
    if not (t.is_complex or t.bits in (32, 64)) or not i.shape.num_elements:
        return False
    lhs, rhs = (o.shape for o in i.operands)
    if lhs.element_type is not rhs.element_type or not _goes_into(lhs.element_type, t):
        return False
    return not any(any(s.dynamic) or not _row_major(s) for s in (i.shape, lhs, rhs))


def _goes_into(narrow: ElementType, wide: ElementType) -> bool:
    """Whether a load of `narrow` gives a number of `wide` with next to no work."""
    if narrow is wide:
        return True
    if narrow.is_float:
        return narrow is BF16 and wide is F32
    return narrow.is_integer and wide.is_integer and 8 <= narrow.bits < wide.bits


def _in_vectors(i: Instruction, columns: int, summed: int) -> bool:
    """Whether vectors of neighbouring elements are made of few loads.

    Their numbers lie side by side, or in rows so short that vectors are shuffled out of them, or a loop along the rows
    keeps the whole right matrix in registers. Of four columns or fewer a vector goes along several rows.
    """
    (lhs, rhs), t = (o.shape for o in i.operands), i.shape.element_type
    if columns == 1:
        return lhs.rank - 1 not in i.lhs_contracting_dims
    row = summed * t.byte_size
    if columns >= _LEAST_COLUMNS and rhs.rank - 1 not in i.rhs_contracting_dims:
        return row <= _ROW_BYTES or columns > _LEAST_COLUMNS or bool(i.lhs_batch_dims)
    if t.is_complex:
        return False
    is_kept = _LEAST_COLUMNS < columns and columns * t.byte_size <= _COLUMNS_BYTES and not i.lhs_batch_dims
    return row <= _ROW_BYTES or is_kept


def _row_major(shape: Shape) -> bool:
    return shape.layout is None or shape.layout.is_default
