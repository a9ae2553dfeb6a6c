"""conv-rewriter: convolutions become calls of cuDNN, derivatives calls of what computes derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import PurePath

from heron.hlo.calls import convolution
from heron.hlo.calls.convolution import ConvConfig
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.ir.types import BF16, F16, F32, F64, S8, S32, U8
from heron.hlo.ir.window import ConvDims, Window, WindowDim
from heron.passes.calls.model.choice import absent, weigh_convolution
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, is_static, transpose
from heron.passes.rewriting.expander import home
from heron.records import dataclass

#: element types of input and filter → of the result
_TYPES = {(F32, F32), (F64, F64), (F16, F16), (BF16, BF16), (S8, S32)}


@dataclass(frozen=True, slots=True)
class Call:
    """A convolution as cuDNN knows it: which call, and window and labels of the convolution forward."""

    target: str
    window: Window
    dims: ConvDims
    filter: Instruction


@register
@dataclass(frozen=True)
class ConvRewriter(Pass):
    """Rewrites convolutions to calls of cuDNN, with features innermost and filters output first, as it is quickest.

    Those that derive an input or a filter are told by their windows. By a model, small ones stay kernels of our own
    (``weigh``): a call may need transposes around it.

    ROOT r = f32[8,26,26,16] convolution(f32[8,28,28,4] x, f32[3,3,4,16] w), window={size=3x3}, dim_labels=b01f_01io->b01f
    ->
    v = f32[16,3,3,4] transpose(w), dimensions={3,0,1,2}
    c = (f32[8,26,26,16], u8[0]) custom-call(x, v), window={size=3x3}, dim_labels=b01f_o01i->b01f,
      custom_call_target="__cudnn$convForward",
      backend_config={"operation_queue_id":"0","cudnn_conv_backend_config":{"activation_mode":"kNone","conv_result_scale":1,"side_input_scale":0,"algorithm":{"algo_id":"-1","math_type":"DEFAULT_MATH","tuning_knobs":{},"is_cudnn_frontend":false},"leakyrelu_alpha":0},"force_earliest_schedule":false,"reification_cost":[],"device_type":"DEVICE_TYPE_INVALID"}
    ROOT r = f32[8,26,26,16] get-tuple-element(c), index=0
    """  # noqa: E501

    name = "conv-rewriter"
    constraints = (
        Constraint("conv-rewriter", "layout-assignment", "its transposes are to be free where layouts can be chosen"),
    )

    weigh: bool = False

    def run(self, module: Module, ctx: PassContext) -> bool:
        missing = absent("cudnn", ctx)
        changed = False
        for c in module.computations_to_rewrite():
            for i in [i for i in c.instructions if i.opcode == "convolution"]:
                found = missing or match(i)
                if isinstance(found, str):
                    ctx.decide(False, found, subject=i.name, object="cudnn")
                    continue
                if self.weigh and not weigh_convolution(i, ctx):
                    continue
                if not ctx.may_fire("convolution", _HERE, i):
                    return changed
                if not self.weigh:
                    ctx.decide(True, found.target, subject=i.name, object="cudnn")
                ctx.fired("convolution", _HERE)
                changed = True
                c.replace(i, _rewritten(i, found))
        return changed


def match(i: Instruction) -> Call | str:
    """The call that computes a convolution, or why there is none."""
    x, w = (o.shape for o in i.operands)
    if not is_static(i) or not 3 <= x.rank <= 5:
        return "cuDNN convolves over 1 to 3 dimensions of known sizes"
    if x.element_type is not w.element_type or (x.element_type, i.shape.element_type) not in _TYPES:
        return f"no convolution of {x.element_type} and {w.element_type} to {i.shape.element_type}"
    if i.batch_group_count > 1:
        return "batches in groups"
    if 0 in (*x.dims, *w.dims, *i.shape.dims):
        return "it has no elements"
    window, kernel = _filter(i)
    if i.shape.element_type is not S32:
        backward = _backward_filter(i, window, kernel) or _backward_input(i, window, kernel)
        if backward is not None:
            return backward
    if any(d.base_dilation > 1 for d in window):
        return "an input spread out, and not the derivative of a convolution"
    if any(d.reversal and d.size > 1 for d in i.window):
        return "a filter turned round, and not the derivative of a convolution"
    return Call(convolution.FORWARD, tuple(replace(d, reversal=False) for d in i.window), i.dim_labels, i.operands[1])


def _filter(i: Instruction) -> tuple[Window, Instruction]:
    """The filter as it is before a reverse along the window, and the window that turns it round instead."""
    kernel, space = i.operands[1], i.dim_labels.kernel_spatial
    if kernel.opcode != "reverse" or not set(kernel.attrs["dimensions"]).issubset(space):
        return i.window, kernel
    turned = [d in kernel.attrs["dimensions"] for d in space]
    window = tuple(replace(d, reversal=d.reversal != t) for d, t in zip(i.window, turned, strict=True))
    return window, kernel.operands[0]


def _backward_filter(i: Instruction, window: Window, kernel: Instruction) -> Call | None:
    """Whether `i` sums over more positions than it has results at: then the larger one of its operands is a result's
    derivative, and strides and dilations change places."""
    dims = i.dim_labels
    if i.feature_group_count > 1 or prod(d.size for d in window) <= prod(i.shape.dims[d] for d in dims.output_spatial):
        return None
    if any(d.base_dilation > 1 or d.reversal for d in window):
        return None
    forward = []
    for d, at in enumerate(window):
        n, size = i.operands[0].shape.dims[dims.input_spatial[d]], i.shape.dims[dims.output_spatial[d]]
        # of what the stride leaves over at the end the forward convolution pads as much as makes it end there
        high = (at.size - 1) * at.window_dilation + (size - 1) * at.stride + 1 - n - at.pad_low
        high = at.pad_low if 0 <= at.pad_low - high < at.window_dilation else high
        turned = WindowDim(size, at.window_dilation, at.pad_low, high, 1, at.stride)
        if at.pad_low < 0 or high < 0 or turned.output_size(n) != at.size:
            return None
        forward.append(turned)
    labels = ConvDims(
        dims.input_feature, dims.input_batch, dims.input_spatial,
        dims.output_batch, dims.output_feature, dims.output_spatial,
        dims.kernel_input, dims.kernel_output, dims.kernel_spatial,
    )  # fmt: skip
    return Call(convolution.BACKWARD_FILTER, tuple(forward), labels, kernel)


def _backward_input(i: Instruction, window: Window, kernel: Instruction) -> Call | None:
    """Whether `i` turns the filter round and has no strides: then its input's dilation is the stride forward."""
    dims = i.dim_labels
    if i.feature_group_count > 1 or any(d.stride > 1 for d in window):
        return None
    turned_round = [d.reversal for d in window if d.size > 1]
    if not all(turned_round) or not (turned_round or any(d.base_dilation > 1 for d in window)):
        return None
    forward = []
    for d, at in enumerate(window):
        y, n = i.operands[0].shape.dims[dims.input_spatial[d]], i.shape.dims[dims.output_spatial[d]]
        reach = (at.size - 1) * at.window_dilation
        low = reach - at.pad_low
        high = (y - 1) * at.base_dilation + reach + 1 - n - low
        if low < 0:
            return None
        high = max(high, low) if 0 <= low - high < at.base_dilation else high  # the stride leaves that much over
        turned = WindowDim(at.size, at.base_dilation, low, high, 1, at.window_dilation)
        if high < 0 or turned.output_size(n) != y:
            return None
        forward.append(turned)
    labels = ConvDims(
        dims.output_batch, dims.output_feature, dims.output_spatial,
        dims.kernel_output, dims.kernel_input, dims.kernel_spatial,
        dims.input_batch, dims.input_feature, dims.input_spatial,
    )  # fmt: skip
    return Call(convolution.BACKWARD_INPUT, tuple(forward), labels, kernel)


def _rewritten(i: Instruction, found: Call) -> Instruction:
    """The call on transposed operands, its array transposed back."""
    c, d = home(i), found.dims
    orders = {
        "input": (d.input_batch, *d.input_spatial, d.input_feature),
        "kernel": (d.kernel_output, *d.kernel_spatial, d.kernel_input),
        "output": (d.output_batch, *d.output_spatial, d.output_feature),
    }
    roles = {
        convolution.FORWARD: ("input", "kernel", "output"),
        convolution.BACKWARD_INPUT: ("output", "kernel", "input"),
        convolution.BACKWARD_FILTER: ("input", "output", "kernel"),
    }[found.target]
    operands = [transpose(o, orders[role]) for o, role in zip((i.operands[0], found.filter), roles, strict=False)]
    order = orders[roles[2]]
    shape = array(i.shape.element_type, [i.shape.dims[k] for k in order])
    space, last = tuple(range(1, i.shape.rank - 1)), i.shape.rank - 1
    labels = ConvDims(0, last, space, last, 0, space, 0, last, space)
    made = conv_call(i, found.target, operands, shape, found.window, labels, i.feature_group_count, ConvConfig())
    value = c.add("get-tuple-element", [made], shape, like=i, index=0)
    return transpose(value, [order.index(k) for k in range(i.shape.rank)])


def conv_call(
    like: Instruction,
    target: str,
    operands: Sequence[Instruction],
    shape: Shape,
    window: Window,
    labels: ConvDims,
    groups: int,
    config: ConvConfig,
) -> Instruction:
    """A call that will replace `like` and takes its name. Its second result, workspace, is empty."""
    result = tuple_([shape, array(U8, (0,))])
    attrs = {"window": window, "dim_labels": labels, "custom_call_target": target}
    if groups > 1:
        attrs["feature_group_count"] = groups
    made = home(like).add("custom-call", operands, result, like=like, **attrs)
    made.name, like.name = like.name, made.name
    made.extras["backend_config"] = str(config)
    return made


_HERE = f"{PurePath(__file__).name}:{ConvRewriter.run.__code__.co_firstlineno}"
