"""cholesky and triangular-solve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape
from heron.hlo.meaning import linalg
from heron.hlo.ops.rules import default, need_arrays, need_kind, need_same_type
from heron.hlo.ops.unary import FRACTION

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction

TRANSPOSES = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


def need_square(i: Instruction, a: Shape) -> None:
    """Rejects what is no (batch of) square matrices of floats."""
    need_arrays(i, a)
    need_kind(i, a, FRACTION)
    if a.rank < 2 or a.dims[-1] != a.dims[-2]:
        reject(i, "operand 0 must be square in its last two dimensions", f"it is {a}")


@op("cholesky")
class Cholesky(Op):
    """The triangle L with ``L @ L^H == a`` (upper: ``L^H @ L``), NaN where `a` is not positive definite.

    Only the named triangle of `a` is read; the other one of the result is unspecified (here zero).

    Shape: the operand's: square matrices.
    """

    operands = ("a",)
    attributes = {"lower": Attr(AttrKind.BOOL, False)}
    traits = {Trait.LIBRARY}

    def shape(self, i: Instruction, a: Shape) -> Shape:
        need_square(i, a)
        return default(a)

    def evaluate(self, ev: Evaluation, i: Instruction, a: np.ndarray) -> np.ndarray:
        return linalg.cholesky(a, i.lower)[0]


@op("triangular-solve")
class TriangularSolve(Op):
    """x with ``op(a) @ x == b`` (or ``x @ op(a) == b``), reading one triangle of `a`.

    Shape: that of b.
    """

    operands = ("a", "b")
    attributes = {
        "left_side": Attr(AttrKind.BOOL, False),
        "lower": Attr(AttrKind.BOOL, False),
        "unit_diagonal": Attr(AttrKind.BOOL, False),
        "transpose_a": Attr(AttrKind.ENUM, choices=TRANSPOSES),
    }
    traits = {Trait.LIBRARY}

    def shape(self, i: Instruction, a: Shape, b: Shape) -> Shape:
        need_arrays(i, a, b)
        need_square(i, a)
        need_same_type(i, a, b)
        if b.rank != a.rank or a.dims[:-2] != b.dims[:-2]:
            reject(i, "both operands must have the same batch dimensions", f"{a} and {b}")
        side = b.dims[-2] if i.left_side else b.dims[-1]
        if side != a.dims[-1]:
            name = "rows" if i.left_side else "columns"
            reject(i, f"the {name} of operand 1 must match operand 0", f"{side} and {a.dims[-1]}")
        if i.transpose_a not in (None, *TRANSPOSES):
            reject(i, f"transpose_a={i.transpose_a} is none of {', '.join(TRANSPOSES)}")
        return default(b)

    def evaluate(self, ev: Evaluation, i: Instruction, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        transpose = i.transpose_a or "NO_TRANSPOSE"
        return linalg.triangular_solve(a, b, i.left_side, i.lower, transpose, i.unit_diagonal)
