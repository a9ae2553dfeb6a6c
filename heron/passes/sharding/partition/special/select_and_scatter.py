"""select-and-scatter: each device computes all windows that see elements of its share, with what these windows need.

No results are sent back: windows at borders are computed by all whom they concern.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from heron.hlo import facts
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import row_major, scalar
from heron.hlo.ir.types import S32
from heron.hlo.ir.window import WindowDim
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.expand.model.whole_arrays import apply_to_arrays, is_elementwise
from heron.passes.sharding.partition.halo import number, spans
from heron.passes.sharding.partition.mask import outside_masked
from heron.passes.sharding.partition.moves import Span
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.passes.sharding.partition.windowed import is_still, toward
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


@partitions("select-and-scatter")
def partition_select_and_scatter(p: Partitioner, i: Instruction, operands: list[Part]) -> Part:
    """The same op on more than the share where no window reaches beyond the array; else a reduction of places."""
    x, source = operands[:2]
    init = p.whole(operands[2])
    sharding = toward(x.sharding, p.wanted(i))
    whole = [
        () if _needs_whole(i, d, w) or not x.sharding.dims[d] and not is_still(w) else sharding.dims[d]
        for d, w in enumerate(i.window)
    ]
    sharding = TensorSharding.closed(whole, manual=sharding.manual)
    moving = [d for d, w in enumerate(i.window) if sharding.dims[d] and not is_still(w)]
    x = p.reshard(x, sharding)
    kept = [() if d in moving and not source.sharding.dims[d] else axes for d, axes in enumerate(sharding.dims)]
    source = p.reshard(source, TensorSharding.closed(kept, manual=sharding.manual))
    views = [_View.of(d, i.window[d], x, source, p.mesh.size(sharding.dims[d])) for d in moving]
    neutral = _neutral(i)
    exact = neutral is not None and all(v.stays_inside for v in views)
    for v in views:
        axes = sharding.dims[v.dim]
        x = replace(x, value=spans(p, x, v.dim, v.elements, v.length, None if exact else 0))
        fill = neutral if exact else init.value
        source = replace(source, value=spans(p, source, v.dim, v.windows, v.count, fill, axes))
    window = tuple(replace(w, pad_low=0, pad_high=0) if d in moving else w for d, w in enumerate(i.window))
    if exact:
        attrs = {"window": window, "select": p.copied(i.select), "scatter": p.copied(i.scatter)}
        value = p.add("select-and-scatter", [x.value, source.value, init.value], **attrs)
    else:
        value = _by_places(p, i, window, views, x, source.value, init.value)
    for v in views:
        value = _cut(p, value, v, sharding.dims[v.dim], init.value)
    return Part(value, i.shape, sharding)


def _needs_whole(i: Instruction, d: int, w: WindowDim) -> bool:
    """Whether a dimension is not split: it has holes between elements, or no window."""
    return not is_still(w) and (
        w.base_dilation > 1 or w.window_dilation > 1 or not i.operands[1].shape.dims[d] or not is_elementwise(i.select)
    )


def _neutral(i: Instruction) -> object:
    """The number that changes nothing when it is scattered; None when none is known."""
    opcode = facts.combiner(i.scatter)
    return None if opcode is None else facts.identity(opcode, i.operands[1].shape.element_type)


@dataclass(frozen=True)
class _View:
    """The view that devices have of a split dimension: windows that touch their shares, with all their elements.

    Attributes:
        dim: the dimension; `size` the array's size.
        starts: the first element of each device's view, which may lie before the array; `length` the elements in it.
        elements, windows: the positions of a view that are needed, and the windows in it.
        count: the number of windows in a view.
        tile: the size of a share; `offsets` where each share begins in its view.
        stays_inside: whether no window has elements beyond the array.
    """

    dim: int
    size: int
    starts: tuple[int, ...]
    length: int
    elements: tuple[Span, ...]
    windows: tuple[Span, ...]
    count: int
    tile: int
    offsets: tuple[int, ...]
    stays_inside: bool

    @staticmethod
    def of(dim: int, w: WindowDim, x: Part, source: Part, devices: int) -> _View:
        """The views of windows without dilation."""
        size, tile, total = x.dims[dim], x.local_dims[dim], source.dims[dim]
        shares = [(n * tile, min((n + 1) * tile, size)) for n in range(devices)]
        first = [-(-(begin + w.pad_low - w.size + 1) // w.stride) for begin, _ in shares]
        last = [(end - 1 + w.pad_low) // w.stride for _, end in shares]
        count = max(1, *(b - a + 1 for a, b in zip(first, last, strict=True)))
        starts = [a * w.stride - w.pad_low for a in first]
        real = [(max(a, 0), min(b + 1, total)) for a, b in zip(first, last, strict=True)]
        seen = [
            (a * w.stride - w.pad_low, (b - 1) * w.stride - w.pad_low + w.size) if a < b else (at, at)
            for (a, b), at in zip(real, starts, strict=True)
        ]
        return _View(
            dim,
            size,
            tuple(starts),
            (count - 1) * w.stride + w.size,
            tuple(Span(n, a, b, a - at) for n, ((a, b), at) in enumerate(zip(seen, starts, strict=True))),
            tuple(Span(n, a, max(a, b), a - at) for n, ((a, b), at) in enumerate(zip(real, first, strict=True))),
            count,
            tile,
            tuple(begin - at for (begin, _), at in zip(shares, starts, strict=True)),
            w.pad_low <= 0 and (total - 1) * w.stride - w.pad_low + w.size <= size,
        )


def _cut(p: Partitioner, value: Instruction, v: _View, axes: tuple[int, ...], init: Instruction) -> Instruction:
    """The share out of its view; elements that no window sees hold the initial value."""
    low, high = max(0, -min(v.offsets)), max(0, max(v.offsets) + v.tile - v.length)
    value = p.pad(value, v.dim, low, high, init)
    begins = [at + low for at in v.offsets]
    if len(set(begins)) == 1:
        return p.slice(value, v.dim, begins[0], begins[0] + v.tile)
    sizes = [v.tile if d == v.dim else n for d, n in enumerate(value.shape.dims)]
    return p.dynamic_slice(value, {v.dim: number(p, axes, begins)}, sizes)


def _by_places(
    p: Partitioner,
    i: Instruction,
    window: tuple[WindowDim, ...],
    views: list[_View],
    x: Part,
    source: Instruction,
    init: Instruction,
) -> Instruction:
    """The number of the element that each window selects, -1 for none, and the source scattered by these numbers."""
    dims, t = x.value.shape.dims, x.shape.element_type
    size = prod(dims)
    places = p.reshape(p.iota((size,), 0), dims)
    for v in views:
        start = number(p, x.sharding.dims[v.dim], v.starts)
        places = outside_masked(p, places, v.dim, start, v.size, -1)
    nowhere = p.constant(-1, S32)
    both = p.add("reduce-window", [x.value, places, p.constant(0, t), nowhere], window=window, to_apply=_selector(p, i))
    chosen = p.add("get-tuple-element", [both], both.shape.at((1,)), index=1)
    for v in views:  # of windows that there are not, none
        first = number(p, x.sharding.dims[v.dim], [w.start - w.place for w in v.windows])
        chosen = outside_masked(p, chosen, v.dim, first, i.operands[1].shape.dims[v.dim], -1)
    count = prod(chosen.shape.dims)
    scattered = p.add(
        "scatter",
        [p.full(init, init.shape.element_type, (size,)), p.reshape(chosen, (count, 1)), p.reshape(source, (count,))],
        row_major(init.shape.element_type, size),
        update_window_dims=(),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
        to_apply=p.copied(i.scatter),
    )
    return p.reshape(scattered, dims)


def _selector(p: Partitioner, i: Instruction) -> Computation:
    """Of two elements with their numbers the one that is selected, in the order of numbers.

    A negative number is no element.
    """
    t = scalar(i.operands[0].shape.element_type)
    with p.computation(f"{i.name}_place") as c:
        a, m, b, n = (c.add_parameter(k, s) for k, s in enumerate((t, scalar(S32), t, scalar(S32))))
        swapped = p.compare("GT", m, n)
        first, later = p.add("select", [swapped, b, a]), p.add("select", [swapped, a, b])
        low, high = p.add("minimum", [m, n]), p.add("maximum", [m, n])
        (keeps,) = apply_to_arrays(c, i.select, [first, later], like=i)
        keeps = p.add("and", [p.compare("GE", low, p.constant(0, S32)), keeps])
        c.root = p.add("tuple", [p.add("select", [keeps, first, later]), p.add("select", [keeps, low, high])])
    return c
