"""Positions as numbers: what iotas and sums of them are."""

from __future__ import annotations

from xdsl.dialects import arith

from heron.analysis.indexing.expr import Const, Expr
from heron.codegen.elemental.constants import scalar_constant
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.floats import is_small, narrow
from heron.codegen.elemental.values import Pair, Value, scalar_of
from heron.codegen.ir.types import F32, I32, I64, scalar_type
from heron.hlo.ir.types import ElementType


def index_to_scalar(e: FunctionEmitter, position: Expr, t: ElementType) -> Value:
    """An index as a number of type `t`."""
    if t.is_complex:
        part = scalar_of(index_to_scalar(e, position, t.component))
        return Pair(part, e.b.floating(0.0, scalar_type(t.component)))
    if isinstance(position, Const):
        return scalar_constant(e, position.value, t)
    value = e.index_value(position)
    if not t.is_float:
        return e.b.op(arith.IndexCastOp, value, type=scalar_type(t))
    # 32-bit conversions vectorise on every CPU, 64-bit ones do not
    wide = I32 if e.range_of(position)[1] < 2**31 else I64
    number = e.b.op(arith.IndexCastOp, value, type=wide)
    return narrow(e, e.b.op(arith.SIToFPOp, number, type=F32 if is_small(t) else scalar_type(t)), t)
