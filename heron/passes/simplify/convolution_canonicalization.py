"""convolution-canonicalization: convolutions in the order of dimensions that the CPU library wants."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.instruction import Instruction
from heron.hlo.window import ConvDims
from heron.passes.building import array, transpose
from heron.passes.expand.expander import Expander
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class ConvolutionCanonicalization(Expander):
    """Transposes operands and results of convolutions to batch, space, features; the kernel to space, input, output.

    ROOT r = f32[2,5,4] convolution(f32[2,3,6] x, f32[5,3,3] k), window={size=3}, dim_labels=bf0_oi0->bf0
    ->
    y = f32[2,6,3] transpose(x), dimensions={0,2,1}
    l = f32[3,3,5] transpose(k), dimensions={2,1,0}
    c = f32[2,4,5] convolution(y, l), window={size=3}, dim_labels=b0f_0io->b0f
    ROOT r = f32[2,5,4] transpose(c), dimensions={0,2,1}
    """

    name = "convolution-canonicalization"
    opcodes = frozenset({"convolution"})

    def matches(self, i: Instruction) -> bool:
        return i.dim_labels != _wanted(i.shape.rank)

    def expand(self, i: Instruction) -> Instruction:
        c, dims = i.parent, i.dim_labels
        assert c is not None
        x = transpose(i.operands[0], (dims.input_batch, *dims.input_spatial, dims.input_feature))
        k = transpose(i.operands[1], (*dims.kernel_spatial, dims.kernel_input, dims.kernel_output))
        order = (dims.output_batch, *dims.output_spatial, dims.output_feature)
        shape = array(i.shape.element_type, [i.shape.dims[d] for d in order])
        attrs = {**i.attrs, "dim_labels": _wanted(i.shape.rank)}
        found = c.add("convolution", [x, k], shape, like=i, **attrs)
        return transpose(found, [order.index(d) for d in range(i.shape.rank)])


def _wanted(rank: int) -> ConvDims:
    space, last = tuple(range(1, rank - 1)), rank - 1
    return ConvDims(0, last, space, rank - 2, last, tuple(range(rank - 2)), 0, last, space)
