"""Scratch memory that the caller of a sort gives its kernel."""

from __future__ import annotations

from math import prod

from heron.codegen.kernel import STACK_BYTES
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape


def room_of(sort: Instruction) -> tuple[Shape, ...]:
    """The scratch arrays that the kernel of a sort on the CPU is given behind its outputs, one an operand.

    A single long row has them among the buffers, where other values lie at other times. Several rows that threads sort
    at once take theirs from the heap, short rows from the stack.
    """
    shapes = tuple(o.shape for o in sort.operands)
    (d,) = sort.dimensions
    if prod(shapes[0].dims) > shapes[0].dims[d] or all(s.byte_size <= STACK_BYTES for s in shapes):
        return ()
    return shapes
