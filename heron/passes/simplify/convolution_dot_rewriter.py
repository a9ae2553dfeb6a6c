"""convolution-dot-rewriter: convolutions with windows of one element, or without space, are matrix products."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.framework.base import Constraint
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import reshape
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ConvolutionDotRewriter(Expander):
    """Writes a convolution as a dot over the features, where the window has one element and moves by one.

    Features stand last, or first, in the input and in the result, so that no array has to be turned round.

    ROOT r = f32[2,4,5] convolution(f32[2,4,3] x, f32[1,3,5] k), window={size=1}, dim_labels=b0f_0io->b0f
    ->
    m = f32[3,5] reshape(k)
    ROOT r = f32[2,4,5] dot(x, m), lhs_contracting_dims={2}, rhs_contracting_dims={0}
    """

    name = "convolution-dot-rewriter"
    opcodes = frozenset({"convolution"})
    constraints = (
        Constraint("convolution-dot-rewriter", "dot-decomposer", "it makes dots with several free dimensions"),
        Constraint("convolution-dot-rewriter", "convolution-canonicalization", "it would only move dimensions"),
    )

    def matches(self, i: Instruction) -> bool:
        if i.feature_group_count != 1 or i.batch_group_count != 1 or i.shape.num_elements == 0:
            return False
        if any((w.size, w.stride, w.pad_low, w.pad_high, w.base_dilation) != (1, 1, 0, 0, 1) for w in i.window):
            return False
        dims, last = i.dim_labels, i.shape.rank - 1
        if (dims.input_batch, *dims.input_spatial) != (dims.output_batch, *dims.output_spatial):
            return False
        return dims.input_feature == dims.output_feature and dims.input_feature in (0, last)

    def expand(self, i: Instruction) -> Instruction:
        dims, (x, k) = i.dim_labels, i.operands
        m = reshape(k, [k.shape.dims[d] for d in sorted((dims.kernel_input, dims.kernel_output))])
        precision = i.attrs.get("operand_precision")
        sides = [(x, dims.input_feature), (m, int(dims.kernel_input > dims.kernel_output))]
        if dims.output_feature == 0:
            sides.reverse()
            precision = precision and precision[::-1]
        (left, summed_left), (right, summed_right) = sides
        attrs = {"operand_precision": precision} if precision else {}
        summed = {"lhs_contracting_dims": (summed_left,), "rhs_contracting_dims": (summed_right,)}
        return home(i).add("dot", [left, right], i.shape, like=i, **summed, **attrs)
