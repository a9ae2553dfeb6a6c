"""Arrays whose elements count along a dimension: iotas, and what programs make of them on the way to an index."""

from __future__ import annotations

from heron.analysis.values.non_negative import never_negative
from heron.analysis.values.splat import is_splat
from heron.hlo.ir.instruction import Instruction

_DEPTH = 12


def counted_dim(i: Instruction, depth: int = _DEPTH) -> int | None:
    """The dimension in which every element's place is its value, None when not known. Looks `depth` instructions up.

    An iota whose negative elements are replaced, as programs do with indices, still counts: it has none.
    """
    t = i.shape
    if not t.is_array or not t.element_type.is_integer or depth < 0:
        return None
    if i.opcode == "iota":
        fits = t.dims[i.iota_dimension] <= 1 << t.element_type.bits - t.element_type.is_signed
        return i.iota_dimension if fits else None
    if i.opcode == "select":
        choice, _, kept = i.operands
        return counted_dim(kept, depth - 1) if _is_never(choice) else None
    if not i.operands:
        return None
    below = i.operands[0]
    if i.opcode == "convert":
        d = counted_dim(below, depth - 1)
        return d if d is not None and t.dims[d] <= 1 << t.element_type.bits - t.element_type.is_signed else None
    if i.opcode == "copy":
        return counted_dim(below, depth - 1)
    if i.opcode == "broadcast":
        d = counted_dim(below, depth - 1)
        return None if d is None else i.dimensions[d]
    return _reshaped(i, depth) if i.opcode == "reshape" else None


def _is_never(choice: Instruction) -> bool:
    """Whether no element is true: of numbers without a sign none is below zero."""
    if choice.opcode != "compare" or choice.direction != "LT":
        return False
    left, right = choice.operands
    return is_splat(right, 0) and never_negative(left)


def _reshaped(i: Instruction, depth: int) -> int | None:
    """The dimension of a reshape that adds or removes dimensions of one element."""
    below = i.operands[0]
    old, new = ([d for d, n in enumerate(s.dims) if n != 1] for s in (below.shape, i.shape))
    if [below.shape.dims[d] for d in old] != [i.shape.dims[d] for d in new]:
        return None
    d = counted_dim(below, depth - 1)
    return new[old.index(d)] if d in old else None
