"""Rows of few elements that concatenations put together, each element from another operand: matrices of rotations,
coordinates of points, features of a number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from heron.analysis.fusion.cuts import keeps_places
from heron.analysis.fusion.fusion import Fusion, is_pointwise
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.records import dataclass

#: elements of a row that a CPU's loop stores one by one
MOST_ELEMENTS = 64


@dataclass(frozen=True, slots=True)
class JoinedRow:
    """The innermost dimensions of outputs from ``first`` on: all concatenations join along these.

        a = f32[9,3] concatenate(x, y, z), dimensions={1}
        b = f32[9,1,3] reshape(a)
        ROOT r = f32[9,2,3] concatenate(b, c), dimensions={1}           first 1, 6 elements

    ``elements`` of a row; ``times`` that the code of each joined instruction is written out: concatenations, whose
    operands are known for each element, not at all.
    """

    first: int
    elements: int
    times: dict[Instruction, int]


def joined_row(fusion: Fusion) -> JoinedRow | None:
    """The shortest row that holds all joints of a fusion's outputs, of equal dimensions and in row-major order.

    None where it is long, or where neighbours in a row mostly come from one operand: these are copied in pieces.
    """
    shape = fusion.outputs[0].shape
    if not all(o.shape.dims == shape.dims and _is_row_major(o.shape) for o in fusion.outputs):
        return None
    for first in reversed(range(shape.rank)):
        elements = prod(shape.dims[first:])
        if elements > MOST_ELEMENTS:
            return None
        if elements < 2 or not (rows := prod(shape.dims[:first])):
            continue
        parts = _parts(fusion.roots, rows)
        if parts is not None:
            is_mixed = max(parts[r] for r in fusion.roots) * 2 > elements
            times = {i: 0 if i.opcode == "concatenate" else i.shape.num_elements // rows for i in parts}
            return JoinedRow(first, elements, times) if is_mixed else None
    return None


def is_within_row(i: Instruction, shape: Shape) -> bool:
    """Whether a concatenation joins elements of one such row of `shape`."""
    (d,), dims = i.dimensions, i.shape.dims
    rows = {prod(dims[:k]) for k in range(d + 1)}
    sizes = [(prod(shape.dims[:first]), prod(shape.dims[first:])) for first in range(shape.rank)]
    return any(1 < elements <= MOST_ELEMENTS and outer in rows for outer, elements in sizes)


def _is_row_major(shape: Shape) -> bool:
    return shape.layout is None or shape.layout.is_default


def _parts(roots: Iterable[Instruction], rows: int) -> dict[Instruction, int] | None:
    """The number of parts that each row of what is joined consists of; None where rows themselves are joined.

    A part is neighbouring elements of one operand.
    """
    found: dict[Instruction, int] = {}
    for i in _operands_first(roots):
        if i.opcode != "concatenate":
            found[i] = max((found[o] for o in _joined(i)), default=1)
            continue
        (d,), dims = i.dimensions, i.shape.dims
        first = next((k for k in range(d + 1) if prod(dims[:k]) == rows), None)
        if first is None:
            return None
        times = prod(dims[first:d])
        found[i] = sum(max(times, found[o]) for o in i.operands if o.shape.num_elements)
    return found


def _operands_first(roots: Iterable[Instruction]) -> Iterator[Instruction]:
    """All that the roots are joined from, each after its operands."""
    seen: set[Instruction] = set()
    stack = [(r, False) for r in roots]
    while stack:
        i, is_done = stack.pop()
        if is_done:
            yield i
        elif i not in seen:
            seen.add(i)
            stack.append((i, True))
            stack.extend((o, False) for o in _joined(i))


def _joined(i: Instruction) -> list[Instruction]:
    """The operands whose elements `i` shows, or computes its own from, in their order."""
    if i.opcode == "concatenate":
        return [o for o in i.operands if o.shape.num_elements]
    if is_pointwise(i):
        return [o for o in i.operands if o.shape.dims == i.shape.dims]
    return [i.operands[0]] if keeps_places(i) else []
