"""Products of arrays: dot, its ragged and scaled kin, convolution. Floats sum in f64 and round once.

Types are those of `heron.hlo.product_types`. A float sum for an integer result rounds to the type it is made in first.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import ml_dtypes
import numpy as np

from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import F32, ElementType, of_dtype
from heron.hlo.ir.window import ConvDims, Window
from heron.hlo.meaning.combine import pad_axis
from heron.hlo.meaning.numeric import convert, precise, settle, working
from heron.hlo.meaning.rounding import reduce_precision
from heron.hlo.product_types import sum_type

DotDims = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def summing(x: np.ndarray, y: np.ndarray, wide: ElementType) -> tuple[np.ndarray, np.ndarray]:
    """Both operands in what sums of type `wide` are computed in: f64, c128 or s64, which wraps as u64 does.

    Narrow integers go through f64 (and its fast matrix products) too: their sums are exact below 2**53.
    """
    x, y = working(x), working(y)
    if wide.is_complex:
        return x.astype(np.complex128), y.astype(np.complex128)
    if wide.is_float or (x.itemsize <= 2 and y.itemsize <= 2):
        return x.astype(np.float64), y.astype(np.float64)
    return x.astype(np.int64), y.astype(np.int64)


def summed_in(x: np.ndarray, y: np.ndarray, t: ElementType) -> ElementType:
    """The type that products of these arrays are summed in for a result of type `t`."""
    return sum_type(of_dtype(x.dtype), of_dtype(y.dtype), t)


def settled(total: np.ndarray, wide: ElementType, t: ElementType) -> np.ndarray:
    """Sums of type `wide`, computed in a wider one, as type `t`."""
    if t.is_float or t.is_complex:
        return finish(total, t)
    if wide.is_float or wide.is_complex:
        return convert(total.astype(wide.dtype), wide, t)
    return convert(finish(total, wide), wide, t)


def finish(total: np.ndarray, t: ElementType) -> np.ndarray:
    """Sums as type `t`."""
    if t.kind == "pred":
        return total != 0
    if t.is_integer and total.dtype.kind == "f":
        total = total.astype(np.int64)
    if not t.is_complex and total.dtype.kind == "c":
        total = np.real(total)
    return settle(total, t)


def dot(x: np.ndarray, y: np.ndarray, dims: DotDims, t: ElementType) -> np.ndarray:
    """dot with (lhs batch, lhs contracting, rhs batch, rhs contracting) dimensions and result type `t`."""
    wide = summed_in(x, y, t)
    x, y = summing(x, y, wide)
    x_batch, x_contracted, y_batch, y_contracted = dims
    x_free = [d for d in range(x.ndim) if d not in x_batch and d not in x_contracted]
    y_free = [d for d in range(y.ndim) if d not in y_batch and d not in y_contracted]
    batch = tuple(x.shape[d] for d in x_batch)
    rows, columns = tuple(x.shape[d] for d in x_free), tuple(y.shape[d] for d in y_free)
    inner = prod(x.shape[d] for d in x_contracted)
    left = x.transpose(*x_batch, *x_free, *x_contracted).reshape(*batch, prod(rows), inner)
    right = y.transpose(*y_batch, *y_contracted, *y_free).reshape(*batch, inner, prod(columns))
    return settled(_matmul(left, right, wide).reshape((*batch, *rows, *columns)), wide, t)


def matmul(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Matrix products of one type. BLAS would make NaN of infinite complex sums: those are sums of real products."""
    if left.dtype.kind != "c":
        return np.matmul(left, right)
    (a, b), (c, d) = ((np.ascontiguousarray(np.real(x)), np.ascontiguousarray(np.imag(x))) for x in (left, right))
    real = np.matmul(a, c) - np.matmul(b, d)
    total = np.empty(real.shape, left.dtype)
    total.real, total.imag = real, np.matmul(a, d) + np.matmul(b, c)
    return total


def _matmul(left: np.ndarray, right: np.ndarray, t: ElementType) -> np.ndarray:
    """Matrix products, right modulo the width of type `t` when that is an integer.

    NumPy multiplies integer matrices slowly, so those for at most 32 bits go through f64 in halves of 16 bits.
    """
    if left.dtype.kind not in "iu" or not t.is_integer or t.bits > 32 or left.shape[-1] > 1 << 20:
        return matmul(left, right)
    (a, b), (c, d) = _halves(left), _halves(right)
    crossed = (np.matmul(a, d) + np.matmul(b, c)).astype(np.int64) & 0xFFFF
    return np.matmul(b, d).astype(np.int64) + (crossed << 16)


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bits 16 to 31 and bits 0 to 15 of integers."""
    bits = x.astype(np.int64)
    return (bits >> 16 & 0xFFFF).astype(np.float64), (bits & 0xFFFF).astype(np.float64)


def rounded_for(algorithm: str, x: np.ndarray) -> np.ndarray:
    """An operand with the precision a dot algorithm reads it in; those of several terms (x3…) read f32."""
    if x.dtype != np.float32 and x.dtype != np.float64:
        return x
    if algorithm in ("dot_bf16_bf16_f32", "dot_bf16_bf16_bf16"):
        return x.astype(ml_dtypes.bfloat16).astype(x.dtype)
    if algorithm in ("dot_f16_f16_f32", "dot_f16_f16_f16"):
        return x.astype(np.float16).astype(x.dtype)
    return reduce_precision(x.astype(np.float32), F32, 8, 10) if algorithm == "dot_tf32_tf32_f32" else x


def ragged_dot(
    x: np.ndarray, y: np.ndarray, sizes: np.ndarray, dims: DotDims, ragged: int, group_dim: int | None, shape: Shape
) -> np.ndarray:
    """One dot a group; elements no group covers are zero (a free ragged dimension) or not summed (a contracting one).

    The last dimension of `sizes` counts groups, the others run along lhs dimensions outside the ragged one.
    """
    x_batch, x_contracted, y_batch, y_contracted = dims
    result = np.zeros(shape.dims, shape.element_type.dtype)
    outer = outer_dims(dims, ragged)[: sizes.ndim - 1]
    ends = np.cumsum(np.asarray(sizes, np.int64), -1)
    line = np.arange(x.shape[ragged])
    covered = (line >= (ends - sizes)[..., None]) & (line < ends[..., None])  # (outer..., group, position)
    for g in range(sizes.shape[-1]):
        inside = covered[..., g, :]
        found = np.flatnonzero(inside.reshape(-1, line.size).any(0))
        if not found.size:
            continue
        run = slice(found[0], found[-1] + 1)
        inside, part = inside[..., run], x[_at(ragged, run)]
        if group_dim is None:
            pairs = dict(zip((*x_batch, *x_contracted), (*y_batch, *y_contracted), strict=True))
            other = y[_at(pairs[ragged], run)]
            part = np.where(_along(inside, (*outer, ragged), x.ndim), part, part.dtype.type(0))
            other = np.where(_along(inside, [pairs[d] for d in (*outer, ragged)], y.ndim), other, other.dtype.type(0))
            result[g] = dot(part, other, dims, shape.element_type)
            continue
        without = [tuple(d - (d > group_dim) for d in numbers) for numbers in (y_batch, y_contracted)]
        numbers = (x_batch, x_contracted, without[0], without[1])
        value = dot(part, np.take(y, g, group_dim), numbers, shape.element_type)
        free = [d for d in range(x.ndim) if d not in x_batch and d not in x_contracted]
        places = {d: n for n, d in enumerate((*x_batch, *free))}
        rows = _at(places[ragged], run)
        result[rows] = np.where(_along(inside, [places[d] for d in (*outer, ragged)], value.ndim), value, result[rows])
    return result


def outer_dims(dims: DotDims, ragged: int) -> list[int]:
    """The lhs dimensions group sizes may differ along: batch ones, then those of the ragged one's kind before it."""
    x_batch, x_contracted, _, _ = dims
    if ragged in x_batch:
        return list(x_batch[: x_batch.index(ragged)])
    if ragged in x_contracted:
        return [*x_batch, *x_contracted[: x_contracted.index(ragged)]]
    return [*x_batch, *(d for d in range(ragged) if d not in x_batch and d not in x_contracted)]


def _at(dim: int, run: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * dim, run)


def _along(a: np.ndarray, dims: Sequence[int], rank: int) -> np.ndarray:
    """`a`, whose dimension n is dimension ``dims[n]`` of arrays of that rank, ready to be broadcast with those."""
    order = np.argsort(dims)
    sizes = [1] * rank
    for n, d in enumerate(dims):
        sizes[d] = a.shape[n]
    return a.transpose(order).reshape(sizes)


def scaled(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """`x` times its block scales (a scalar stands for none)."""
    if scale.ndim == 0:
        return x
    for d in range(x.ndim):
        scale = np.repeat(scale, x.shape[d] // scale.shape[d], d)
    return precise(x) * precise(scale)


def convolution(
    x: np.ndarray, k: np.ndarray, window: Window, dims: ConvDims, groups: int, batch_groups: int, shape: Shape
) -> np.ndarray:
    """A convolution: matrix products, one for each position (or a few) in the kernel's window."""
    wide = summed_in(x, k, shape.element_type)
    x, k = summing(x, k, wide)
    x = x.transpose(dims.input_batch, *dims.input_spatial, dims.input_feature)
    k = k.transpose(*dims.kernel_spatial, dims.kernel_input, dims.kernel_output)
    for d, w in enumerate(window, 1):
        x = pad_axis(x, np.zeros((), x.dtype), d, w)
    spatial = tuple(shape.dims[d] for d in dims.output_spatial)
    features_out = k.shape[-1]
    parts = max(groups, batch_groups)
    batch = x.shape[0] // batch_groups
    # (group, batch, spatial..., input feature) by (group, window..., input feature, output feature)
    if batch_groups > 1:
        x = x.reshape(parts, batch, *x.shape[1:])
    else:
        x = np.moveaxis(x.reshape(*x.shape[:-1], parts, x.shape[-1] // parts), -2, 0)
    k = np.moveaxis(k.reshape(*k.shape[:-1], parts, features_out // parts), -2, 0)
    features_in, rows = x.shape[-1], batch * prod(spatial)
    total = np.zeros((parts, rows, features_out // parts), x.dtype)
    offsets = list(np.ndindex(*(w.size for w in window)))
    # many outputs from few inputs: several positions to a product, since copies of inputs are cheap beside the sums
    at_once = max(1, total.shape[-1] // max(1, 2 * features_in))
    for start in range(0, len(offsets), at_once):
        chunk = offsets[start : start + at_once]
        patches = [_positions(x, window, o, spatial).reshape(parts, rows, features_in) for o in chunk]
        kernels = [k[(slice(None), *o)] for o in chunk]
        total += _matmul(_joined(patches, -1), _joined(kernels, 1), wide)
    value = np.moveaxis(total.reshape(parts, batch, *spatial, features_out // parts), 0, -2)
    value = value.reshape(batch, *spatial, features_out)
    order = [dims.output_batch, *dims.output_spatial, dims.output_feature]
    return settled(value.transpose(np.argsort(order)), wide, shape.element_type)


def _positions(x: np.ndarray, window: Window, offset: tuple[int, ...], spatial: tuple[int, ...]) -> np.ndarray:
    """The elements of each window of padded `x` (group, batch, spatial..., feature) at one place."""
    at = [slice(None), slice(None)]
    for w, o, n in zip(window, offset, spatial, strict=True):
        start = (w.size - 1 - o if w.reversal else o) * w.window_dilation
        at.append(slice(start, start + (n - 1) * w.stride + 1 if n else start, w.stride))
    return x[tuple(at)]


def _joined(arrays: list[np.ndarray], dim: int) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, dim)
