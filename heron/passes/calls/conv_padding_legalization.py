"""conv-padding-legalization: cuDNN pads both ends alike."""

from __future__ import annotations

from dataclasses import replace

from heron.hlo.calls import convolution
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.window import Window
from heron.passes.calls.conv_rewriter import conv_call
from heron.passes.framework.base import Constraint
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, scalar
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ConvPaddingLegalization(Expander):
    """Takes what windows of cuDNN's calls pad more at one end, or less than nothing, out into a pad.

    The derivative by the input is computed for the padded input and cut.

    c = (f32[8,14,14,16], u8[0]) custom-call(f32[8,28,28,4] x, f32[16,3,3,4] w), window={size=3x3 stride=2x2 pad=0_1x0_1},
      dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convForward"
    ROOT r = f32[8,14,14,16] get-tuple-element(c), index=0
    ->
    ...
    p = f32[8,29,29,4] pad(x, zero), padding=0_0x0_1x0_1x0_0
    ROOT r = f32[8,14,14,16] get-tuple-element(c), index=0
    """  # noqa: E501

    name = "conv-padding-legalization"
    opcodes = frozenset({"custom-call"})
    constraints = (Constraint("conv-rewriter", "conv-padding-legalization", "it mends the calls made there"),)

    def matches(self, i: Instruction) -> bool:
        return i.custom_call_target in convolution.TARGETS and any(
            d.pad_low != d.pad_high or d.pad_low < 0 for d in i.window
        )

    def expand(self, i: Instruction) -> Instruction:
        dims, config = i.dim_labels, convolution.read(i)
        kept = [max(0, min(d.pad_low, d.pad_high)) for d in i.window]
        window = tuple(replace(d, pad_low=n, pad_high=n) for d, n in zip(i.window, kept, strict=True))
        padding = {
            at: (d.pad_low - n, d.pad_high - n) for at, d, n in zip(dims.input_spatial, i.window, kept, strict=True)
        }
        groups, result = i.feature_group_count, (i.shape.tuple_shapes or (i.shape,))[0]
        if i.custom_call_target == convolution.BACKWARD_INPUT:
            return _cut(i, window, padding, result)
        operands = [_padded(i.operands[0], padding), *i.operands[1:]]
        return conv_call(i, i.custom_call_target, operands, result, window, dims, groups, config)


def _padded(x: Instruction, padding: dict[int, tuple[int, int]]) -> Instruction:
    """`x` with zeros added at the ends of some dimensions, or elements cut off there."""
    c, t = home(x), x.shape.element_type
    pads = tuple([(*padding.get(d, (0, 0)), 0) for d in range(x.shape.rank)])
    sizes = [n + low + high for n, (low, high, _) in zip(x.shape.dims, pads, strict=True)]
    return c.add("pad", [x, scalar(c, t, 0)], array(t, sizes), like=x, padding=pads)


def _cut(i: Instruction, window: Window, padding: dict[int, tuple[int, int]], result: Shape) -> Instruction:
    """The derivative by a padded input without the padding, as the results of the call."""
    c = home(i)
    sizes = [n + sum(padding.get(d, (0, 0))) for d, n in enumerate(result.dims)]
    whole = array(result.element_type, sizes)
    groups = i.feature_group_count
    made = conv_call(i, i.custom_call_target, i.operands, whole, window, i.dim_labels, groups, convolution.read(i))
    value = c.add("get-tuple-element", [made], whole, like=i, index=0)
    back = {d: (-low, -high) for d, (low, high) in padding.items()}
    parts = [_padded(value, back)]
    for n, s in enumerate(i.shape.tuple_shapes or ()):
        if n:
            parts.append(c.add("get-tuple-element", [made], s, like=i, index=n))
    return c.add("tuple", parts, shapes.tuple_([p.shape for p in parts]), like=i)
