"""cudnn-vectorize-convolutions: features of 8-bit convolutions side by side, 4 or 32 of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from heron.hlo.calls import convolution
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.ir.types import S8
from heron.hlo.ir.window import ConvDims
from heron.passes.calls.conv_rewriter import conv_call
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape, transpose
from heron.passes.rewriting.expander import home
from heron.records import dataclass

#: features side by side, and the first GPU whose matrix units take so many
_WIDTHS = ((32, 75), (4, 61))


@register
@dataclass(frozen=True)
class CudnnVectorizeConvolutions(Pass):
    """Cuts the features of cuDNN's convolutions from s8 to s8 into groups of 32, or 4, that lie side by side.

    The features' groups are outside of the space then (cuDNN's NCHW_VECT_C); one dimension more, behind those that
    ``dim_labels`` name, are the features of a group. No pipeline has it: with all features innermost, as conv-rewriter
    makes calls, matrix units multiply as well, and nothing is moved.

    c = (s8[8,26,26,64], u8[0]) custom-call(s8[8,28,28,32] x, s8[64,3,3,32] w), window={size=3x3},
      dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convForward"
    ROOT r = s8[8,26,26,64] get-tuple-element(c), index=0
    ->
    ...
    xr = s8[8,28,28,1,32] reshape(x)
    xt = s8[8,1,28,28,32] transpose(xr), dimensions={0,3,1,2,4}
    wr = s8[64,3,3,1,32] reshape(w)
    wt = s8[64,1,3,3,32] transpose(wr), dimensions={0,3,1,2,4}
    d = (s8[8,2,26,26,32], u8[0]) custom-call(xt, wt), window={size=3x3}, dim_labels=bf01_oi01->bf01,
      custom_call_target="__cudnn$convForward"
    v = s8[8,2,26,26,32] get-tuple-element(d), index=0
    t = s8[8,26,26,2,32] transpose(v), dimensions={0,2,3,1,4}
    s = s8[8,26,26,64] reshape(t)
    u = u8[0] get-tuple-element(d), index=1
    c = (s8[8,26,26,64], u8[0]) tuple(s, u)
    ROOT r = s8[8,26,26,64] get-tuple-element(c), index=0
    """

    name = "cudnn-vectorize-convolutions"
    constraints = (
        Constraint("cudnn-fused-conv-rewriter", "cudnn-vectorize-convolutions", "it says in which type is stored"),
        Constraint("cudnn-pad-for-convolutions", "cudnn-vectorize-convolutions", "features in multiples of 4"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            for i in [i for i in c.instructions if convolution.is_call(i)]:
                found = _width(i, ctx)
                if isinstance(found, str):
                    ctx.decide(False, found, subject=i.name, object="cudnn")
                    continue
                if not ctx.may_fire("vectorize", _HERE, i):
                    return changed
                ctx.decide(True, f"{found} features side by side", subject=i.name, object="cudnn")
                c.replace(i, _vectorized(i, found))
                changed = True
        return changed


def _width(i: Instruction, ctx: PassContext) -> int | str:
    """The number of features in one vector, or the reason why all stay innermost."""
    d, result = i.dim_labels, (i.shape.tuple_shapes or (i.shape,))[0]
    x, w = (o.shape for o in i.operands[:2])
    if i.custom_call_target not in (convolution.FORWARD, convolution.FUSED):
        return "it is a derivative, which there is of floats alone"
    if any(s.element_type is not S8 for s in (x, w, result)):
        return f"it goes from {x.element_type} to {result.element_type}, not from s8 to s8"
    if i.feature_group_count > 1:
        return "its features are in groups of their own"
    if convolution.in_groups(i):
        return "its features are side by side already"
    features = x.dims[d.input_feature], result.dims[d.output_feature]
    capability = int(ctx.target.machine.removeprefix("sm_")) if ctx.target is not None else _WIDTHS[0][1]
    for width, first in _WIDTHS:
        if capability >= first and not any(n % width for n in features):
            return width
    return f"{features[0]} and {features[1]} features are no multiples of 4 on sm_{capability}"


def _vectorized(i: Instruction, width: int) -> Instruction:
    """The results of the call on arrays cut so, its array put together again."""
    c, d, rank = home(i), i.dim_labels, i.operands[0].shape.rank
    ins = (d.input_batch, d.input_feature, *d.input_spatial)
    kernel = (d.kernel_output, d.kernel_input, *d.kernel_spatial)
    outs = (d.output_batch, d.output_feature, *d.output_spatial)
    orders = [ins, kernel, None, outs][: len(i.operands)]
    operands = [o if order is None else _cut(o, order, width) for o, order in zip(i.operands, orders, strict=True)]
    result, *rest = i.shape.tuple_shapes or (i.shape,)
    shape = _cut_shape(result, outs, width)
    space = tuple(range(2, rank))
    labels = ConvDims(0, 1, space, 1, 0, space, 0, 1, space)
    made = conv_call(i, i.custom_call_target, operands, shape, i.window, labels, 1, convolution.read(i))
    whole = _joined(c.add("get-tuple-element", [made], shape, like=i, index=0), result, outs)
    if not i.shape.tuple_shapes:
        return whole
    more = [c.add("get-tuple-element", [made], s, like=i, index=n) for n, s in enumerate(rest, 1)]
    return c.add("tuple", [whole, *more], tuple_([result, *rest]), like=i)


def _cut_shape(shape: Shape, order: Sequence[int], width: int) -> Shape:
    """Batch, groups of features, space, features of a group; ``order`` names batch, features and space."""
    batch, features, *space = (shape.dims[n] for n in order)
    return array(shape.element_type, [batch, features // width, *space, width])


def _cut(x: Instruction, order: Sequence[int], width: int) -> Instruction:
    """`x` in that form: the features' dimension becomes two, which go where they belong."""
    at, dims = order[1], x.shape.dims
    parts = reshape(x, (*dims[:at], dims[at] // width, width, *dims[at + 1 :]))
    return transpose(parts, [*(n + (n > at) for n in order), at + 1])


def _joined(x: Instruction, shape: Shape, order: Sequence[int]) -> Instruction:
    """Back from that form to `shape`."""
    at, rank = order[1], shape.rank
    places = [*(n + (n > at) for n in order), at + 1]
    return reshape(transpose(x, [places.index(n) for n in range(rank + 1)]), shape.dims)


_HERE = f"{PurePath(__file__).name}:{CudnnVectorizeConvolutions.run.__code__.co_firstlineno}"
