"""An approximate top-k, on machines without one: the exact top-k, or a sort of which the first are taken.

Its comparator orders numbers and gives NaN no place. The op topk has one for it, so the rows need not be sorted.
"""

from __future__ import annotations

from heron.frontends.stablehlo.block import Block
from heron.frontends.stablehlo.syntax import Operation
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import S32


def approximate_top_k(b: Block, op: Operation, operands: list[Instruction], dim: int) -> list[Instruction]:
    """The first elements along `dim` of the operands, which the values to begin with follow."""
    operands = operands[: len(operands) // 2]
    (name,) = op.find("called_computations")
    comparator = b.importer.called(name, op)
    largest = _largest_first(comparator)
    if largest is not None and len(operands) == 2 and _are_positions(operands[1], dim):
        return _searched(b, operands[0], op.types[0].dims[dim], dim, largest)
    attrs = {"dimensions": (dim,), "is_stable": True, "to_apply": comparator}
    found = []
    for i, to in zip(b.unpacked(b.add("sort", operands, **attrs), len(operands)), op.types, strict=True):
        ranges = tuple((0, to.dims[d] if d == dim else n, 1) for d, n in enumerate(i.shape.dims))
        found.append(b.add("slice", (i,), slice=ranges))
    return found


def _searched(b: Block, x: Instruction, k: int, dim: int, largest: bool) -> list[Instruction]:
    """The `k` first elements of `x` and where they are; topk takes rows."""
    last = x.shape.rank - 1
    if dim == last:
        return b.parts(b.add("topk", (x,), k=k, largest=largest))
    swapped = [last if d == dim else dim if d == last else d for d in range(last + 1)]
    found = b.parts(b.add("topk", (b.add("transpose", (x,), dimensions=tuple(swapped)),), k=k, largest=largest))
    return [b.add("transpose", (i,), dimensions=tuple(swapped)) for i in found]


def _largest_first(comparator: Computation) -> bool | None:
    """Whether the largest of the first operand come first; None where it asks for something else."""
    root = comparator.root
    if root.opcode != "compare" or root.direction not in ("GT", "LT"):
        return None
    if root.operands == comparator.parameters[:2]:
        return root.direction == "GT"
    return root.direction == "LT" if root.operands == comparator.parameters[1::-1] else None


def _are_positions(i: Instruction, dim: int) -> bool:
    return i.opcode == "iota" and i.shape.element_type is S32 and i.attrs["iota_dimension"] == dim
