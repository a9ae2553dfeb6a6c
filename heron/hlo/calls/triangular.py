"""Triangular solves of cuBLAS as custom calls: (a, b) → x, and scratch memory."""

from __future__ import annotations

from heron.hlo.calls import backend_config as config
from heron.hlo.calls.declaration import Call
from heron.hlo.calls.gemm import unknown
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass

TARGET = "__cublas$triangularSolve"
_TRANSPOSES = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


@dataclass(frozen=True, slots=True)
class Triangular:
    """As the attributes of triangular-solve."""

    left: bool
    lower: bool
    unit_diagonal: bool
    transpose: str


def read(i: Instruction) -> Triangular:
    """The configuration of a call. Raises HLO170 for one that cannot be read, HLO171 for what heron does not know."""
    given = config.read(i, "triangular_solve_options")
    transpose = str(given.get("transpose_a", "NO_TRANSPOSE"))
    if transpose not in _TRANSPOSES:
        raise unknown(i, f"transpose_a {transpose}", "known: " + ", ".join(_TRANSPOSES))
    flags = [bool(given.get(name, False)) for name in ("left_side", "lower", "unit_diagonal")]
    return Triangular(flags[0], flags[1], flags[2], transpose)


def _form(i: Instruction) -> str:
    """The solution may be stored where the right-hand sides are."""
    b = "[*b,n,m]" if read(i).left else "[*b,m,n]"
    return f"a:T[*b,n,n], b:T{b} -> x@b:T{b}, workspace?[_]"


CALL = Call("triangular", (TARGET,), _form, family="lapack", cpu="lapack", gpu="cublas", any_order=True)
