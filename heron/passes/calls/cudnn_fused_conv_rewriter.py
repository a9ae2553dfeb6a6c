"""cudnn-fused-conv-rewriter: what follows a call of cuDNN and can be done inside it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import PurePath

from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo.calls import convolution
from heron.hlo.calls.convolution import ConvConfig
from heron.hlo.facts import is_stored
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import F32, S8, S32
from heron.passes.calls.conv_rewriter import conv_call
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import splat
from heron.passes.rewriting.expander import home
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """The result of a rule on a call: another call, which replaces `instead`; or the reason why it is kept."""

    instead: Instruction
    config: ConvConfig
    shape: Shape
    bias: Instruction | None = None
    side: Instruction | None = None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """A call, its array, and what else it computes so far."""

    call: Instruction
    value: Instruction
    config: ConvConfig

    @property
    def bias(self) -> Instruction | None:
        """The array added to features; zeros if there is no bias."""
        bias = self.call.operands[2] if len(self.call.operands) > 2 else None
        return None if bias is None or is_splat(bias, 0) else bias

    @property
    def side(self) -> Instruction | None:
        return self.call.operands[3] if len(self.call.operands) > 3 else None

    @property
    def user(self) -> Instruction | None:
        """The only one that uses the array."""
        return next(iter(self.value.users)) if len(self.value.users) == 1 and not self.value.is_root else None

    def step(self, instead: Instruction, **changes: object) -> Step:
        """The call with changes of its configuration."""
        config = dataclasses.replace(self.config, **changes)  # type: ignore[arg-type]
        return Step(instead, config, self.value.shape, self.bias, self.side)

    def other(self, user: Instruction) -> Instruction | None:
        """The other operand of an op of two; none when both are the array."""
        a, b = user.operands
        other = b if a is self.value else a
        return None if other is self.value else other


Rule = Callable[[Result, Callable[[str], bool]], Step | None]


@register
@dataclass(frozen=True)
class CudnnFusedConvRewriter(Pass):
    """Makes ``relu(a conv(x, w) + b side + bias)`` one call of cuDNN, and stores integer convolutions narrower.

    For integers: a result clamped to s8; one converted to f32; and the formula above in f32, stored as s8 or f32.
    Types below f32 lose roundings in between, so for these `math` decides.

    c = (f32[8,26,26,16], u8[0]) custom-call(f32[8,28,28,4] x, f32[16,3,3,4] w), window={size=3x3},
      dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convForward", backend_config={"operation_queue_id":"0","cudnn_conv_backend_config":{"activation_mode":"kNone","conv_result_scale":1,"side_input_scale":0,"algorithm":{"algo_id":"-1","math_type":"DEFAULT_MATH","tuning_knobs":{},"is_cudnn_frontend":false},"leakyrelu_alpha":0},"force_earliest_schedule":false,"reification_cost":[],"device_type":"DEVICE_TYPE_INVALID"}
    v = f32[8,26,26,16] get-tuple-element(c), index=0
    bs = f32[8,26,26,16] broadcast(f32[16] b), dimensions={3}
    s = f32[8,26,26,16] add(v, bs)
    zero = f32[] constant(0)
    zeros = f32[8,26,26,16] broadcast(zero), dimensions={}
    ROOT r = f32[8,26,26,16] maximum(s, zeros)
    ->
    c = (f32[8,26,26,16], u8[0]) custom-call(x, w, b), window={size=3x3}, dim_labels=b01f_o01i->b01f,
      custom_call_target="__cudnn$convBiasActivationForward", backend_config={"operation_queue_id":"0","cudnn_conv_backend_config":{"activation_mode":"kRelu","conv_result_scale":1,"side_input_scale":0,"algorithm":{"algo_id":"-1","math_type":"DEFAULT_MATH","tuning_knobs":{},"is_cudnn_frontend":false},"leakyrelu_alpha":0},"force_earliest_schedule":false,"reification_cost":[],"device_type":"DEVICE_TYPE_INVALID"}
    ROOT r = f32[8,26,26,16] get-tuple-element(c), index=0
    """  # noqa: E501

    name = "cudnn-fused-conv-rewriter"
    constraints = (Constraint("conv-rewriter", "cudnn-fused-conv-rewriter", "it goes on from the calls made there"),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            for i in [i for i in c.instructions if i.opcode == "custom-call"]:
                if (
                    i.custom_call_target not in (convolution.FORWARD, convolution.FUSED)
                    or i.parent is not c
                    or convolution.in_groups(i)
                ):
                    continue
                if not ctx.may_fire("follow", _HERE, i):
                    return changed
                changed |= _fuse(i, ctx)
        return changed


def _fuse(call: Instruction, ctx: PassContext) -> bool:
    """Take in what follows until nothing more fits."""
    taken: list[str] = []
    refused: dict[str, str] = {}
    again = True
    while again:
        again = False
        result = _result(call)
        if result is None:
            break
        for rule in RULES:
            step = rule(result, ctx.options.allows)
            if step is not None and step.refused:
                refused[f"{rule.__name__} {step.instead.name}"] = step.refused
            elif step is not None:
                call, again = _made(call, step), True
                taken.append(rule.__name__)
                break
    if taken:
        ctx.decide(True, "with " + ", ".join(taken), subject=call.name, object="cudnn")
        ctx.fired("follow", _HERE, len(taken))
    for what, why in refused.items():
        ctx.decide(False, why, subject=call.name, object=what)
    return bool(taken)


def _result(call: Instruction) -> Result | None:
    arrays = [u for u in call.users if u.opcode == "get-tuple-element" and u.attrs["index"] == 0]
    return Result(call, arrays[0], convolution.read(call)) if len(arrays) == len(call.users) == 1 else None


def _made(call: Instruction, step: Step) -> Instruction:
    c, config = home(call), step.config
    operands = list(call.operands[:2])
    is_plain = step.bias is None and step.side is None and config.activation == "kNone" and config.scale == 1
    if not is_plain:
        kind = F32 if call.operands[0].shape.element_type is S8 else step.shape.element_type
        features = step.shape.dims[call.dim_labels.output_feature]
        operands.append(step.bias or splat(c, step.shape.with_type(kind).with_dims((features,)), 0.0))
    if step.side is not None:
        operands.append(step.side)
    target = convolution.FORWARD if is_plain else convolution.FUSED
    groups = call.feature_group_count
    new = conv_call(call, target, operands, step.shape, call.window, call.dim_labels, groups, config)
    value = c.add("get-tuple-element", [new], step.shape, like=step.instead, index=0)
    c.replace(step.instead, value)
    return new


def scale(r: Result, allows: Callable[[str], bool]) -> Step | None:
    """``v * a`` → a scale of the convolution."""
    u = r.user
    if u is None or u.opcode != "multiply" or r.bias is not None or not r.value.shape.element_type.is_float:
        return None
    other = r.other(u)
    by = splat_value(other) if other is not None else None
    if by is None:
        return None
    return _rounding(r, r.step(u, scale=r.config.scale * float(by)), allows)


def bias(r: Result, allows: Callable[[str], bool]) -> Step | None:
    """``v + broadcast(b)`` along the features → the bias."""
    u = r.user
    if u is None or u.opcode != "add" or r.bias is not None or r.config.activation != "kNone":
        return None
    b, t = r.other(u), r.value.shape.element_type
    if b is None or not t.is_float or b.opcode != "broadcast" or b.operands[0].shape.rank != 1:
        return None
    if b.attrs.get("dimensions") != (r.call.dim_labels.output_feature,):
        return None
    return _rounding(r, dataclasses.replace(r.step(u), bias=b.operands[0]), allows)


def side(r: Result, allows: Callable[[str], bool]) -> Step | None:
    """``v + b * s`` with an array in memory → the side input."""
    u = r.user
    if u is None or u.opcode != "add" or r.side is not None or r.config.activation != "kNone":
        return None
    s, by = r.other(u), 1.0
    if s is None or not r.value.shape.element_type.is_float:
        return None
    if s.opcode == "multiply" and len(s.users) == 1:
        factors = [splat_value(o) for o in s.operands]
        if (factors[0] is None) == (factors[1] is None):
            return None
        by, s = (float(factors[1]), s.operands[0]) if factors[0] is None else (float(factors[0]), s.operands[1])
    source = s.operands[0] if s.opcode == "convert" and s.operands[0].shape.element_type is S8 else s
    if not is_stored(source) or by == 0:
        return None
    step = dataclasses.replace(r.step(u, side_scale=by), side=s)
    if r.bias is not None and not allows("reassociating"):
        return dataclasses.replace(step, refused="the bias is added first")
    return _rounding(r, step, allows)


def relu(r: Result, allows: Callable[[str], bool]) -> Step | None:
    """``max(v, 0)`` → relu, which is asked to keep NaN."""
    u = r.user
    if u is None or u.opcode != "maximum" or r.config.activation != "kNone":
        return None
    other = r.other(u)
    if other is None or not is_splat(other, 0) or not r.value.shape.element_type.is_float:
        return None
    return r.step(u, activation="kRelu")


def to_float(r: Result, allows: Callable[[str], bool]) -> Step | None:
    """An s32 result converted to f32 → stored as f32."""
    u = r.user
    if u is None or u.opcode != "convert" or r.value.shape.element_type is not S32 or u.shape.element_type is not F32:
        return None
    return dataclasses.replace(r.step(u), shape=u.shape)


def saturated(r: Result, allows: Callable[[str], bool]) -> Step | None:
    """A result of s8 operands clamped to s8 and converted → stored as s8. cuDNN rounds f32 to nearest."""
    if r.call.operands[0].shape.element_type is not S8 or r.user is None:
        return None
    u, rounds = r.user, r.value.shape.element_type is S32
    while u.opcode in ("clamp", "round-nearest-even"):
        if u.opcode == "clamp" and not (is_splat(u.operands[0], -128) and is_splat(u.operands[2], 127)):
            return None
        clamped = u.opcode == "clamp" or u.operands[0].opcode == "clamp"
        rounds |= u.opcode == "round-nearest-even"
        if len(u.users) != 1 or u.is_root:
            return None
        u = next(iter(u.users))
        if u.opcode == "convert" and u.shape.element_type is S8 and clamped:
            return _as_s8(r, u, rounds, allows)
    return None


def _as_s8(r: Result, u: Instruction, rounds: bool, allows: Callable[[str], bool]) -> Step | None:
    step = dataclasses.replace(r.step(u), shape=u.shape)
    if r.side is not None:
        if r.side.opcode != "convert" or r.side.operands[0].shape.element_type is not S8:
            return dataclasses.replace(step, refused="its side input is not s8 as the result is")
        step = dataclasses.replace(step, side=r.side.operands[0])
    if not rounds and not allows("reassociating"):
        return dataclasses.replace(step, refused="it is cut off to s8, cuDNN rounds to the nearest")
    return step


RULES: tuple[Rule, ...] = (to_float, scale, side, bias, relu, saturated)


def _rounding(r: Result, step: Step, allows: Callable[[str], bool]) -> Step:
    """The step, or its refusal where it leaves out a rounding."""
    t = r.value.shape.element_type
    if t.bits < 32 and not allows("reassociating"):
        return dataclasses.replace(step, refused=f"{t} is rounded before")
    return step


_HERE = f"{PurePath(__file__).name}:{CudnnFusedConvRewriter.run.__code__.co_firstlineno}"
