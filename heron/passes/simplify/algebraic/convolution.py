"""Convolutions: of nothing, of what was padded, and those that are products."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from heron.analysis.values.splat import is_splat
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.window import ConvDims, WindowDim
from heron.passes.rewriting.building import applied
from heron.passes.rewriting.rules import Builder, rule


@rule("convolution")
def convolution_of_nothing(i: Instruction, b: Builder) -> Instruction | None:
    """convolution(x, k) of no elements == 0

    ROOT r = f32[1,4,2] convolution(f32[1,4,0] x, f32[3,0,2] k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f
    ->
    zero = f32[] constant(0)
    ROOT r = f32[1,4,2] broadcast(zero), dimensions={}
    """
    return b.splat(i.shape, 0) if any(o.shape.num_elements == 0 for o in i.operands) else None


@rule("convolution", operand="pad")
def padding_of_input(i: Instruction, b: Builder) -> Instruction | None:
    """convolution(pad(x, 0), k) == convolution(x, k) with a padded window

    zero = f32[] constant(0)
    p = f32[1,6,2] pad(f32[1,4,2] x, zero), padding=0_0x1_1x0_0
    ROOT r = f32[1,4,5] convolution(p, f32[3,2,5] k), window={size=3}, dim_labels=b0f_0io->b0f
    ->
    ROOT r = f32[1,4,5] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f
    """
    match i.operands:
        case [Instruction(opcode="pad", operands=[x, zero], attrs={"padding": padding}), k] if is_splat(zero, 0):
            dims = i.dim_labels
            if padding[dims.input_batch] != (0, 0, 0) or padding[dims.input_feature] != (0, 0, 0):
                return None
            window = []
            for w, d in zip(i.window, dims.input_spatial, strict=True):
                low, high, within = padding[d]
                if within and (w.pad_low or w.pad_high or w.base_dilation != 1):
                    return None
                if (low or high or within) and w.base_dilation != 1:
                    return None
                moved = replace(w, pad_low=w.pad_low + low, pad_high=w.pad_high + high)
                window.append(replace(moved, base_dilation=within + 1) if within else moved)
            return b.add("convolution", [x, k], i.shape, **{**i.attrs, "window": tuple(window)})
    return None


@rule("convolution", operand="pad", math="finite-only")
def padding_of_kernel(i: Instruction, b: Builder) -> Instruction | None:
    """convolution(x, k with zeros between) == convolution(x, k) with a dilated window, for finite x

    XLA does it by default.

    zero = f32[] constant(0)
    p = f32[3,2,5] pad(f32[2,2,5] k, zero), padding=0_0_1x0_0x0_0
    ROOT r = f32[1,4,5] convolution(f32[1,6,2] x, p), window={size=3}, dim_labels=b0f_0io->b0f
    ->
    ROOT r = f32[1,4,5] convolution(x, k), window={size=2 rhs_dilate=2}, dim_labels=b0f_0io->b0f
    """
    match i.operands:
        case [x, Instruction(opcode="pad", operands=[k, zero], attrs={"padding": padding})] if is_splat(zero, 0):
            dims = i.dim_labels
            if padding[dims.kernel_input] != (0, 0, 0) or padding[dims.kernel_output] != (0, 0, 0):
                return None
            window = []
            for w, d in zip(i.window, dims.kernel_spatial, strict=True):
                low, high, within = padding[d]
                if low or high or (within and w.window_dilation != 1):
                    return None
                window.append(replace(w, size=k.shape.dims[d], window_dilation=within + 1) if within else w)
            return b.add("convolution", [x, k], i.shape, **{**i.attrs, "window": tuple(window)})
    return None


@rule("convolution", floats="finite-only")
def convolution_the_other_way_round(i: Instruction, b: Builder) -> Instruction | None:
    """convolution(x, k) == convolution(reverse(k), x) with x as a reversed window, where k's window is larger than x

    Of finite floats, for which it does not matter what the padding is multiplied by. XLA does it by default.

    ROOT r = f32[1,6,4] convolution(f32[1,2,3] x, f32[5,3,4] k), window={size=5 pad=4_4}, dim_labels=b0f_0io->b0f
    ->
    t = f32[5,3,4] reverse(k), dimensions={0}
    ROOT r = f32[1,6,4] convolution(t, x), window={size=2 pad=1_1 rhs_reversal=1}, dim_labels=0fb_o0i->f0b
    """
    x, k = i.operands
    if i.feature_group_count != 1 or i.batch_group_count != 1 or x.shape.element_type is not k.shape.element_type:
        return None
    dims = i.dim_labels
    sizes = [x.shape.dims[d] for d in dims.input_spatial]
    if prod(w.size for w in i.window) <= prod(sizes) or not i.shape.num_elements:
        return None
    window = []
    for w, size in zip(i.window, sizes, strict=True):
        longer = (size - 1) * w.base_dilation - (w.size - 1) * w.window_dilation
        swapped = replace(w, size=size, base_dilation=w.window_dilation, window_dilation=w.base_dilation, reversal=True)
        window.append(replace(swapped, pad_low=w.pad_low + longer, pad_high=w.pad_high + longer))
    turned = tuple([d for w, d in zip(i.window, dims.kernel_spatial, strict=True) if not w.reversal])
    if turned:
        k = b.add("reverse", [k], k.shape, dimensions=turned)
    labels = ConvDims(
        *(dims.kernel_output, dims.kernel_input, dims.kernel_spatial),
        *(dims.input_feature, dims.input_batch, dims.input_spatial),
        *(dims.output_feature, dims.output_batch, dims.output_spatial),
    )
    attrs = {**i.attrs, "window": tuple(window), "dim_labels": labels}
    if i.operand_precision:
        attrs["operand_precision"] = tuple(reversed(i.operand_precision))
    return b.add("convolution", [k, x], i.shape, **attrs)


def _is_plain(w: WindowDim) -> bool:
    unmoved = w.stride == 1 and not w.pad_low and not w.pad_high
    return unmoved and w.base_dilation == 1 and w.window_dilation == 1


@rule("convolution")
def convolution_to_product(i: Instruction, b: Builder) -> Instruction | None:
    """convolution(x, k) of each feature alone, with one window along each dimension or of one element == sum(x * k)

    ROOT r = f32[2,1,3] convolution(f32[2,4,3] x, f32[4,1,3] k), window={size=4}, dim_labels=b0f_0io->b0f,
      feature_group_count=3
    ->
    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    t = f32[1,4,3] transpose(k), dimensions={1,0,2}
    l = f32[4,3] reshape(t)
    ks = f32[2,4,3] broadcast(l), dimensions={1,2}
    m = f32[2,4,3] multiply(x, ks)
    zero = f32[] constant(0)
    s = f32[2,3] reduce(m, zero), dimensions={1}, to_apply=sum
    ROOT r = f32[2,1,3] reshape(s)
    """
    module = b.computation.module
    if module is None or not _is_feature_by_feature(i):
        return None
    windows = list(zip(i.window, i.dim_labels.output_spatial, strict=True))
    if any(w.size != 1 and i.shape.dims[d] != 1 for w, d in windows):
        return None
    left, factor = _factors(i, b)
    product, t = b.add("multiply", [left, factor], left.shape), i.shape.element_type
    gone = tuple([d for w, d in windows if w.size != 1])
    if not gone:
        return product
    kept = i.shape.with_dims(tuple([size for d, size in enumerate(left.shape.dims) if d not in gone]))
    total = b.add("reduce", [product, b.scalar(t, 0)], kept, dimensions=gone, to_apply=applied(module, "add", t))
    return b.reshape(total, i.shape.dims)


def _is_feature_by_feature(i: Instruction) -> bool:
    """Whether each output feature is made of one input feature, with plain windows, in one type of 32 bits or more."""
    (x, k), dims, t, groups = i.operands, i.dim_labels, i.shape.element_type, i.feature_group_count
    if len({x.shape.element_type, k.shape.element_type, t}) > 1 or t.bits < 32:
        return False
    if groups == 1 and i.shape.rank < 3 or i.batch_group_count != 1 or i.shape.num_elements == 0:
        return False
    features = x.shape.dims[dims.input_feature], i.shape.dims[dims.output_feature]
    if k.shape.dims[dims.kernel_input] != 1 or features != (groups, groups):
        return False
    return all(_is_plain(w) and not w.reversal for w in i.window)


def _factors(i: Instruction, b: Builder) -> tuple[Instruction, Instruction]:
    """Input and kernel with the result's order of dimensions, the kernel repeated along those it does not have."""
    (x, k), dims, rank = i.operands, i.dim_labels, i.shape.rank
    inputs, kernels = [0] * rank, [0] * rank
    inputs[dims.output_batch], inputs[dims.output_feature] = dims.input_batch, dims.input_feature
    kernels[dims.output_batch], kernels[dims.output_feature] = dims.kernel_input, dims.kernel_output
    for out, within, of in zip(dims.output_spatial, dims.input_spatial, dims.kernel_spatial, strict=True):
        inputs[out], kernels[out] = within, of
    left, right = b.transpose(x, inputs), b.transpose(k, kernels)
    spread = [d for d in range(rank) if right.shape.dims[d] == left.shape.dims[d] and d != dims.output_batch]
    return left, b.broadcast(b.reshape(right, [right.shape.dims[d] for d in spread]), left.shape.dims, spread)
