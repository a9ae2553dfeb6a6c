"""convolution-padding-expander: inputs of convolutions with long windows are padded first."""

from __future__ import annotations

from dataclasses import replace

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32, F64
from heron.hlo.ir.window import WindowDim
from heron.passes.framework.base import Constraint
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, scalar
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ConvolutionPaddingExpander(Expander):
    """Pads the input of a convolution along windows of at least ``long`` elements for each input feature.

    Such a window has ``shortest`` elements or more, and so many results along it.

    The CPU sums along such a window in one loop where all of it lies in the input, for many results together. Elsewhere
    each element of the window is a step with addresses of its own: as many as results times elements.

    ROOT r = f32[1,40,5] convolution(f32[1,40,1] x, f32[17,1,5] k), window={size=17 pad=8_8},
      dim_labels=b0f_0io->b0f
    ->
    zero = f32[] constant(0)
    p = f32[1,56,1] pad(x, zero), padding=0_0x8_8x0_0
    ROOT r = f32[1,40,5] convolution(p, k), window={size=17}, dim_labels=b0f_0io->b0f
    """

    name = "convolution-padding-expander"
    opcodes = frozenset({"convolution"})
    constraints = (
        Constraint("algebraic-simplifier", "convolution-padding-expander", "it would put padding back into the window"),
    )
    long: int = 8
    shortest: int = 16

    def matches(self, i: Instruction) -> bool:
        if i.shape.element_type not in (F32, F64) or any(
            o.shape.element_type != i.shape.element_type for o in i.operands
        ):
            return False
        if i.attrs.get("feature_group_count", 1) != 1 or i.attrs.get("batch_group_count", 1) != 1:
            return False
        return any(self._is_padded(i, n, w) for n, w in enumerate(i.window))

    def _is_padded(self, i: Instruction, n: int, w: WindowDim) -> bool:
        """Whether spatial dimension `n` is to be padded: not where a weight gradient has few results along it."""
        features = i.operands[1].shape.dims[i.dim_labels.kernel_input]
        is_long = w.size >= max(self.shortest, self.long * features)
        results = i.shape.dims[i.dim_labels.output_spatial[n]]
        return is_long and results >= self.shortest and w.base_dilation == 1 and (w.pad_low > 0 or w.pad_high > 0)

    def expand(self, i: Instruction) -> Instruction:
        c, (x, k) = home(i), i.operands
        edges, window = [(0, 0, 0)] * x.shape.rank, list(i.window)
        for n, (w, d) in enumerate(zip(i.window, i.dim_labels.input_spatial, strict=True)):
            if self._is_padded(i, n, w):
                edges[d] = max(w.pad_low, 0), max(w.pad_high, 0), 0
                window[n] = replace(w, pad_low=min(w.pad_low, 0), pad_high=min(w.pad_high, 0))
        t = x.shape.element_type
        dims = [n + low + high for n, (low, high, _) in zip(x.shape.dims, edges, strict=True)]
        x = c.add("pad", [x, scalar(c, t, 0)], array(t, dims), padding=tuple(edges))
        return c.add("convolution", [x, k], i.shape, like=i, **{**i.attrs, "window": tuple(window)})
