"""convolution-canonicalization: convolutions in orders of dimensions that are matrix products in memory."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.window import ConvDims
from heron.passes.framework.base import Constraint
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, transpose
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ConvolutionCanonicalization(Expander):
    """Transposes arrays with space innermost: input and result to batch, space, features; kernels to space, features.

    The CPU's convolutions multiply strided parts of the arrays. They need input features or the batch innermost in the
    input and output features in the kernel and the result, or they become loops that take sixty times as long. Arrays
    that have them innermost stay as they are.

    ROOT r = f32[2,5,4] convolution(f32[2,3,6] x, f32[5,3,3] k), window={size=3}, dim_labels=bf0_oi0->bf0
    ->
    y = f32[2,6,3] transpose(x), dimensions={0,2,1}
    l = f32[3,3,5] transpose(k), dimensions={2,1,0}
    c = f32[2,4,5] convolution(y, l), window={size=3}, dim_labels=b0f_0io->b0f
    ROOT r = f32[2,5,4] transpose(c), dimensions={0,2,1}
    """

    name = "convolution-canonicalization"
    opcodes = frozenset({"convolution"})
    constraints = (
        Constraint("convolution-canonicalization", "layout-assignment", "it goes by the order of dimensions"),
        Constraint("transpose-folding", "convolution-canonicalization", "it would fold transposes back", all_runs=True),
    )

    def matches(self, i: Instruction) -> bool:
        return i.shape.rank > 2 and not all(_is_usable(i.dim_labels, i.shape.rank - 1))

    def expand(self, i: Instruction) -> Instruction:
        c, (x, k), dims = home(i), i.operands, i.dim_labels
        last, space = i.shape.rank - 1, tuple(range(1, i.shape.rank - 1))
        input_stays, kernel_stays, result_stays = _is_usable(dims, last)
        labels = [getattr(dims, name) for name in ConvDims.__slots__]
        if not input_stays:
            x = transpose(x, (dims.input_batch, *dims.input_spatial, dims.input_feature))
            labels[:3] = 0, last, space
        if not kernel_stays:
            k = transpose(k, (*dims.kernel_spatial, dims.kernel_input, dims.kernel_output))
            labels[3:6] = last - 1, last, tuple(range(last - 1))
        order: Sequence[int] = range(last + 1)
        if not result_stays:
            order = (dims.output_batch, *dims.output_spatial, dims.output_feature)
            labels[6:] = 0, last, space
        shape = array(i.shape.element_type, [i.shape.dims[d] for d in order])
        attrs = {**i.attrs, "dim_labels": ConvDims(*labels)}
        found = c.add("convolution", [x, k], shape, like=i, **attrs)
        return transpose(found, [order.index(d) for d in range(last + 1)])


def _is_usable(dims: ConvDims, last: int) -> tuple[bool, bool, bool]:
    """Whether input, kernel and result have that innermost which the products go along."""
    return (
        last in (dims.input_feature, dims.input_batch),
        last == dims.kernel_output,
        last == dims.output_feature,
    )
