"""convolution-strength-reduction: small windows over images of one channel are kernels, not library calls."""

from __future__ import annotations

from itertools import product
from math import prod

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32, F64, ElementType
from heron.passes.framework.base import Constraint
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, convert, reshape, scalar, transpose
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ConvolutionStrengthReduction(Expander):
    """Writes a convolution from one feature to one as a sum of the image's parts, each times an element of the kernel.

    The CPU's convolutions go along features in vectors, of which there is one element here; a kernel goes along the
    image, and has what comes before and after in it. The window has at most ``most`` elements. Products of small floats
    are made and summed in f32, as by convolutions; HLO leaves the order of the sum open.

    ROOT r = f32[1,5,1] convolution(f32[1,6,1] x, f32[2,1,1] k), window={size=2}, dim_labels=b0f_0io->b0f
    ->
    y = f32[1,6] reshape(x)
    l = f32[2] reshape(k)
    y0 = f32[1,5] slice(y), slice={[0:1], [0:5]}
    l0 = f32[1] slice(l), slice={[0:1]}
    s0 = f32[] reshape(l0)
    b0 = f32[1,5] broadcast(s0), dimensions={}
    p0 = f32[1,5] multiply(y0, b0)
    y1 = f32[1,5] slice(y), slice={[0:1], [1:6]}
    l1 = f32[1] slice(l), slice={[1:2]}
    s1 = f32[] reshape(l1)
    b1 = f32[1,5] broadcast(s1), dimensions={}
    p1 = f32[1,5] multiply(y1, b1)
    t = f32[1,5] add(p0, p1)
    ROOT r = f32[1,5,1] reshape(t)
    """

    name = "convolution-strength-reduction"
    opcodes = frozenset({"convolution"})
    constraints = (
        Constraint("convolution-strength-reduction", "convolution-canonicalization", "it would only move dimensions"),
    )
    most: int = 64

    def matches(self, i: Instruction) -> bool:
        dims, (x, k) = i.dim_labels, i.operands
        features = x.shape.dims[dims.input_feature], *(k.shape.dims[d] for d in (dims.kernel_input, dims.kernel_output))
        groups = i.attrs.get("feature_group_count", 1), i.attrs.get("batch_group_count", 1)
        if {*features, *groups} != {1} or not i.shape.num_elements or _summed_in(i) is None:
            return False
        return 0 < prod(w.size for w in i.window) <= self.most and all(w.base_dilation == 1 for w in i.window)

    def expand(self, i: Instruction) -> Instruction:
        c, dims, window = home(i), i.dim_labels, i.window
        t = _summed_in(i)
        assert t is not None
        x, k = (convert(o, t) for o in i.operands)
        x = transpose(x, (dims.input_batch, *dims.input_spatial, dims.input_feature))
        x = reshape(x, x.shape.dims[:-1])
        k = transpose(k, (*dims.kernel_spatial, dims.kernel_input, dims.kernel_output))
        k = reshape(k, k.shape.dims[:-2])
        if any(w.pad_low or w.pad_high for w in window):
            edges = ((0, 0, 0), *((w.pad_low, w.pad_high, 0) for w in window))
            dims_padded = [n + low + high for n, (low, high, _) in zip(x.shape.dims, edges, strict=True)]
            x = c.add("pad", [x, scalar(c, t, 0)], array(t, dims_padded), like=i, padding=edges)
        batch, *sizes = (i.shape.dims[d] for d in (dims.output_batch, *dims.output_spatial))
        part = array(t, [batch, *sizes])
        total: Instruction | None = None
        for place in product(*(range(w.size) for w in window)):
            starts = [n * w.window_dilation for n, w in zip(place, window, strict=True)]
            cut = [(s, s + (n - 1) * w.stride + 1, w.stride) for s, n, w in zip(starts, sizes, window, strict=True)]
            one = c.add("slice", [x], part, like=i, slice=((0, batch, 1), *cut))
            at = [w.size - 1 - n if w.reversal else n for n, w in zip(place, window, strict=True)]
            element = c.add("slice", [k], array(t, [1] * len(at)), like=i, slice=tuple((n, n + 1, 1) for n in at))
            spread = c.add("broadcast", [reshape(element, ())], part, like=i, dimensions=())
            total = one * spread if total is None else total + one * spread
        assert total is not None
        order = (dims.output_batch, *dims.output_spatial, dims.output_feature)
        back = [order.index(d) for d in range(len(order))]
        return convert(transpose(reshape(total, [batch, *sizes, 1]), back), i.shape.element_type)


def _summed_in(i: Instruction) -> ElementType | None:
    """A type that products and sums are no worse in than the convolution's; None for types of several kinds."""
    types = {x.shape.element_type for x in (i, *i.operands)}
    if len(types) == 1 and not i.shape.element_type.is_complex:
        (t,) = types
        return F32 if t.is_float and t.bits < 32 else t
    return max((F32, *types), key=lambda t: t.bits) if all(t.is_float and t.bits <= F64.bits for t in types) else None
