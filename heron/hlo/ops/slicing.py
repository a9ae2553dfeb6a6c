"""Static and dynamic slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape
from heron.hlo.ops.rules import array, attr, default, need_arrays, need_same_type

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction


@op("slice")
class Slice(Op):
    """The elements from `start` to `limit` by `stride`: ``slice`` has the three for each dimension.

    Shape: ``ceil((limit - start) / stride)`` in each dimension.
    """

    operands = ("operand",)
    attributes = {"slice": Attr(AttrKind.SLICES, required=True)}
    traits = {Trait.MOVES_ELEMENTS, Trait.REINDEXES, Trait.READS_PART, Trait.ANY_ORDER}
    linear = ("operand",)
    flops = 0
    code = 2

    def shape(self, i: Instruction, x: Shape) -> Shape:
        need_arrays(i, x)
        bounds = attr(i, "slice")
        if len(bounds) != x.rank:
            reject(i, "slice needs one entry a dimension", f"{len(bounds)} given for {x}")
        dims: list[int] = []
        for d, (start, limit, stride) in enumerate(bounds):
            if not 0 <= start <= limit <= x.dims[d] or stride < 1:
                reject(
                    i,
                    f"[{start}:{limit}:{stride}] does not fit dimension {d}",
                    f"needs 0 <= start <= limit <= {x.dims[d]} and stride >= 1",
                )
            dims.append((limit - start + stride - 1) // stride)
        return array(x.element_type, dims)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray) -> np.ndarray:
        return x[tuple(slice(*bounds) for bounds in i.slice)]


@op("dynamic-slice")
class DynamicSlice(Op):
    """A part of the operand that begins at the start indices, which are moved until it lies inside.

    Shape: `dynamic_slice_sizes`.
    """

    operands = ("operand", "start_indices*")
    attributes = {"dynamic_slice_sizes": Attr(AttrKind.INTS, required=True)}
    traits = {Trait.MOVES_ELEMENTS, Trait.READS_PART, Trait.ANY_ORDER}
    linear = ("operand",)
    code = 8

    def shape(self, i: Instruction, x: Shape, *starts: Shape) -> Shape:
        need_arrays(i, x, *starts)
        sizes = attr(i, "dynamic_slice_sizes")
        _need_starts(i, x, starts, 1)
        if len(sizes) != x.rank:
            reject(i, "dynamic_slice_sizes needs one size a dimension", f"{len(sizes)} given for {x}")
        for d, size in enumerate(sizes):
            if not 0 <= size <= x.dims[d]:
                reject(i, f"slice size {size} does not fit dimension {d}", f"of size {x.dims[d]}")
        return array(x.element_type, sizes)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, *starts: np.ndarray) -> np.ndarray:
        return x[_region(x, i.dynamic_slice_sizes, starts)]


@op("dynamic-update-slice")
class DynamicUpdateSlice(Op):
    """The operand with a part replaced by the update; starts are moved until it lies inside.

    Shape: the operand's.
    """

    operands = ("operand", "update", "start_indices*")
    traits = {Trait.UPDATES_OPERAND, Trait.SHAPES_KERNEL, Trait.ANY_ORDER}
    linear = ("operand update",)
    code = 0
    code_per_operand = 12

    def shape(self, i: Instruction, x: Shape, update: Shape, *starts: Shape) -> Shape:
        need_arrays(i, x, update, *starts)
        need_same_type(i, x, update)
        _need_starts(i, x, starts, 2)
        if update.rank != x.rank or any(u > n for u, n in zip(update.dims, x.dims, strict=True)):
            reject(i, "the update does not fit into the operand", f"{update} into {x}")
        return default(x)

    def evaluate(
        self, ev: Evaluation, i: Instruction, x: np.ndarray, update: np.ndarray, *starts: np.ndarray
    ) -> np.ndarray:
        result = x.copy()
        result[_region(x, update.shape, starts)] = update
        return result


def _need_starts(i: Instruction, x: Shape, starts: tuple[Shape, ...], first: int) -> None:
    """One integer scalar a dimension, or (older programs) one vector with all of them."""
    for n, s in enumerate(starts, first):
        if not s.element_type.is_integer or s.rank > 1 or (s.rank == 1 and len(starts) != 1):
            reject(i, f"operand {n} must be an integer scalar", f"it is {s}")
        if s.element_type is not starts[0].element_type:
            reject(i, "start indices must be of one type", f"{starts[0].element_type} and {s.element_type}")
    count = starts[0].dims[0] if len(starts) == 1 and starts[0].rank else len(starts)
    if count != x.rank:
        reject(i, "needs one start index a dimension", f"{count} given for {x}")


def _region(x: np.ndarray, sizes: tuple[int, ...], starts: tuple[np.ndarray, ...]) -> tuple[slice, ...]:
    if len(starts) == 1 and starts[0].ndim:
        starts = tuple(starts[0])
    clamped = [max(0, min(int(s), n - k)) for s, n, k in zip(starts, x.shape, sizes, strict=True)]
    return tuple(slice(s, s + k) for s, k in zip(clamped, sizes, strict=True))
