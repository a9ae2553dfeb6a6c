"""Norms of cuDNN as custom calls: every row of an array brought to mean 0 and variance 1, scaled and shifted.

The first dimension counts rows, all others are a row. Operands: (x, scale, bias), the last two with one row; of the
derivative (x, scale, dy, mean, factor). Results: (y), in training (y, mean, factor), where the factor is
``1 / sqrt(variance + epsilon)``, both a number a row; of the derivative (dx, dscale, dbias); last comes workspace.
"""

from __future__ import annotations

from typing import Any

from heron.hlo.calls import backend_config as config
from heron.hlo.calls.declaration import Call, row_major
from heron.hlo.calls.gemm import unknown
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass

TARGET = "__cudnn$norm"
INFERENCE, TRAINING, BACKWARD = "LAYER_FWD_INFER", "LAYER_FWD_TRAIN", "LAYER_BWD"
#: of each kind how many operands and arrays among the results there are
KINDS = {INFERENCE: (3, 1), TRAINING: (3, 3), BACKWARD: (5, 3)}
_MEMBER = "cudnn_norm_backend_config"


@dataclass(frozen=True, slots=True)
class NormConfig:
    """The kind of norm, and epsilon, which is added to variances."""

    kind: str
    epsilon: float

    def __str__(self) -> str:
        algorithm = {
            "algo_id": "0",
            "math_type": "DEFAULT_MATH",
            "tuning_knobs": {},
            "is_cudnn_frontend": True,
            "workspace_size": "0",
        }
        given: dict[str, Any] = {"epsilon": self.epsilon, "algorithm": algorithm, "kind": self.kind}
        return config.write(_MEMBER, given)


def read(i: Instruction) -> NormConfig:
    """The configuration of a call. Raises HLO170 for one that cannot be read, HLO171 for what heron does not know."""
    given = config.read(i, _MEMBER)
    kind = str(given.get("kind", INFERENCE))
    if kind not in KINDS:
        raise unknown(i, f"kind {kind}", "known: " + ", ".join(KINDS))
    operands, results = KINDS[kind]
    if len(i.operands) != operands:
        raise unknown(i, f"{len(i.operands)} operands", f"its configuration asks for {operands}")
    found = len(i.shape.tuple_shapes or (i.shape,))
    if found not in (results, results + 1):
        raise unknown(i, f"{found} results", f"its configuration gives {results}, and workspace")
    return NormConfig(kind, config.number(i, given.get("epsilon", 0)))


def _form(i: Instruction) -> str:
    """Names of sizes: r rows, each of the sizes s. An array with one number for each row has the same rank as x."""
    given, ones = read(i), ",".join(["1"] * (i.operands[0].shape.rank - 1))
    numbers = f"[r,{ones}]" if ones else "[r]"
    if given.kind == BACKWARD:
        operands = f"x[r,*s], scale[1,*s], dy[r,*s], mean{numbers}, factor{numbers}"
        return f"{operands} -> dx[r,*s], dscale[1,*s], dbias[1,*s], workspace?[_]"
    more = f", mean{numbers}, factor{numbers}" if given.kind == TRAINING else ""
    return f"x[r,*s], scale[1,*s], bias[1,*s] -> y[r,*s]{more}, workspace?[_]"


CALL = Call("norm", (TARGET,), _form, cpu="numpy", gpu="cudnn", orders=lambda i: [row_major(i)])
