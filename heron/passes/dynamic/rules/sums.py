"""Reductions and products: what does not count is what changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo import facts
from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.window import WindowDim
from heron.passes.dynamic.model.padded import Padded, refused, remade
from heron.passes.dynamic.rules.counting import counting
from heron.passes.dynamic.rules.table import rule


@rule("reduce")
def _reduce(i: Instruction, operands: list[Padded]) -> Instruction:
    return reduced(i, operands, i.dimensions)


@rule("reduce-window")
def _reduce_window(i: Instruction, operands: list[Padded]) -> Instruction:
    return reduced(i, operands, [d for d, w in enumerate(i.window) if w != WindowDim(1)])


def reduced(i: Instruction, operands: list[Padded], dims: Sequence[int]) -> Instruction:
    """The combiner's identity where nothing counts; of other combiners, one that knows what counts."""
    count = len(operands) // 2
    sizes = {d: next((a.size(d) for a in operands[:count] if a.size(d)), None) for d in dims}
    arrays, inits = [a.also(sizes) for a in operands[:count]], [o.x for o in operands[count:]]
    if not arrays[0].dynamic_of(dims):
        return remade(i, [*(a.x for a in arrays), *inits])
    opcode = combiner(i.to_apply)
    identity = facts.identity(opcode, arrays[0].x.shape.element_type) if count == 1 and opcode else None
    if identity is None:
        return counting(i, arrays, inits, dims)
    return remade(i, [arrays[0].masked(dims, identity), *inits])


@rule("dot")
def _dot(i: Instruction, operands: list[Padded]) -> Instruction:
    """Zeros on both sides: a zero times what stands in the padding may be NaN."""
    x, y = operands
    left = _zeroed(x, y, i.lhs_contracting_dims, i.rhs_contracting_dims)
    right = _zeroed(y, x, i.rhs_contracting_dims, i.lhs_contracting_dims)
    return remade(i, [left, right])


def _zeroed(x: Padded, other: Padded, dims: Sequence[int], others: Sequence[int]) -> Instruction:
    """`x` with zeros where it or the other operand ends."""
    return x.also({d: other.size(o) for d, o in zip(dims, others, strict=True)}).masked(dims, 0)


@rule("convolution")
def _convolution(i: Instruction, operands: list[Padded]) -> Instruction:
    x, k = operands
    dims = i.dim_labels
    if k.dynamic_of(dims.kernel_spatial):
        raise refused(i, "the size of the window is part of the op")
    groups = i.feature_group_count > 1 or i.batch_group_count > 1
    if groups and (
        x.dynamic_of([dims.input_feature, dims.input_batch]) or k.dynamic_of([dims.kernel_input, dims.kernel_output])
    ):
        raise refused(i, "the sizes of its groups are dynamic")
    feature, kernel = (dims.input_feature,), (dims.kernel_input,)
    left = x.also({feature[0]: k.size(kernel[0])}).masked((*dims.input_spatial, *feature), 0)
    return remade(i, [left, _zeroed(k, x, kernel, feature)])
