"""Convolutions of cuDNN as custom calls, and what their backend_config says.

``window`` and ``dim_labels`` are those of the convolution forward, also of calls for its derivatives. Operands:
forward (input, filter); with epilogue (input, filter, bias, and where its scale is not 0 a side input); the input's
derivative (result's, filter); the filter's derivative (input, result's). Results: the array, workspace. Features may
be in groups (cuDNN's NCHW_VECT_C): then the last dimension, which ``dim_labels`` do not name, is those of a group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heron.hlo.calls import backend_config as config
from heron.hlo.calls.gemm import unknown
from heron.hlo.ir.instruction import Instruction

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
