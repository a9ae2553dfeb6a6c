"""Matrix products of cuBLAS as custom calls: ``alpha op(A B) + beta C``, then a bias, then an activation.

Operands: A, B, C where beta is not 0, for FP8 the scales of A and B, then the bias vector, last the scale of an FP8
result. Results: the product; what an epilogue keeps (``AUX``) or the largest magnitude of an FP8 result; workspace.
"""

from __future__ import annotations

from math import prod
from typing import Any

from heron.errors import HeronError
from heron.hlo.calls import backend_config as config
from heron.hlo.calls.declaration import Call, what_misfits
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.records import dataclass

GEMM, MATMUL, MATMUL_F8 = "__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8"
TARGETS = (GEMM, MATMUL, MATMUL_F8)

#: what may follow a product: does it add a bias, which activation, does it keep what the activation reads
EPILOGUES: dict[str, tuple[bool, str, bool]] = {
    "DEFAULT": (False, "", False),
    "BIAS": (True, "", False),
    "RELU": (False, "relu", False),
    "BIAS_RELU": (True, "relu", False),
    "GELU": (False, "gelu", False),
    "BIAS_GELU": (True, "gelu", False),
    "GELU_AUX": (False, "gelu", True),
    "BIAS_GELU_AUX": (True, "gelu", True),
    "SILU": (False, "silu", False),
    "BIAS_SILU": (True, "silu", False),
}
_MEMBER = "gemm_backend_config"
_DIMS = ("lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch")


@dataclass(frozen=True, slots=True)
class GemmConfig:
    """The configuration of a call. Dimension numbers are those of HLO's dot."""

    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    lhs_batch: tuple[int, ...] = ()
    rhs_batch: tuple[int, ...] = ()
    alpha: complex = 1.0
    beta: float = 0.0
    epilogue: str = "DEFAULT"
    precision: tuple[str, str] = ("DEFAULT", "DEFAULT")
    algorithm: str = "ALG_UNSET"
    selected: int = -1
    lhs_stride: int = 0
    rhs_stride: int = 0
    gives_amax: bool = False
    workspace: int = 0
    scale_mode: int = 0

    @property
    def has_bias(self) -> bool:
        return EPILOGUES[self.epilogue][0]

    @property
    def activation(self) -> str:
        """relu, gelu, silu or none."""
        return EPILOGUES[self.epilogue][1]

    @property
    def keeps_input(self) -> bool:
        """Whether the second result is the activation's input."""
        return EPILOGUES[self.epilogue][2]

    def __str__(self) -> str:
        dims = {f"{name}_dimensions": [str(d) for d in getattr(self, name)] for name in _DIMS}
        given: dict[str, Any] = {
            "selected_algorithm": str(self.selected),
            "alpha_real": config.plain(self.alpha.real),
            "beta": config.plain(self.beta),
            "dot_dimension_numbers": dims,
            "alpha_imag": config.plain(self.alpha.imag),
            "precision_config": {"operand_precision": list(self.precision), "algorithm": self.algorithm},
            "epilogue": self.epilogue,
            "lhs_stride": str(self.lhs_stride),
            "rhs_stride": str(self.rhs_stride),
            "grad_x": False,
            "grad_y": False,
            "damax_output": self.gives_amax,
            "autotune_workspace_size": str(self.workspace),
            "scale_mode": self.scale_mode,
        }
        return config.write(_MEMBER, given)


def read(i: Instruction) -> GemmConfig:
    """The configuration of a call. Raises HLO170 for one that cannot be read, HLO171 for what heron does not know."""
    given = config.read(i, _MEMBER)
    dims = given.get("dot_dimension_numbers", {})
    precision = given.get("precision_config", {})
    if not isinstance(dims, dict) or not isinstance(precision, dict):
        raise config.bad(i, "dot_dimension_numbers and precision_config are objects")
    epilogue = str(given.get("epilogue", "DEFAULT"))
    if epilogue not in EPILOGUES:
        raise unknown(i, f"epilogue {epilogue}", "known: " + ", ".join(EPILOGUES))
    if given.get("grad_x") or given.get("grad_y"):
        raise unknown(i, "a gradient inside a product", "grad_x and grad_y are false")
    scale_mode = config.integer(i, given.get("scale_mode", 0))
    if scale_mode:
        raise unknown(i, f"scale_mode {scale_mode}", "scales are one number an operand (0)")
    operand_precision = [*map(str, precision.get("operand_precision", ())), "DEFAULT", "DEFAULT"][:2]
    return GemmConfig(
        *(config.integers(i, dims.get(f"{name}_dimensions", [])) for name in _DIMS),
        alpha=_alpha(i, given),
        beta=config.number(i, given.get("beta", 0)),
        epilogue=epilogue,
        precision=(operand_precision[0], operand_precision[1]),
        algorithm=str(precision.get("algorithm", "ALG_UNSET")),
        selected=config.integer(i, given.get("selected_algorithm", -1)),
        lhs_stride=config.integer(i, given.get("lhs_stride", 0)),
        rhs_stride=config.integer(i, given.get("rhs_stride", 0)),
        gives_amax=bool(given.get("damax_output", False)),
        workspace=config.integer(i, given.get("autotune_workspace_size", 0)),
    )


def _alpha(i: Instruction, given: dict[str, Any]) -> complex:
    real, imaginary = (config.number(i, given.get(f"alpha_{part}", default)) for part, default in _PARTS)
    return complex(real, imaginary) if imaginary else real


_PARTS = (("real", 1), ("imag", 0))


def unknown(i: Instruction, what: str, hint: str) -> HeronError:
    """The error for a part of a configuration whose meaning heron does not know."""
    return HeronError("HLO171", f"'{i.name}' ({i.custom_call_target}) has {what}", where=str(i), hint=hint)


@dataclass(frozen=True, slots=True)
class Parts:
    """The number of each operand beyond A and B; -1 where there is none."""

    c: int = -1
    lhs_scale: int = -1
    rhs_scale: int = -1
    bias: int = -1
    out_scale: int = -1


def parts(i: Instruction, given: GemmConfig) -> Parts:
    """The places of a call's operands beyond A and B. Raises HLO171 when their number is another."""
    n, places = 2, {}
    if given.beta:
        places["c"], n = n, n + 1
    is_f8 = i.custom_call_target == MATMUL_F8
    if is_f8:
        places["lhs_scale"], places["rhs_scale"], n = n, n + 1, n + 2
    if given.has_bias:
        places["bias"], n = n, n + 1
    if is_f8 and product(i).element_type.bits == 8:
        places["out_scale"], n = n, n + 1
    if n != len(i.operands):
        raise unknown(i, f"{len(i.operands)} operands", f"its configuration asks for {n}")
    return Parts(**places)


def _form(i: Instruction) -> str:
    """Names of sizes: b of the batch, m rows, n columns, k summed."""
    given = read(i)
    at = parts(i, given)
    lhs = _sizes(i, 0, "m", given.lhs_batch, given.lhs_contracting)
    rhs = _sizes(i, 1, "n", given.rhs_batch, given.rhs_contracting)
    columns = [d for d in rhs if d[0] == "n"]
    out = [*sorted(d for d in lhs if d[0] == "b"), *(d for d in lhs if d[0] == "m"), *columns]
    operands = {0: f"lhs[{','.join(lhs)}]", 1: f"rhs[{','.join(rhs)}]"}
    operands[at.c] = f"c[{','.join(out)}]"
    operands[at.bias] = f"bias[{','.join(_bias(i, at.bias, columns))}]"
    for place, name in ((at.lhs_scale, "lhs_scale"), (at.rhs_scale, "rhs_scale"), (at.out_scale, "out_scale")):
        operands[place] = f"{name}:f32[]"
    operands.pop(-1)
    kept = [f"aux[{','.join(out)}]"] if given.keeps_input else []
    kept += ["amax:f32[]"] if given.gives_amax else []
    over = "@c" if given.beta else ""
    results = [f"out{over}[{','.join(out)}]", *kept, "workspace?[_]"]
    return f"{', '.join(operands[n] for n in sorted(operands))} -> {', '.join(results)}"


def _sizes(i: Instruction, n: int, free: str, batch: tuple[int, ...], summed: tuple[int, ...]) -> list[str]:
    """The names of an operand's sizes. Raises HLO172 for dimension numbers it does not have."""
    rank = i.operands[n].shape.rank
    dims = (*batch, *summed)
    if len(set(dims)) != len(dims) or any(not 0 <= d < rank for d in dims):
        why = f"operand {n} is {i.operands[n].shape.bare}; its batch dimensions are {batch}, its summed ones {summed}"
        raise HeronError("HLO172", what_misfits(i), where=str(i), why=why)
    names = [f"{free}{d}" for d in range(rank)]
    for kind, numbers in (("b", batch), ("k", summed)):
        for at, d in enumerate(numbers):
            names[d] = f"{kind}{at}"
    return names


def _bias(i: Instruction, n: int, columns: list[str]) -> list[str]:
    """The sizes of a bias: a number a column; sizes of 1 in front may be left out."""
    if n < 0:
        return []
    bias, rhs = i.operands[n].shape, i.operands[1].shape
    is_whole = bias.num_elements == prod(rhs.dims[int(name[1:])] for name in columns)
    return columns[-bias.rank :] if is_whole and 0 < bias.rank < len(columns) else columns


def _flops(i: Instruction) -> float:
    lhs = i.operands[0].shape.dims
    return 2.0 * prod(lhs[d] for d in read(i).lhs_contracting)


CALL = Call("gemm", TARGETS, _form, cpu="numpy", gpu="cublaslt", any_order=True, flops=_flops)


def product(i: Instruction) -> Shape:
    """The shape of the product among the call's results."""
    return i.shape.tuple_shapes[0] if i.shape.tuple_shapes else i.shape
