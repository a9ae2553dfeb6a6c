"""Convolutions of cuDNN as custom calls, and what their backend_config says.

``window`` and ``dim_labels`` are those of the convolution forward, also of calls for its derivatives. Operands:
forward (input, filter); with epilogue (input, filter, bias, and where its scale is not 0 a side input); the input's
derivative (result's, filter); the filter's derivative (input, result's). Results: the array, workspace. Features may
be in groups (cuDNN's NCHW_VECT_C): then the last dimension, which ``dim_labels`` do not name, is those of a group.
"""

from __future__ import annotations

from typing import Any

from heron.errors import HeronError
from heron.hlo.calls import backend_config as config
from heron.hlo.calls.declaration import Call, Order, what_misfits
from heron.hlo.calls.form import results_of
from heron.hlo.calls.gemm import unknown
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.records import dataclass

FORWARD, FUSED = "__cudnn$convForward", "__cudnn$convBiasActivationForward"
BACKWARD_INPUT, BACKWARD_FILTER = "__cudnn$convBackwardInput", "__cudnn$convBackwardFilter"
TARGETS = (FORWARD, FUSED, BACKWARD_INPUT, BACKWARD_FILTER)
ACTIVATIONS = ("kNone", "kRelu", "kRelu6", "kElu", "kLeakyRelu")
_MEMBER = "cudnn_conv_backend_config"


@dataclass(frozen=True, slots=True)
class ConvConfig:
    """``activation(scale conv(x, w) + side_scale side + bias)``."""

    activation: str = "kNone"
    scale: float = 1.0
    side_scale: float = 0.0
    leak: float = 0.0
    algorithm: int = -1

    def __str__(self) -> str:
        algorithm = {
            "algo_id": str(self.algorithm),
            "math_type": "DEFAULT_MATH",
            "tuning_knobs": {},
            "is_cudnn_frontend": False,
        }
        given: dict[str, Any] = {
            "activation_mode": self.activation,
            "conv_result_scale": config.plain(self.scale),
            "side_input_scale": config.plain(self.side_scale),
            "algorithm": algorithm,
            "leakyrelu_alpha": config.plain(self.leak),
        }
        return config.write(_MEMBER, given)


def is_call(i: Instruction) -> bool:
    """Whether an instruction is such a call."""
    return i.opcode == "custom-call" and i.custom_call_target in TARGETS


def in_groups(i: Instruction) -> bool:
    """Whether arrays have one dimension more than ``dim_labels`` names: features side by side, the others outside."""
    return i.operands[0].shape.rank > 2 + len(i.dim_labels.input_spatial)


def read(i: Instruction) -> ConvConfig:
    """The configuration of a call. Raises HLO170 for one that cannot be read, HLO171 for what heron does not know."""
    given = config.read(i, _MEMBER)
    activation = str(given.get("activation_mode", "kNone"))
    if activation not in ACTIVATIONS:
        raise unknown(i, f"activation {activation}", "known: " + ", ".join(ACTIVATIONS))
    algorithm = given.get("algorithm", {})
    if not isinstance(algorithm, dict):
        raise config.bad(i, "'algorithm' is no object")
    if algorithm.get("tuning_knobs"):
        raise unknown(i, "tuning knobs of cuDNN's graphs", "they are measured for one machine; leave them out")
    found = ConvConfig(
        activation,
        config.number(i, given.get("conv_result_scale", 1)),
        config.number(i, given.get("side_input_scale", 0)),
        config.number(i, given.get("leakyrelu_alpha", 0)),
        config.integer(i, algorithm.get("algo_id", -1)),
    )
    is_fused = i.custom_call_target == FUSED
    wanted = 2 if not is_fused else 4 if found.side_scale else 3
    if len(i.operands) != wanted:
        raise unknown(i, f"{len(i.operands)} operands", f"its configuration asks for {wanted}")
    return found


def roles(i: Instruction) -> tuple[str, ...]:
    """The roles of the first two operands and the result in the forward convolution: input, kernel or output."""
    match i.custom_call_target:
        case target if target == BACKWARD_INPUT:
            return "output", "kernel", "input"
        case target if target == BACKWARD_FILTER:
            return "input", "output", "kernel"
    return "input", "kernel", "output"


def shapes_of(i: Instruction) -> dict[str, Shape]:
    """The shapes of input, kernel and output, whichever of them is the result."""
    return dict(zip(roles(i), (*(o.shape for o in i.operands[:2]), results_of(i)[0]), strict=True))


def _form(i: Instruction) -> str:
    """Names of sizes: n of the batch, c input features of a group, o output features, x of the input's space.

    With features side by side, w of them are the last dimension, and the dimension of features counts such groups.
    """
    given, d, groups = read(i), i.dim_labels, i.feature_group_count
    if d is None or len(d.input_spatial) != len(i.window or ()):
        why = "its window and dim_labels are of different ranks"
        raise HeronError("HLO172", what_misfits(i), where=str(i), why=why)
    wide = ("w",) if in_groups(i) else ()
    shapes = shapes_of(i)
    space = [shapes["input"].dims[at] if at < shapes["input"].rank else 0 for at in d.input_spatial]
    outputs = [str(w.output_size(size)) for w, size in zip(i.window, space, strict=True)]
    sizes = {
        "input": {d.input_batch: "n", d.input_feature: f"{groups}*c" if groups > 1 else "c"},
        "kernel": {d.kernel_input: "c", d.kernel_output: _divided(shapes["kernel"], d.kernel_output, groups)},
        "output": {d.output_batch: "n", d.output_feature: "o", **dict(zip(d.output_spatial, outputs, strict=False))},
    }
    sizes["input"] |= {at: f"x{n}" for n, at in enumerate(d.input_spatial)}
    sizes["kernel"] |= {at: str(w.size) for at, w in zip(d.kernel_spatial, i.window, strict=False)}
    if wide:
        sizes["kernel"][d.kernel_output] = "o*w"
    first, second, result = (
        (role, ",".join([*(sizes[role].get(n, "_") for n in range(len(sizes[role]))), *wide])) for role in roles(i)
    )
    operands = [f"{role}[{text}]" for role, text in (first, second)]
    if len(i.operands) > 2:
        operands.append("bias[o]" if not wide else "bias[o*w]")
    if given.side_scale and len(i.operands) > 3:
        operands.append(f"side[{result[1]}]")
    over = "@side" if len(i.operands) > 3 else ""
    return f"{', '.join(operands)} -> {result[0]}{over}[{result[1]}], workspace?[_]"


def _divided(kernel: Shape, at: int, groups: int) -> str:
    """Output features: a multiple of the groups."""
    return "o" if at >= kernel.rank or kernel.dims[at] % groups == 0 else f"{groups}*(o//{groups})"


def _orders(i: Instruction) -> list[list[Order | None]]:
    """Features innermost or outside of the space, in all arrays alike; features side by side only outside of it."""
    return [_order(i, True)] if in_groups(i) else [_order(i, False), _order(i, True)]


def _order(i: Instruction, is_outside: bool) -> list[Order | None]:
    """Batch, features, space or batch, space, features; filters as output features, input features, space."""
    d = i.dim_labels
    wide = (i.operands[0].shape.rank - 1,) if in_groups(i) else ()
    parts = {
        "input": (d.input_batch, d.input_feature, d.input_spatial),
        "kernel": (d.kernel_output, d.kernel_input, d.kernel_spatial),
        "output": (d.output_batch, d.output_feature, d.output_spatial),
    }
    found: list[Order | None] = []
    for role in roles(i):
        batch, features, space = parts[role]
        found.append((batch, features, *space, *wide) if is_outside else (batch, *space, features))
    return [*found[:2], *[None] * (len(i.operands) - 2), found[2], *[None] * (len(results_of(i)) - 1)]


def has_features_outside(i: Instruction) -> bool:
    """Whether features are outside of the space in memory, not innermost."""
    first = i.operands[0].shape
    order = tuple(range(first.rank)) if first.layout is None else first.layout.minor_to_major[::-1]
    return order == _order(i, True)[0]


def _flops(i: Instruction) -> float:
    shapes = shapes_of(i)
    output, kernel, result = shapes["output"], shapes["kernel"], results_of(i)[0]
    taps = kernel.num_elements / max(1, kernel.dims[i.dim_labels.kernel_output])
    return 2.0 * taps * output.num_elements / max(1, result.num_elements)


CALL = Call("convolution", TARGETS, _form, cpu="numpy", gpu="cudnn", orders=_orders, flops=_flops)
