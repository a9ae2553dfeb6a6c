"""Windows along split dimensions: the elements that a share of the result needs, and the window left to do locally."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ElementType
from heron.hlo.ir.window import WindowDim
from heron.hlo.sharding.atoms import Axes, TensorSharding
from heron.passes.sharding.partition.halo import Fill, number, spans
from heron.passes.sharding.partition.moves import Span
from heron.passes.sharding.partition.part import Part
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


@dataclass(frozen=True)
class Reach:
    """The input elements that the shares of a windowed dimension need.

    Attributes:
        want: the input elements that each share's windows see, those beyond the ends included.
        size: the elements that each share's input has: enough for the largest.
        shifts: holes of the dilated input between the first window's start and the first element, for each share;
            None for one without windows.
        length: the places of the dilated input that one share's windows cover.
    """

    want: tuple[Span, ...]
    size: int
    shifts: tuple[int | None, ...]
    length: int

    @staticmethod
    @lru_cache(maxsize=256)
    def of(w: WindowDim, outputs: int, count: int) -> Reach:
        """The reach of `count` shares of `outputs` windows, of which there is at least one."""
        tile = -(-outputs // count)
        wide = (w.size - 1) * w.window_dilation + 1
        lows = [n * tile * w.stride - w.pad_low for n in range(count)]
        windows = [min(tile, max(0, outputs - n * tile)) for n in range(count)]
        lengths = [(m - 1) * w.stride + wide if m else 0 for m in windows]
        return Reach.between(lows, lengths, w.base_dilation)

    @staticmethod
    def between(lows: Sequence[int], lengths: Sequence[int], dilation: int) -> Reach:
        """The reach of shares that see so many places of the dilated input from `lows` on."""
        length = max(lengths)
        want: list[Span] = []
        shifts: list[int | None] = []
        size = 1
        for n, (low, seen) in enumerate(zip(lows, lengths, strict=True)):
            first = -(-low // dilation)
            size = max(size, (low + length - 1) // dilation - first + 1)
            want.append(Span(n, first, max(first, (low + seen - 1) // dilation + 1 if seen else first)))
            shifts.append(first * dilation - low if seen else None)
        return Reach(tuple(want), size, tuple(shifts), length)


def extended(
    p: Partitioner, part: Part, dim: int, w: WindowDim, outputs: int, fill: Fill, axes: Axes
) -> tuple[Instruction, WindowDim]:
    """The elements that the share of `outputs` windows along a dimension needs, and the window over them.

    The windows' results are split by `axes`; the part is so too, or whole. `fill` stands beyond the array's ends.
    """
    if not axes:
        return part.value, w
    reach = Reach.of(w, outputs, p.mesh.size(axes))
    return reached(p, part, dim, w, reach, fill, axes)


def reached(
    p: Partitioner, part: Part, dim: int, w: WindowDim, reach: Reach, fill: Fill, axes: Axes
) -> tuple[Instruction, WindowDim]:
    """The elements of a reach, and the window over them."""
    value = spans(p, part, dim, reach.want, reach.size, fill, axes)
    spread = (reach.size - 1) * w.base_dilation + 1
    first = {s for s in reach.shifts if s is not None}
    if len(first) == 1:
        (low,) = first
        return value, replace(w, pad_low=low, pad_high=reach.length - low - spread)
    # the holes before the first element depend on the share: make them, and cut where the share's windows begin
    before = w.base_dilation - 1
    behind = max(0, reach.length - min(first, default=0) - spread)
    padding = tuple((before, behind, before) if d == dim else (0, 0, 0) for d in range(value.shape.rank))
    filling = fill if isinstance(fill, Instruction) else p.constant(fill or 0, value.shape.element_type)
    dilated = p.add("pad", [value, filling], padding=padding)
    start = number(p, axes, [None if s is None else before - s for s in reach.shifts])
    sizes = [reach.length if d == dim else n for d, n in enumerate(dilated.shape.dims)]
    cut = p.dynamic_slice(dilated, {dim: start}, sizes)
    return cut, replace(w, pad_low=0, pad_high=0, base_dilation=1)


def is_still(w: WindowDim) -> bool:
    """Whether each window sees the element at its own place alone, so that the dimension passes through."""
    return w.size == w.stride == w.base_dilation == 1 and w.pad_low == w.pad_high == 0


def toward(sharding: TensorSharding, wanted: TensorSharding) -> TensorSharding:
    """`sharding`, split further as `wanted` is where that takes no transfer; partial sums stay so."""
    used = set(sharding.used)
    dims = list(sharding.dims)
    for d, (old, new) in enumerate(zip(sharding.dims, wanted.dims, strict=True)):
        more = new[len(old) :]
        if new[: len(old)] == old and used.isdisjoint(more):
            dims[d] = new
            used.update(more)
    return TensorSharding.closed(dims, sharding.unreduced, sharding.manual)


def meeting(
    part: Part, dims: Sequence[int], wanted: TensorSharding, moving: Callable[[int], bool]
) -> tuple[TensorSharding, TensorSharding]:
    """The shardings in which an op takes a part and makes an array of `dims`: what is smaller is moved.

    Along moving dimensions, elements come to other places. Where the part is whole along one of them, it stays so, and
    each device takes from it what it needs. Partial sums stay so, but along atoms that split the array afterwards.
    """
    s = part.sharding
    goal = wanted if prod(dims) > prod(part.dims) else toward(s, wanted)
    taken = [
        () if moving(d) and not s.dims[d] and s.used.isdisjoint(axes) else axes for d, axes in enumerate(goal.dims)
    ]
    sums = s.unreduced.difference(*goal.dims)
    return TensorSharding.closed(taken, sums, s.manual), TensorSharding.closed(goal.dims, sums, s.manual)


def nothing(p: Partitioner, shape: Shape, manual: frozenset[int]) -> Part:
    """An array without elements."""
    return Part(p.full(0, shape.element_type, shape.dims), shape, TensorSharding.whole(shape.rank, manual))


def nothing_added(t: ElementType) -> Any:
    """The number that changes no sum, -0.0 for floats; None for a type that has none."""
    zero = -0.0 - 0.0j if t.is_complex else facts.identity("add", t)
    found = None if zero is None else np.asarray(zero).astype(t.dtype)
    return None if found is None or found != found else zero  # a float without zeros gives NaN
