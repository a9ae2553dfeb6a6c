"""The meaning of cuDNN's convolution calls; derivatives are convolutions with other windows.

Source: https://docs.nvidia.com/deeplearning/cudnn (cudnnConvolutionBiasActivationForward and its kin).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.evaluator.calls.table import evaluates, with_scratch
from heron.hlo.calls import convolution
from heron.hlo.calls.convolution import ConvConfig
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import F64, S64, ElementType
from heron.hlo.ir.window import ConvDims, Window
from heron.hlo.meaning import products
from heron.hlo.meaning.numeric import bounds

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction


@evaluates(convolution.CALL)
def convolve(i: Instruction, x: np.ndarray, w: np.ndarray, *more: np.ndarray) -> Any:
    """The array; workspace is zero."""
    given = convolution.read(i)
    shapes = i.shape.tuple_shapes or (i.shape,)
    out = compute(i.custom_call_target, given, i.window, i.dim_labels, i.feature_group_count, shapes[0], (x, w, *more))
    return with_scratch(i, [out])


def compute(
    call: str,
    given: ConvConfig,
    window: Window,
    dims: ConvDims,
    groups: int,
    shape: Shape,
    operands: tuple[np.ndarray, ...],
) -> np.ndarray:
    """The result of a call, of that shape: computed wide, rounded once; integers saturate.

    Arrays with one dimension more than ``dims`` names have the features of a group there, the last.
    """
    if len(shape.dims) > 2 + len(dims.output_spatial):
        return _of_groups(call, given, window, dims, shape, operands)
    x, w, *more = operands
    t = shape.element_type
    is_integer = x.dtype.kind in "iu" or x.dtype.name in ("int4", "uint4")
    wide = shape.with_type(S64 if is_integer else F64)
    if call == convolution.BACKWARD_INPUT:
        value = backward_input(x, w, window, dims, groups, wide)
    elif call == convolution.BACKWARD_FILTER:
        value = backward_filter(x, w, window, dims, groups, wide)
    else:
        value = products.convolution(x, w, window, dims, groups, 1, wide)
    if call != convolution.FUSED and given.scale == 1:
        return _settled(value, t)
    value = value.astype(np.float64) * given.scale
    if more:
        sizes = [1] * value.ndim
        sizes[dims.output_feature] = -1
        if len(more) > 1:
            value = value + given.side_scale * more[1].astype(np.float64)
        value = value + more[0].astype(np.float64).reshape(sizes)
    return _settled(activated(value, given), t)


def _of_groups(
    call: str, given: ConvConfig, window: Window, dims: ConvDims, shape: Shape, operands: tuple[np.ndarray, ...]
) -> np.ndarray:
    """Of arrays whose features are in groups: the same of arrays that have them together."""
    features = dims.input_feature, dims.kernel_input, -1, dims.output_feature
    whole = [x if at < 0 else _together(x, at) for x, at in zip(operands, features, strict=False)]
    at, width = dims.output_feature, shape.dims[-1]
    sizes = [n * width if d == at else n for d, n in enumerate(shape.dims[:-1])]
    found = compute(call, given, window, dims, 1, shape.with_dims(tuple(sizes)), tuple(whole))
    return np.moveaxis(found.reshape(*sizes[:at], sizes[at] // width, width, *sizes[at + 1 :]), at + 1, -1)


def _together(x: np.ndarray, at: int) -> np.ndarray:
    """Features of groups, in the last dimension, behind their groups in dimension `at`."""
    moved = np.moveaxis(x, -1, at + 1)
    return moved.reshape(*x.shape[:at], -1, *x.shape[at + 1 : -1])


def activated(x: np.ndarray, given: ConvConfig) -> np.ndarray:
    """The activation of f64 values."""
    match given.activation:
        case "kRelu":
            return np.maximum(x, 0)
        case "kRelu6":
            return np.clip(x, 0, 6)
        case "kElu":
            return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
        case "kLeakyRelu":
            return np.where(x > 0, x, x * given.leak)
    return x


def _settled(x: np.ndarray, t: ElementType) -> np.ndarray:
    """As type `t`; what is out of an integer type's bounds becomes the nearest there is, half goes to even."""
    if t.is_integer:
        low, high = bounds(t)
        return np.clip(np.rint(x) if x.dtype.kind == "f" else x, low, high).astype(t.dtype)
    return products.finish(x, t)


def backward_input(
    dy: np.ndarray, w: np.ndarray, window: Window, dims: ConvDims, groups: int, shape: Shape
) -> np.ndarray:
    """The derivative by the input, of that shape: the result's, spread by the strides, against the turned filter."""
    turned = []
    for d, at in enumerate(window):
        x, y = shape.dims[dims.input_spatial[d]], dy.shape[dims.output_spatial[d]]
        reach = (at.size - 1) * at.window_dilation
        low = reach - at.pad_low
        high = x - (y - 1) * at.stride - 1 - low + reach
        turned.append(
            replace(at, stride=1, base_dilation=at.stride, pad_low=low, pad_high=high, reversal=not at.reversal)
        )
    labels = ConvDims(
        dims.output_batch, dims.output_feature, dims.output_spatial,
        dims.kernel_output, dims.kernel_input, dims.kernel_spatial,
        dims.input_batch, dims.input_feature, dims.input_spatial,
    )  # fmt: skip
    arrays = (dy, dims.output_feature), (w, dims.kernel_output)
    return _by_groups(*arrays, tuple(turned), labels, groups, shape, dims.input_feature)


def backward_filter(
    x: np.ndarray, dy: np.ndarray, window: Window, dims: ConvDims, groups: int, shape: Shape
) -> np.ndarray:
    """The derivative by the filter, of that shape: the input against the result's derivative, summed over the batch."""
    turned = []
    for d, at in enumerate(window):
        n, y = x.shape[dims.input_spatial[d]], dy.shape[dims.output_spatial[d]]
        high = (at.size - 1) * at.window_dilation + (y - 1) * at.stride + 1 - n - at.pad_low
        turned.append(
            replace(at, size=y, stride=at.window_dilation, window_dilation=at.stride, pad_high=high, reversal=False)
        )
    labels = ConvDims(
        dims.input_feature, dims.input_batch, dims.input_spatial,
        dims.output_batch, dims.output_feature, dims.output_spatial,
        dims.kernel_input, dims.kernel_output, dims.kernel_spatial,
    )  # fmt: skip
    arrays = (x, dims.input_feature), (dy, dims.output_feature)
    found = _by_groups(*arrays, tuple(turned), labels, groups, shape, dims.kernel_output)
    return np.flip(found, tuple([dims.kernel_spatial[d] for d, at in enumerate(window) if at.reversal]))


def _by_groups(
    x: tuple[np.ndarray, int],
    w: tuple[np.ndarray, int],
    window: Window,
    labels: ConvDims,
    groups: int,
    shape: Shape,
    along: int,
) -> np.ndarray:
    """The convolutions of the groups of two arrays, one behind the other along a dimension of the result, of that
    shape. With each array comes the dimension that has its groups."""
    part = shape.with_dims(_divided(shape.dims, along, groups))
    pairs = ((_part(*x, groups, g), _part(*w, groups, g)) for g in range(groups))
    return np.concatenate([products.convolution(a, b, window, labels, 1, 1, part) for a, b in pairs], along)


def _divided(dims: tuple[int, ...], d: int, by: int) -> tuple[int, ...]:
    return (*dims[:d], dims[d] // by, *dims[d + 1 :])


def _part(x: np.ndarray, d: int, parts: int, n: int) -> np.ndarray:
    size = x.shape[d] // parts
    return x[(slice(None),) * d + (slice(n * size, (n + 1) * size),)]
