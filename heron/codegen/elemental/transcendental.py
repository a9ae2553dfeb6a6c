"""Transcendental functions: `math.*` ops in f32 or f64; the target decides how each is computed."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.ir import Operation

from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.elemental import complex as complex_rules
from heron.codegen.elemental.arithmetic import integer_power
from heron.codegen.elemental.emitter import FunctionEmitter, Value
from heron.codegen.elemental.floats import narrow, widen
from heron.codegen.elemental.registry import rule
from heron.hlo.instruction import Instruction

_UNARY: dict[str, type[Operation]] = {
    "acos": math.AcosOp,
    "acosh": math.AcoshOp,
    "asin": math.AsinOp,
    "asinh": math.AsinhOp,
    "atanh": math.AtanhOp,
    "cbrt": math.CbrtOp,
    "cosine": math.CosOp,
    "cosh": math.CoshOp,
    "erf": math.ErfOp,
    "exponential": math.ExpOp,
    "exponential-minus-one": math.ExpM1Op,
    "log": math.LogOp,
    "log-plus-one": math.Log1pOp,
    "rsqrt": math.RsqrtOp,
    "sine": math.SinOp,
    "sinh": math.SinhOp,
    "sqrt": math.SqrtOp,
    "tan": math.TanOp,
    "tanh": math.TanhOp,
}


def _real_only(i: Instruction) -> str | None:
    t = i.shape.element_type
    if t.is_complex and i.opcode not in complex_rules.UNARY:
        return f"not on {t.name}"
    return None


@rule(*_UNARY, check=_real_only)
def _unary(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a, t = e.operand(i, 0, index), i.shape.element_type
    if t.is_complex:
        return complex_rules.UNARY[i.opcode](e, a)
    return narrow(e, e.b.op(_UNARY[i.opcode], widen(e, a, t)), t)


@rule("logistic", check=_real_only)
def _logistic(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    """1 / (1 + exp(-x))."""
    t = i.shape.element_type
    wide = widen(e, e.operand(i, 0, index), t)
    one = e.b.floating(1.0, wide.type)
    below = e.b.op(arith.AddfOp, one, e.b.op(math.ExpOp, e.b.op(arith.NegfOp, wide)))
    return narrow(e, e.b.op(arith.DivfOp, one, below), t)


@rule("power", check=_real_only)
def _power(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a, b = e.operands(i, index)
    t = i.shape.element_type
    if t.is_integer:
        return integer_power(e, a, b, t)
    return narrow(e, e.b.op(math.PowFOp, widen(e, a, t), widen(e, b, t)), t)


@rule("atan2", check=_real_only)
def _atan2(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a, b = e.operands(i, index)
    t = i.shape.element_type
    return narrow(e, e.b.op(math.Atan2Op, widen(e, a, t), widen(e, b, t)), t)
