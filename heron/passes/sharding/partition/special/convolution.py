"""convolution: shares with what their windows see of others, or of each other where the window itself is split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from heron.analysis.sharding.choice import compute_shardings
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, row_major
from heron.hlo.ir.types import PRED, S32
from heron.hlo.ir.window import WindowDim
from heron.hlo.sharding.atoms import AtomicMesh, Axes, TensorSharding
from heron.passes.sharding.partition.moves import tiles
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.passes.sharding.partition.windowed import Reach, extended, nothing, reached
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


@dataclass(frozen=True)
class _Split:
    """The atoms along which a convolution is split.

    Attributes:
        batch: of batches; `features` of output features, `summed` of input features; `groups` of groups of either kind.
        places: for each spatial dimension those of the windows; `windows` those of the elements of a window.
    """

    batch: Axes
    features: Axes
    summed: Axes
    groups: Axes
    places: tuple[Axes, ...]
    windows: tuple[Axes, ...]

    @staticmethod
    def of(i: Instruction, mesh: AtomicMesh, x: Part, k: Part, wanted: TensorSharding) -> _Split:
        """The split for which the fewest bytes are sent."""
        found = compute_shardings(i, [x.sharding, k.sharding], [wanted], mesh, moves=True, keeps_sums=False)
        kernel, (result,), dims = found.operands[1].dims, found.results, i.dim_labels
        grouped = max(i.feature_group_count, i.batch_group_count)
        features = result.dims[dims.output_feature]
        groups = _dividing(mesh, features, grouped) if grouped > 1 else ()
        places = tuple(result.dims[d] for d in dims.output_spatial)
        windows = tuple(() if place else kernel[d] for d, place in zip(dims.kernel_spatial, places, strict=True))
        return _Split(
            result.dims[dims.output_batch] if i.batch_group_count == 1 else (),
            features if grouped == 1 else groups,
            kernel[dims.kernel_input] if i.feature_group_count == 1 else (),
            groups,
            places,
            windows,
        )

    @property
    def moving(self) -> list[Axes]:
        """The atoms of each spatial dimension, of windows or of their elements."""
        return [place or window for place, window in zip(self.places, self.windows, strict=True)]

    def operands(self, i: Instruction, x: Part) -> tuple[list[Axes], list[Axes]]:
        """The atoms of each dimension of both operands."""
        dims = i.dim_labels
        left: list[Axes] = [()] * x.shape.rank
        right: list[Axes] = [()] * x.shape.rank
        left[dims.input_batch] = self.groups if i.batch_group_count > 1 else self.batch
        left[dims.input_feature] = self.groups if i.feature_group_count > 1 else self.summed
        right[dims.kernel_input], right[dims.kernel_output] = self.summed, self.features
        for d, axes in zip(dims.input_spatial, self.moving, strict=True):
            taken = x.sharding.dims[d] or not x.sharding.used.isdisjoint(axes)
            left[d] = axes if taken else ()  # each device takes what it needs of a whole dimension
        for d, axes in zip(dims.kernel_spatial, self.windows, strict=True):
            right[d] = axes
        return left, right

    def result(self, i: Instruction) -> list[Axes]:
        """The atoms of each dimension of the result."""
        dims = i.dim_labels
        made: list[Axes] = [()] * i.shape.rank
        made[dims.output_batch], made[dims.output_feature] = self.batch, self.features
        for d, axes in zip(dims.output_spatial, self.places, strict=True):
            made[d] = axes
        return made


def _dividing(mesh: AtomicMesh, axes: Axes, size: int) -> Axes:
    """The first atoms whose number of parts divides `size`."""
    n = len(axes)
    while size % mesh.size(axes[:n]):
        n -= 1
    return axes[:n]


@partitions("convolution")
def partition_convolution(p: Partitioner, i: Instruction, operands: list[Part]) -> Part:
    """Input features and split windows make partial sums; windows at borders get halos of zeros."""
    wanted, dims = p.wanted(i), i.dim_labels
    if not prod(i.shape.dims):
        return nothing(p, i.shape, wanted.manual)
    split = _Split.of(i, p.mesh, operands[0], operands[1], wanted)
    left, right = split.operands(i, operands[0])
    x = p.reshard(operands[0], TensorSharding.closed(left, manual=wanted.manual))
    k = p.reshard(operands[1], TensorSharding.closed(right, manual=wanted.manual))
    x = replace(x, value=p.masked(x, (dims.input_feature,), 0))
    kernel = p.masked(k, (dims.kernel_input,), 0)
    window, segments = list(i.window), [[_Segment(0, w.size, 1, ())] for w in i.window]
    for n, w in enumerate(i.window):
        dim, outputs = dims.input_spatial[n], i.shape.dims[dims.output_spatial[n]]
        if split.places[n]:
            value, window[n] = extended(p, x, dim, w, outputs, 0, split.places[n])
        elif split.windows[n]:
            value, window[n] = _in_part(p, x, dim, w, outputs, split.windows[n])
            segments[n] = _segments(p.mesh, w.size, split.windows[n])
        else:
            continue
        x = replace(x, value=value)
    made = TensorSharding.closed(
        split.result(i), (*split.summed, *(a for axes in split.windows for a in axes)), wanted.manual
    )
    shape = row_major(i.shape.element_type, *p.mesh.local_dims(i.shape.dims, made))
    parts = p.mesh.size(split.groups)
    groups = {
        name: i.attrs[name] // parts
        for name in ("feature_group_count", "batch_group_count")
        if i.attrs.get(name, 1) > 1
    }
    total: Instruction | None = None
    for chosen in product(*segments):
        value = _convolved(p, i, x.value, kernel, window, chosen, shape, groups)
        total = value if total is None else p.add("add", [total, value], shape)
    assert total is not None
    return Part(total, i.shape, made)


@dataclass(frozen=True)
class _Segment:
    """Elements `start` to `limit` of a share of the window; the first `devices` along `axes` have them.

    For the others they are rubbish, which must not be multiplied with what may be infinite.
    """

    start: int
    limit: int
    devices: int
    axes: Axes


def _segments(mesh: AtomicMesh, size: int, axes: Axes) -> list[_Segment]:
    """A share of a window of `size`, cut where the elements of some devices end."""
    sizes = [s.limit - s.start for s in tiles(size, mesh.size(axes))]
    cuts = [0, *sorted({n for n in sizes if n})]
    return [_Segment(a, b, sum(n >= b for n in sizes), axes) for a, b in zip(cuts, cuts[1:], strict=False)]


def _convolved(
    p: Partitioner,
    i: Instruction,
    x: Instruction,
    kernel: Instruction,
    window: Sequence[WindowDim],
    chosen: Sequence[_Segment],
    shape: Shape,
    groups: dict[str, int],
) -> Instruction:
    """The convolution with one segment of the kernel; zeros on devices that do not have it."""
    within = list(window)
    for n, (d, s) in enumerate(zip(i.dim_labels.kernel_spatial, chosen, strict=True)):
        kernel = p.slice(kernel, d, s.start, s.limit)
        w = window[n]
        before, behind = s.start * w.window_dilation, (w.size - s.limit) * w.window_dilation
        if w.reversal:
            before, behind = behind, before
        within[n] = replace(w, size=s.limit - s.start, pad_low=w.pad_low - before, pad_high=w.pad_high - behind)
    value = p.add("convolution", [x, kernel], shape, **{**i.attrs, "window": tuple(within), **groups})
    for s in chosen:
        if s.devices < p.mesh.size(s.axes):
            test = p.compare("LT", p.index(s.axes), p.constant(s.devices, S32))
            zeros = p.full(0, shape.element_type, shape.dims)
            value = p.add("select", [p.full(test, PRED, shape.dims), value, zeros], shape)
    return value


def _in_part(
    p: Partitioner, x: Part, dim: int, w: WindowDim, outputs: int, axes: Axes
) -> tuple[Instruction, WindowDim]:
    """The input that one share of the window sees, and that share as a window."""
    given = tiles(w.size, p.mesh.size(axes))
    size = given[0].limit
    length = (outputs - 1) * w.stride + (size - 1) * w.window_dilation + 1
    firsts = [w.size - s.start - size if w.reversal else s.start for s in given]
    lows = [first * w.window_dilation - w.pad_low for first in firsts]
    reach = Reach.between(lows, [length if s.start < s.limit else 0 for s in given], w.base_dilation)
    return reached(p, x, dim, replace(w, size=size), reach, 0, axes)
