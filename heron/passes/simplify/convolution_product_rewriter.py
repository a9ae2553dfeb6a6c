"""convolution-product-rewriter: convolutions from many features to few are one product and a sum of its parts."""

from __future__ import annotations

from itertools import product
from math import prod

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32, F64
from heron.passes.framework.base import Constraint
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape, scalar, transpose
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ConvolutionProductRewriter(Expander):
    """Multiplies every pixel with all elements of the window at once, and sums the results that belong together.

    The CPU's convolutions go along output features in vectors, which fewer than ``few`` leave nearly empty: the last
    layer of a network for images, and the gradient of the first one. The product has a row for each element of the
    window and output feature; it is made only if those are no more than the input features, so that it takes no more
    memory than the input.

    ROOT r = f32[1,5,1] convolution(f32[1,6,16] x, f32[2,16,1] k), window={size=2}, dim_labels=b0f_0io->b0f
    ->
    y = f32[2,1,16] transpose(k), dimensions={0,2,1}
    l = f32[2,16] reshape(y)
    p = f32[2,1,6] dot(l, x), lhs_contracting_dims={1}, rhs_contracting_dims={2}
    s0 = f32[1,1,5] slice(p), slice={[0:1], [0:1], [0:5]}
    s1 = f32[1,1,5] slice(p), slice={[1:2], [0:1], [1:6]}
    t = f32[1,1,5] add(s0, s1)
    ROOT r = f32[1,5,1] transpose(t), dimensions={1,2,0}
    """

    name = "convolution-product-rewriter"
    opcodes = frozenset({"convolution"})
    constraints = (
        Constraint("convolution-product-rewriter", "convolution-canonicalization", "it would only move dimensions"),
        Constraint("convolution-strength-reduction", "convolution-product-rewriter", "one feature needs no product"),
    )
    few: int = 8

    def matches(self, i: Instruction) -> bool:
        dims, (x, k) = i.dim_labels, i.operands
        if {o.shape.element_type for o in (i, x, k)} not in ({F32}, {F64}):
            return False
        if i.attrs.get("feature_group_count", 1) != 1 or i.attrs.get("batch_group_count", 1) != 1:
            return False
        features, out = (k.shape.dims[d] for d in (dims.kernel_input, dims.kernel_output))
        window = prod(w.size for w in i.window)
        if not 0 < out < self.few or not window or window * out > features or not i.shape.num_elements:
            return False
        return all(w.base_dilation == 1 and w.stride == 1 for w in i.window)

    def expand(self, i: Instruction) -> Instruction:
        c, dims, window, (x, k) = home(i), i.dim_labels, i.window, i.operands
        t = i.shape.element_type
        x = transpose(x, (dims.input_batch, *dims.input_spatial, dims.input_feature))
        k = transpose(k, (*dims.kernel_spatial, dims.kernel_output, dims.kernel_input))
        *_, out, features = k.shape.dims
        k = reshape(k, (k.shape.num_elements // features, features))
        last = x.shape.rank - 1
        y = c.add("dot", [k, x], like=i, lhs_contracting_dims=(1,), rhs_contracting_dims=(last,))
        if any(w.pad_low or w.pad_high for w in window):
            edges = ((0, 0, 0), (0, 0, 0), *((w.pad_low, w.pad_high, 0) for w in window))
            padded = [n + low + high for n, (low, high, _) in zip(y.shape.dims, edges, strict=True)]
            y = c.add("pad", [y, scalar(c, t, 0)], array(t, padded), like=i, padding=edges)
        batch, *sizes = (i.shape.dims[d] for d in (dims.output_batch, *dims.output_spatial))
        part = array(t, [out, batch, *sizes])
        total: Instruction | None = None
        for number, place in enumerate(product(*(range(w.size) for w in window))):
            at = [w.size - 1 - n if w.reversal else n for n, w in zip(place, window, strict=True)]
            starts = [n * w.window_dilation for n, w in zip(at, window, strict=True)]
            cut = [(s, s + n, 1) for s, n in zip(starts, sizes, strict=True)]
            rows = (number * out, (number + 1) * out, 1)
            one = c.add("slice", [y], part, like=i, slice=(rows, (0, batch, 1), *cut))
            total = one if total is None else total + one
        assert total is not None
        order = (dims.output_feature, dims.output_batch, *dims.output_spatial)
        return transpose(total, [order.index(d) for d in range(len(order))])
