"""cholesky and triangular-solve."""

from __future__ import annotations

from heron.hlo.op import Attr, AttrKind, Op, op


@op("cholesky")
class Cholesky(Op):
    operands = ("a",)
    attributes = {"lower": Attr(AttrKind.BOOL, False)}


@op("triangular-solve")
class TriangularSolve(Op):
    operands = ("a", "b")
    attributes = {
        "left_side": Attr(AttrKind.BOOL, False),
        "lower": Attr(AttrKind.BOOL, False),
        "unit_diagonal": Attr(AttrKind.BOOL, False),
        "transpose_a": Attr(AttrKind.ENUM, choices=("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")),
    }
