"""From a convolution to sums in registers: its result in tiles, each written once, whatever is summed for it.

Rows of a tile are neighbours in the batch or along one spatial dimension, its columns output features. Padding is read
from zeros along the rows' dimension and left out along all others. Where every output feature has an input of its own
(depthwise) both sides are read in vectors.
"""

from __future__ import annotations

from collections.abc import Iterator

from heron.backends.convolution.axes import MAX_STEPS, Axis, strides
from heron.codegen.native import convolution_tiles
from heron.codegen.native.tile_code import LOOPS, SUMMED, ZEROS
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass
from heron.runtime.strided import Loop, Rows, Step, Tiling

#: cycles of a processor in a microsecond, about
_CYCLES = 3_000
#: bytes of the right array that should stay in a processor's own cache while rows go by
_CACHED = 1 << 19
#: elements of a window for each input feature, from which on they are one sum where they can be
_LONG = 8
#: columns that are read together, about
_WIDE = 64
#: what an element costs that is not next to the one before, in cycles
_FAR = 1.0

_ONCE = Loop((Step(0, 0, 0),))


def tiling(i: Instruction, axes: list[Axis] | None) -> tuple[Tiling | None, float]:
    """The best tiling of a convolution and its estimated microseconds on one thread; None where output features are
    not next to each other in the result and in the right operand, or there are too many dimensions or positions.
    """
    if axes is None or len(axes) > SUMMED - 1:
        return None, float("inf")
    best, least = None, float("inf")
    for found in _choices(i, axes):
        estimate = _cost(found, i)
        if estimate < least:
            best, least = found, estimate
    return best, least


def _cost(t: Tiling, i: Instruction) -> float:
    cycles = convolution_tiles.cycles(t, i.shape.element_type)
    inner = t.loops[-1]
    far = inner.lhs > 1 and len(t.rows[0].outs) > 1 and not t.lanewise and not _are_neighbours(t.rows[0])
    return cycles * (1 + far * _FAR) / _CYCLES


def _are_neighbours(rows: Rows) -> bool:
    first, second = rows.steps[0][1][:2] if rows.steps else (None, None)
    return first is not None and second is not None and second - first == 1


def _choices(i: Instruction, axes: list[Axis]) -> Iterator[Tiling]:
    """Tilings for every choice of rows (the batch or an axis) and of the innermost sum (features or an axis)."""
    frame = _frame(i)
    if frame is None:
        return
    sums, size = [frame.inputs, *(axis.sums() for axis in axes)], i.shape.element_type.byte_size

    def made(rows: int, lines: tuple[Rows, ...], rest: list[Loop | None], last: Loop | None) -> Iterator[Tiling]:
        summed = [*rest, *[_ONCE] * (SUMMED - 1 - len(rest)), last]
        if None not in summed:
            outer = (frame.groups, frame.batch if rows else _ONCE)
            found = _made((*outer, *summed), lines, frame.columns, frame.is_lanewise, size)
            if found is not None:
                yield found

    for rows in range(len(sums)):  # 0: the batch
        along = axes[rows - 1].along() if rows else None
        if along is not None:
            line, window = along
            others = [loop for n, loop in enumerate(sums) if n not in (0, rows)]
            both = _joined(frame.inputs, window)
            if both is not None and both.longest * min(frame.columns, _WIDE) * size <= _CACHED:
                yield from made(rows, (line,), others, both)
            else:
                yield from made(rows, (line,), [frame.inputs, *others], window)
            if window.longest >= frame.inputs.longest * _LONG:
                continue  # a step of its own for each place of such a window takes longer, and so does writing them
        lines = axes[rows - 1].rows() if rows else (frame.batch_rows,)
        for inner in range(len(sums)):
            if inner != rows or rows == 0:
                rest = [loop for n, loop in enumerate(sums) if n != inner and (n != rows or n == 0)]
                yield from made(rows, lines, rest, sums[inner])


def _joined(inner: Loop, outer: Loop) -> Loop | None:
    """Two sums as one, where the outer one goes on in both arrays where the inner one ends."""
    count = inner.longest
    if (outer.lhs, outer.rhs) != (count * inner.lhs, count * inner.rhs):
        return None
    return Loop((Step(0, 0, 0, count * outer.longest),), inner.lhs, inner.rhs)


@dataclass(frozen=True, slots=True)
class _Frame:
    """The loops of a convolution apart from its axes. ``columns``: output features of a tile.

    ``is_lanewise``: every output feature has an input of its own, so that groups are columns and no loop.
    """

    groups: Loop
    batch: Loop
    inputs: Loop
    columns: int
    is_lanewise: bool

    @property
    def batch_rows(self) -> Rows:
        """The batch as the rows of a tile."""
        walk = self.batch.walk
        return Rows(tuple(s.out for s in walk), ((0, tuple(s.lhs for s in walk)),))


def _frame(i: Instruction) -> _Frame | None:
    """None where output features are not next to each other, or there are too many groups or batches."""
    dims, parts = i.dim_labels, i.feature_group_count * i.batch_group_count
    x, k = (o.shape for o in i.operands)
    out_s, x_s, k_s = strides(i.shape), strides(x), strides(k)
    batch, features = i.shape.dims[dims.output_batch], i.shape.dims[dims.output_feature] // parts
    inputs = k.dims[dims.kernel_input]
    out_column, rhs_column = out_s[dims.output_feature], k_s[dims.kernel_output]
    # a group has its own part of the input features or of the batch, and its own output features
    part = inputs * x_s[dims.input_feature] if i.batch_group_count == 1 else batch * x_s[dims.input_batch]
    is_lanewise = features == part == 1 < parts
    columns = parts if is_lanewise else features
    if columns > 1 and (out_column != 1 or rhs_column != 1) or max(parts, batch) > MAX_STEPS:
        return None
    groups = Loop(tuple(Step(g * features * out_column, g * part, g * features * rhs_column) for g in range(parts)))
    of_batch = Loop(tuple(Step(n * out_s[dims.output_batch], n * x_s[dims.input_batch], 0) for n in range(batch)))
    of_inputs = Loop((Step(0, 0, 0, inputs),), x_s[dims.input_feature], k_s[dims.kernel_input])
    return _Frame(_ONCE if is_lanewise else groups, of_batch, of_inputs, columns, is_lanewise)


def _made(loops: tuple[Loop, ...], rows: tuple[Rows, ...], columns: int, lanewise: bool, size: int) -> Tiling | None:
    assert len(loops) == LOOPS
    summed = [loop.longest for loop in loops[-SUMMED:]]
    inner = loops[-1]
    read = ((summed[-1] - 1) * inner.lhs + (columns if lanewise else 1)) * size
    if read > ZEROS and any(r.has_padding for r in rows):
        return None
    once = summed[1] * summed[2] * summed[3] * max((len(r.steps) for r in rows), default=1) * min(columns, _WIDE) * size
    return Tiling(loops, rows, columns, lanewise, max(1, _CACHED // max(1, once)))
