"""From a convolution to matrix products in place: no patches are copied, padding is never touched.

A convolution sums over input features and the window, for each batch element, output position and output feature.
One of
batch and output positions becomes the rows of a product, one of features and window the summed dimension, output
features its columns; what is left are loops. The choice with the least estimated time wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import prod

import numpy as np

from heron.backends.convolution.axes import Axis, Pair, strides
from heron.hlo.ir.instruction import Instruction
from heron.runtime.cpu.blas import LIMIT
from heron.runtime.strided import Matrix, Step, StridedProducts, Walk

#: microseconds a product costs beyond its arithmetic, and multiply-adds a microsecond; of a plain loop, the same
_CALL, _RATE, _LOOP_RATE = 0.4, 30_000, 1_000


def strided_products(i: Instruction, axes: list[Axis] | None) -> StridedProducts | None:
    """The best products for a convolution, None when no choice of dimensions makes matrices BLAS can read."""
    return None if axes is None else min(_choices(i, axes), key=cost, default=None)


def loops_cost(i: Instruction, axes: list[Axis] | None) -> float:
    """Estimated microseconds of a kernel that sums each output element by itself."""
    if axes is None:
        return float("inf")
    features = i.operands[1].shape.dims[i.dim_labels.kernel_input]
    work = features * i.shape.dims[i.dim_labels.output_batch] * i.shape.dims[i.dim_labels.output_feature]
    return work * prod(int(np.count_nonzero(axis.meets)) for axis in axes) / _LOOP_RATE


def cost(p: StridedProducts) -> float:
    """Estimated microseconds. Small matrices cost as much as the blocks that hold them."""
    m, n, k = p.longest(p.m), p.n, p.longest(p.k)
    blocks = -(-m // 8) * 8 * (-(-n // 16) * 16) * max(k, 8)
    return p.products * (_CALL + blocks / _RATE)


def _choices(i: Instruction, axes: list[Axis]) -> Iterator[StridedProducts]:
    """Every choice of rows (batch or an axis) and summed dimension (features or another axis) BLAS can read."""
    dims, groups, batch_groups = i.dim_labels, i.feature_group_count, i.batch_group_count
    x, k = (o.shape for o in i.operands)
    out_s, x_s, k_s = strides(i.shape), strides(x), strides(k)
    parts = groups * batch_groups
    batch, features = i.shape.dims[dims.output_batch], i.shape.dims[dims.output_feature] // parts
    inputs = k.dims[dims.kernel_input]
    batch_strides = out_s[dims.output_batch], x_s[dims.input_batch]
    input_strides = k_s[dims.kernel_input], x_s[dims.input_feature]
    columns = out_s[dims.output_feature], k_s[dims.kernel_output]
    # a group has its own part of the input features or of the batch, and its own output features
    part = inputs * input_strides[1] if batch_groups == 1 else batch * batch_strides[1]
    always = [tuple(Step(g * features * columns[0], g * part, g * features * columns[1]) for g in range(parts))]
    of_batch = tuple(Step(n * batch_strides[0], n * batch_strides[1], 0) for n in range(batch))
    of_inputs = tuple(Step(0, n * input_strides[1], n * input_strides[0]) for n in range(inputs))
    each, runs = cache(Axis.walk), cache(Axis.runs)  # many choices walk along the same axis
    for rows in (None, *range(len(axes))):
        for summed in (None, *range(len(axes))):
            if rows is not None and rows == summed:
                continue
            walks: list[Walk | None] = [*always, *([] if rows is None else [of_batch])]
            walks += [] if summed is None else [of_inputs]
            m, k_size, row_strides, sum_strides = batch, inputs, batch_strides, input_strides
            for n, axis in enumerate(axes):
                if n not in (rows, summed):
                    walks.append(each(axis))
                    continue
                walk, gaps = runs(axis, n == summed) or (None, (1, 1))
                if n == rows:
                    m, row_strides = -1 - len(walks), gaps
                else:
                    k_size, sum_strides = -1 - len(walks), gaps
                walks.append(walk)
            there = tuple(walk for walk in walks if walk is not None)
            if len(there) == len(walks):
                made = _made(there, m, features, k_size, row_strides, sum_strides, columns)
                if made is not None:
                    yield made


def _made(
    walks: tuple[Walk, ...], m: int, n: int, k: int, rows: Pair, summed: Pair, columns: Pair
) -> StridedProducts | None:
    """`rows`: strides in (out, lhs), `summed`: in (rhs, lhs), `columns`: in (out, rhs)."""
    sizes = StridedProducts(walks, m, n, k, Matrix(1, True), Matrix(1, True), Matrix(1, True))
    long_m, long_k = sizes.longest(m), sizes.longest(k)
    lhs = _matrix(rows[1], long_m, summed[1], long_k)
    rhs = _matrix(summed[0], long_k, columns[1], n)
    out = _matrix(rows[0], long_m, columns[0], n)
    if lhs is None or rhs is None or out is None:
        return None
    if not all(0 <= size <= LIMIT for size in (long_m, n, long_k, lhs.leading, rhs.leading, out.leading)):
        return None
    used = [at for at, walk in enumerate(walks) if walk != (Step(0, 0, 0),) or -1 - at in (m, k)]
    m, k = (size if size >= 0 else -1 - used.index(-1 - size) for size in (m, k))
    return StridedProducts(tuple(walks[at] for at in used), m, n, k, lhs, rhs, out)


def _matrix(first: int, firsts: int, second: int, seconds: int) -> Matrix | None:
    """A matrix with those strides and sizes, if one of its indices runs through memory without gaps."""
    for inner, length, outer, lines, inner_second in (
        (second, seconds, first, firsts, True),
        (first, firsts, second, seconds, False),
    ):
        if inner != 1 and length > 1:
            continue
        if lines <= 1:
            return Matrix(max(1, length), inner_second)
        if outer >= max(1, length):
            return Matrix(outer, inner_second)
    return None
