"""convolution-4d-expander: convolutions of many dimensions, some of them trivial, as ones of fewer."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.window import ConvDims
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import reshape
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class Convolution4dExpander(Expander):
    """Drops spatial dimensions of size 1 with a window of 1 from convolutions that have more than three.

    For libraries, which have convolutions of up to three spatial dimensions. No pipeline has it: heron's own, as matrix
    products or kernels, take any number and leave trivial ones out themselves.

    ROOT r = f32[1,1,6,6,6,5] convolution(f32[1,1,8,8,8,2] x, f32[1,3,3,3,2,5] k),
      window={size=1x3x3x3}, dim_labels=b0123f_0123io->b0123f
    ->
    a = f32[1,8,8,8,2] reshape(x)
    b = f32[3,3,3,2,5] reshape(k)
    c = f32[1,6,6,6,5] convolution(a, b), window={size=3x3x3}, dim_labels=b012f_012io->b012f
    ROOT r = f32[1,1,6,6,6,5] reshape(c)
    """

    name = "convolution-4d-expander"
    opcodes = frozenset({"convolution"})

    def matches(self, i: Instruction) -> bool:
        return len(i.window) > 3 and bool(_trivial(i))

    def expand(self, i: Instruction) -> Instruction:
        dims: ConvDims = i.dim_labels
        gone = _trivial(i)
        window = tuple(w for d, w in enumerate(i.window) if d not in gone)
        sides = (dims.input_spatial, dims.kernel_spatial, dims.output_spatial)
        x, k, result = ([spatial[d] for d in gone] for spatial in sides)
        input_batch, input_feature = _renumbered((dims.input_batch, dims.input_feature), x)
        kernel_input, kernel_output = _renumbered((dims.kernel_input, dims.kernel_output), k)
        output_batch, output_feature = _renumbered((dims.output_batch, dims.output_feature), result)
        labels = ConvDims(
            input_batch,
            input_feature,
            _kept(dims.input_spatial, gone, x),
            kernel_input,
            kernel_output,
            _kept(dims.kernel_spatial, gone, k),
            output_batch,
            output_feature,
            _kept(dims.output_spatial, gone, result),
        )
        operands = [reshape(o, _without(o.shape.dims, d)) for o, d in zip(i.operands, (x, k), strict=True)]
        shape = i.shape.with_dims(_without(i.shape.dims, result))
        return reshape(home(i).attach(i.clone(operands, shape, window=window, dim_labels=labels)), i.shape.dims)


def _trivial(i: Instruction) -> list[int]:
    """Spatial dimensions in which one window covers the one element."""
    found: list[int] = []
    for d, w in enumerate(i.window):
        sizes = (i.operands[0].shape.dims[i.dim_labels.input_spatial[d]], w.size)
        if sizes == (1, 1) and i.shape.dims[i.dim_labels.output_spatial[d]] == 1 and w.pad_low == w.pad_high == 0:
            found.append(d)
    return found


def _renumbered(dims: Sequence[int], gone: Sequence[int]) -> list[int]:
    return [d - sum(g < d for g in gone) for d in dims]


def _kept(spatial: Sequence[int], gone: Sequence[int], removed: Sequence[int]) -> tuple[int, ...]:
    return tuple(_renumbered([s for d, s in enumerate(spatial) if d not in gone], removed))


def _without(dims: Sequence[int], gone: Sequence[int]) -> tuple[int, ...]:
    return tuple(n for d, n in enumerate(dims) if d not in gone)
