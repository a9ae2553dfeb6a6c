"""Attention of cuDNN as custom calls: ``softmax(scale q k^T + bias) v``, and its derivative.

Arrays are ``[batch, heads, sequence, head]``, or ``[batch, sequence, heads, head]`` as the dimension numbers of the
first product say; results have heads first either way. Keys and values may have fewer heads, each for several of the
queries'. Operands: q, k, v, and the bias where the name has one; of the derivative q, k, v, statistics, the output's
derivative, the output, then the bias. Results: the output, in training the statistics (the logarithm of what a row of
weights was divided by); of the derivative those of q, k and v, and of the bias if that is asked for; last workspace.
"""

from __future__ import annotations

from typing import Any

from heron.hlo.calls import backend_config as config
from heron.hlo.calls.declaration import Call, Order, row_major
from heron.hlo.calls.form import results_of
from heron.hlo.calls.gemm import unknown
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass

_FORMS = ("Softmax", "ScaleBiasSoftmax", "SoftmaxDropout", "ScaleBiasSoftmaxDropout")
FORWARD, WITH_BIAS = "__cudnn$fmhaSoftmax", "__cudnn$fmhaScaleBiasSoftmax"
TARGETS = tuple(f"__cudnn$fmha{form}{end}" for form in _FORMS for end in ("", "Backward"))
MASKS = ("NO_MASK", "CAUSAL")
_MEMBER = "cudnn_fmha_backend_config"


@dataclass(frozen=True, slots=True)
class AttentionConfig:
    """The configuration of a call.

    ``causal``: a query sees keys up to its own position. ``heads_first``: heads come before the sequence in q, k and v.
    """

    scale: float = 1.0
    causal: bool = False
    heads_first: bool = True
    backward: bool = False
    has_bias: bool = False

    @property
    def target(self) -> str:
        return (WITH_BIAS if self.has_bias else FORWARD) + "Backward" * self.backward

    def __str__(self) -> str:
        batch = ["0", "1"] if self.heads_first else ["0", "2"]
        numbers = {
            "lhs_contracting_dimensions": ["3"],
            "rhs_contracting_dimensions": ["3"],
            "lhs_batch_dimensions": batch,
            "rhs_batch_dimensions": batch,
        }
        given: dict[str, Any] = {
            "fmha_scale": config.plain(self.scale),
            "dropout_rate": 0,
            "seed": "0",
            "is_flash_attention": True,
            "mask_type": MASKS[self.causal],
            "sliding_window_length": 0,
            ("bmm2_grad_gemm2_dot_dimension_numbers" if self.backward else "bmm1_dot_dimension_numbers"): numbers,
        }
        return config.write(_MEMBER, given)


def read(i: Instruction) -> AttentionConfig:
    """The configuration of a call. Raises HLO170 for one that cannot be read, HLO171 for what heron does not know."""
    given = config.read(i, _MEMBER)
    name = i.custom_call_target
    if "Dropout" in name or config.number(i, given.get("dropout_rate", 0)):
        raise unknown(i, "dropout", "the library draws random numbers of its own, which no other way gives again")
    mask = str(given.get("mask_type", MASKS[0]))
    if mask not in MASKS:
        raise unknown(i, f"mask {mask}", "known: " + ", ".join(MASKS) + "; others are a bias")
    if config.number(i, given.get("sliding_window_length", 0)):
        raise unknown(i, "a sliding window", "it is a bias too")
    found = AttentionConfig(
        config.number(i, given.get("fmha_scale", 1)),
        mask == MASKS[1],
        _heads_first(i, given),
        name.endswith("Backward"),
        "Bias" in name,
    )
    operands = (6 if found.backward else 3) + found.has_bias
    if len(i.operands) != operands:
        raise unknown(i, f"{len(i.operands)} operands", f"its configuration asks for {operands}")
    results = len(i.shape.tuple_shapes or ())
    least = 3 if found.backward else 1
    if not least <= results <= least + 2:
        raise unknown(i, f"{results} results", f"{least} arrays, and what may come behind them")
    return found


def _heads_first(i: Instruction, given: dict[str, Any]) -> bool:
    for name in ("bmm1_dot_dimension_numbers", "bmm2_grad_gemm2_dot_dimension_numbers"):
        numbers = given.get(name)
        if isinstance(numbers, dict):
            batch = config.integers(i, numbers.get("lhs_batch_dimensions", []))
            if batch not in ((0, 1), (0, 2)):
                raise unknown(i, f"batch dimensions {list(batch)}", "they are 0 and 1, or 0 and 2")
            return batch == (0, 1)
    return True


def _form(i: Instruction) -> str:
    """Names of sizes: b of the batch, n heads, h heads of keys, t queries, s keys, d and e of a head.

    Results have heads first, whatever the operands have.
    """
    given, results = read(i), results_of(i)
    q, k, v, y = (
        f"[b,{heads},{rows},{size}]" if given.heads_first else f"[b,{rows},{heads},{size}]"
        for heads, rows, size in (("h*(n//max(h,1))", "t", "d"), ("h", "s", "d"), ("h", "s", "e"), ("n", "t", "e"))
    )
    bias = ", bias[b|1,n|1,t|1,s|1]" if given.has_bias else ""
    if not given.backward:
        more = {1: "", 2: ", workspace[_]"}.get(len(results), ", statistics[b,n,t], workspace[_]")
        return f"q{q}, k{k}, v{v}{bias} -> y[b,n,t,e]{more}"
    more = ", dbias[b|1,n|1,t|1,s|1]" if given.has_bias and len(results) > 3 and results[3].rank == 4 else ""
    gradients = f"dq[b,n,t,d], dk[b,h,s,d], dv[b,h,s,e]{more}, workspace?[_]"
    return f"q{q}, k{k}, v{v}, statistics[b,n,t], dy{y}, y{y}{bias} -> {gradients}"


def _orders(i: Instruction) -> list[list[Order | None]]:
    """Row-major; the output may also have sequences before heads."""
    rows, at = row_major(i), len(i.operands)
    return [rows, [*rows[:at], (0, 2, 1, 3), *rows[at + 1 :]]]


CALL = Call(
    "attention", TARGETS, _form, cpu="numpy", gpu="cudnn", orders=_orders,
    hint="attention-expander writes derivatives out",
)  # fmt: skip
