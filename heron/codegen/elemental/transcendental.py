"""Transcendental functions: `math.*` ops in f32 or f64; the target decides how each is computed."""

from __future__ import annotations

from xdsl.dialects import math
from xdsl.ir import Operation

from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.elemental import complex_functions
from heron.codegen.elemental.arithmetic import integer_power
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.floats import is_small, narrow, widen
from heron.codegen.elemental.real import Real
from heron.codegen.elemental.registry import rule
from heron.codegen.elemental.values import Value, pair_of, scalar_of
from heron.hlo.ir.instruction import Instruction

_UNARY: dict[str, type[Operation]] = {
    "acos": math.AcosOp,
    "acosh": math.AcoshOp,
    "asin": math.AsinOp,
    "asinh": math.AsinhOp,
    "atan": math.AtanOp,
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
    if t.is_complex and i.opcode not in complex_functions.UNARY:
        return f"not on {t.name}"
    return None


@rule(*_UNARY, check=_real_only)
def _unary(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a, t = e.operand(i, 0, index), i.shape.element_type
    if t.is_complex:
        return complex_functions.UNARY[i.opcode](e, pair_of(a))
    return narrow(e, e.b.op(_UNARY[i.opcode], widen(e, a, t)), t)


@rule("logistic")
def _logistic(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    """1 / (1 + exp(-x)), by the exponential that does not overflow: small results keep their digits."""
    a, t = e.operand(i, 0, index), i.shape.element_type
    if t.is_complex:
        return complex_functions.logistic(e, pair_of(a))
    x = Real(e, widen(e, a, t))
    small = (-abs(x)).apply(math.ExpOp)
    total = small + 1.0
    result = (x < 0.0).choose(small, 1.0) / total
    if not is_small(t):  # what the sum lost, to stay within two units
        result = result - result * ((small - (total - 1.0)) / total)
    return narrow(e, result.v, t)


@rule("power", "atan2")
def _binary(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a, b = e.operands(i, index)
    t = i.shape.element_type
    if t.is_complex:
        return complex_functions.BINARY[i.opcode](e, pair_of(a), pair_of(b))
    if t.is_integer:
        return integer_power(e, scalar_of(a), scalar_of(b), t)
    kind = math.PowFOp if i.opcode == "power" else math.Atan2Op
    return narrow(e, e.b.op(kind, widen(e, a, t), widen(e, b, t)), t)
