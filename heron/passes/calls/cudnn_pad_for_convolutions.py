"""cudnn-pad-for-convolutions: features in numbers that tensor cores take whole."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.calls import convolution
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import BF16, F16, S8, ElementType
from heron.passes.calls.conv_rewriter import conv_call
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, scalar
from heron.passes.rewriting.expander import home
from heron.records import dataclass

#: what numbers of features must be multiples of; 16-bit floats are done in others too, but not on tensor cores
_MULTIPLES: dict[ElementType, int] = {BF16: 8, F16: 8, S8: 4}
#: how many times the bytes floats may take with the padding
_MOST = 1.35


@register
@dataclass(frozen=True)
class CudnnPadForConvolutions(Pass):
    """Pads features of cuDNN's convolutions with zeros to multiples of 4 (s8) or 8 (16-bit floats).

    s8 in other numbers is nothing cuDNN does. Floats are padded where arrays grow by a third at most; few features, as
    the three of a picture, stay. Results are cut to what they were.

    c = (bf16[8,14,14,30], u8[0]) custom-call(bf16[8,16,16,60] x, bf16[30,3,3,60] w), window={size=3x3},
      dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convForward"
    ROOT r = bf16[8,14,14,30] get-tuple-element(c), index=0
    ->
    ...
    xs = bf16[8,16,16,64] pad(x, zero), padding=0_0x0_0x0_0x0_4
    zero.1 = bf16[] constant(0)
    ws = bf16[32,3,3,64] pad(w, zero.1), padding=0_2x0_0x0_0x0_4
    ...
    s = bf16[8,14,14,30] slice(v), slice={[0:8], [0:14], [0:14], [0:30]}
    u = u8[0] get-tuple-element(d), index=1
    c = (bf16[8,14,14,30], u8[0]) tuple(s, u)
    ROOT r = bf16[8,14,14,30] get-tuple-element(c), index=0
    """

    name = "cudnn-pad-for-convolutions"
    constraints = (
        Constraint("conv-rewriter", "cudnn-pad-for-convolutions", "it pads the calls made there"),
        Constraint("cudnn-fused-conv-rewriter", "cudnn-pad-for-convolutions", "what follows a call is cut behind it"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            for i in [i for i in c.instructions if convolution.is_call(i)]:
                multiple = _MULTIPLES.get(i.operands[0].shape.element_type)
                if multiple is None or i.feature_group_count > 1 or convolution.in_groups(i):
                    continue
                wanted = _wanted(i, multiple)
                if wanted == [x.dims for x in _arrays(i)] or not _is_worth_it(i, wanted, multiple, ctx):
                    continue
                c.replace(i, _padded(i, wanted))
                changed = True
        return changed


def _arrays(i: Instruction) -> list[Shape]:
    """The shapes of the operands, then of the result's array."""
    return [*(o.shape for o in i.operands), (i.shape.tuple_shapes or (i.shape,))[0]]


def _wanted(i: Instruction, multiple: int) -> list[tuple[int, ...]]:
    """The sizes of these arrays with features in multiples."""
    return [_grown(x.dims, at, multiple) for x, at in zip(_arrays(i), _features(i), strict=True)]


def _features(i: Instruction) -> list[tuple[int, ...]]:
    """For each of these arrays the dimensions that are features."""
    d = i.dim_labels
    inputs, kernel, output = (d.input_feature,), (d.kernel_input, d.kernel_output), (d.output_feature,)
    match i.custom_call_target:
        case convolution.BACKWARD_INPUT:
            return [output, kernel, inputs]
        case convolution.BACKWARD_FILTER:
            return [inputs, output, kernel]
    bias_and_side = [(0,), output][: len(i.operands) - 2]
    return [inputs, kernel, *bias_and_side, output]


def _grown(dims: Sequence[int], at: Sequence[int], multiple: int) -> tuple[int, ...]:
    return tuple([-(-n // multiple) * multiple if d in at else n for d, n in enumerate(dims)])


def _is_worth_it(i: Instruction, wanted: list[tuple[int, ...]], multiple: int, ctx: PassContext) -> bool:
    arrays = _arrays(i)
    if arrays[0].element_type is S8:
        return ctx.decide(True, f"s8 is done in multiples of {multiple} only", subject=i.name, object="cudnn").ok
    before = sum(x.byte_size for x in arrays)
    after = sum(x.with_dims(dims).byte_size for x, dims in zip(arrays, wanted, strict=True))
    ok = after <= _MOST * before
    why = f"features in multiples of {multiple}: {after / before:.2f} times the bytes, {_MOST} at most"
    return ctx.decide(ok, why, subject=i.name, object="cudnn").ok


def _padded(i: Instruction, wanted: list[tuple[int, ...]]) -> Instruction:
    """The results of the call on padded operands, its array cut."""
    c, result = home(i), _arrays(i)[-1]
    operands = [_filled(x, dims) for x, dims in zip(i.operands, wanted, strict=False)]
    whole = array(result.element_type, wanted[-1])
    made = conv_call(
        i, i.custom_call_target, operands, whole, i.window, i.dim_labels, i.feature_group_count, convolution.read(i)
    )
    value = c.add("get-tuple-element", [made], whole, like=i, index=0)
    cut = c.add("slice", [value], result, like=i, slice=tuple([(0, n, 1) for n in result.dims]))
    if not i.shape.tuple_shapes:
        return cut
    rest = [c.add("get-tuple-element", [made], s, like=i, index=n) for n, s in enumerate(i.shape.tuple_shapes) if n]
    return c.add("tuple", [cut, *rest], shapes.tuple_([result, *(r.shape for r in rest)]), like=i)


def _filled(x: Instruction, dims: tuple[int, ...]) -> Instruction:
    """`x` with zeros behind, in these sizes."""
    if dims == x.shape.dims:
        return x
    c, t = home(x), x.shape.element_type
    padding = tuple([(0, new - old, 0) for new, old in zip(dims, x.shape.dims, strict=True)])
    return c.add("pad", [x, scalar(c, t, 0)], array(t, dims), like=x, padding=padding)
