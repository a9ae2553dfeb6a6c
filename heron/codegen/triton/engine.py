"""Tiles by the copy engine: a descriptor made once, ahead of the loop, and in the loop an op that says which tile."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Attribute, SSAValue

from heron.codegen.ir.dialects.triton_memory import DescriptorLoadOp, MakeTensorDescriptorOp
from heron.codegen.triton.tiles import Tile, TileBuilder


def fetch(
    b: TileBuilder,
    pointer: SSAValue,
    element: Attribute,
    stride: int,
    sides: Sequence[tuple[int, int, SSAValue | None]],
) -> Tile:
    """The tile of the matrix at `pointer`, zeros outside of it.

    Args:
        stride: elements from row to row.
        sides: of rows and columns the axis, how many the matrix has, and the first one of the tile; None: 0.
    """
    axes = tuple([axis for axis, _, _ in sides])
    type_ = b.type_of(axes, element)
    assert isinstance(type_, TensorType)
    key = (MakeTensorDescriptorOp, pointer, stride, axes)
    descriptor = b.known[0].get(key)
    if descriptor is None:
        counts = [b.integer(count) for _, count, _ in sides]
        made = MakeTensorDescriptorOp(pointer, counts, [b.integer(n, i64) for n in (stride, 1)], type_)
        b.put(0, made)
        descriptor = b.known[0][key] = made.result
    places = [b.integer(0) if start is None else start for _, _, start in sides]
    level = max(map(b.level, (descriptor, *places)))
    key = (DescriptorLoadOp, descriptor, *places)
    value = b.known[level].get(key)
    if value is None:
        load = DescriptorLoadOp(descriptor, places)
        b.put(level, load)
        value = b.known[level][key] = load.result
    return Tile(value, axes)
