"""Arrays made of another's slices picked by indices: simple gathers, and what keeps their form.

``result[.., i, ..] = source[.., indices[i], ..]``: knowing this, work on the result can be done on the (often smaller)
source once, and a gather of a gather is one gather with gathered indices.
"""

from __future__ import annotations

from typing import TypeAlias

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Indexed:
    """`source`, its dimension `dim` indexed by `indices`, whose dimensions are `output_dims` of the result."""

    source: Array
    indices: Array
    dim: int
    output_dims: tuple[int, ...]

    def __str__(self) -> str:
        to = ",".join(map(str, self.output_dims))
        return f"(scalar-indexed {name(self.source)} {name(self.indices)} {self.dim}->[{to}])"


@dataclass(frozen=True, slots=True)
class Applied:
    """An elementwise op on one array; its other operands are the same for every element."""

    op: Instruction
    array: Array

    def __str__(self) -> str:
        return f"({self.op.opcode} {name(self.array)})"


Array: TypeAlias = "Instruction | Indexed | Applied"


def name(array: Array) -> str:
    """`%x`, or the form in parentheses; constants by their shape."""
    if not isinstance(array, Instruction):
        return str(array)
    return f"(constant {array.shape.bare})" if array.opcode == "constant" else f"%{array.name}"


def indexed_arrays(module: Module) -> dict[Instruction, Indexed]:
    """Every instruction of the module that is an indexed array, computations callees first."""
    found: dict[Instruction, Indexed] = {}
    for c in module.post_order():
        for i in c.post_order():
            form = (
                _gather(i, found) if i.opcode == "gather" else _elementwise(i, found) if i.op.is_elementwise else None
            )
            if form is not None:
                found[i] = form
    return found


def _gather(i: Instruction, known: dict[Instruction, Indexed]) -> Indexed | None:
    """gather(x, k) that takes whole slices along one dimension == x indexed by k"""
    operand, indices = i.operands
    if len(i.start_index_map) != 1 or i.index_vector_dim != indices.shape.rank or i.operand_batching_dims:
        return None
    dim = i.start_index_map[0]
    if tuple(i.collapsed_slice_dims) != (dim,):
        return None
    if any(n != size for d, (n, size) in enumerate(zip(i.slice_sizes, operand.shape.dims, strict=True)) if d != dim):
        return None
    output_dims = tuple(d for d in range(i.shape.rank) if d not in i.offset_dims)
    inner = known.get(operand)
    if inner is not None and inner.output_dims == (dim,):
        # x indexed by j, indexed by k along the same dimension == x indexed by (j indexed by k)
        picked = Indexed(inner.indices, known.get(indices, indices), 0, tuple(range(indices.shape.rank)))
        return Indexed(inner.source, picked, inner.dim, output_dims)
    return Indexed(inner or operand, known.get(indices, indices), dim, output_dims)


def _elementwise(i: Instruction, known: dict[Instruction, Indexed]) -> Indexed | None:
    """f(x indexed by k) == f(x) indexed by k, where all other operands are the same for every element"""
    arrays = [o for o in i.operands if not _is_splat(o)]
    form = known.get(arrays[0]) if len(arrays) == 1 else None
    return form and Indexed(Applied(i, form.source), form.indices, form.dim, form.output_dims)


def _is_splat(i: Instruction) -> bool:
    return i.opcode == "broadcast" and not i.operands[0].shape.rank or i.opcode == "constant" and not i.shape.rank
