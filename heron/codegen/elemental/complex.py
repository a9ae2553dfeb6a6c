"""Complex arithmetic on pairs of real values: the parts are ordinary scalars, so they vectorise and simplify."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.elemental.emitter import FunctionEmitter, Pair, Value
from heron.codegen.elemental.registry import rule
from heron.hlo.instruction import Instruction


@rule("complex")
def _complex(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    return Pair(*e.operands(i, index))


@rule("real", "imag")
def _part(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a = e.operand(i, 0, index)
    if isinstance(a, Pair):
        return a.re if i.opcode == "real" else a.im
    return a if i.opcode == "real" else e.b.floating(0.0, a.type)


def binary(e: FunctionEmitter, opcode: str, a: Pair, b: Pair) -> Pair:
    """`add`, `subtract`, `multiply` or `divide`."""
    op = e.b.op
    if opcode == "add":
        return Pair(op(arith.AddfOp, a.re, b.re), op(arith.AddfOp, a.im, b.im))
    if opcode == "subtract":
        return Pair(op(arith.SubfOp, a.re, b.re), op(arith.SubfOp, a.im, b.im))
    if opcode == "multiply":
        re = op(arith.SubfOp, op(arith.MulfOp, a.re, b.re), op(arith.MulfOp, a.im, b.im))
        im = op(arith.AddfOp, op(arith.MulfOp, a.re, b.im), op(arith.MulfOp, a.im, b.re))
        return Pair(re, im)
    return _divide(e, a, b)


def _divide(e: FunctionEmitter, a: Pair, b: Pair) -> Pair:
    """Smith's method: the divisor is scaled by its larger part, so that no square overflows."""
    op, select = e.b.op, e.b.select
    swap = e.b.cmpf("olt", op(math.AbsFOp, b.re), op(math.AbsFOp, b.im))
    large, small = select(swap, b.im, b.re), select(swap, b.re, b.im)
    ratio = op(arith.DivfOp, small, large)
    scale = op(arith.AddfOp, large, op(arith.MulfOp, small, ratio))
    first, second = select(swap, a.im, a.re), select(swap, a.re, a.im)
    re = op(arith.DivfOp, op(arith.AddfOp, first, op(arith.MulfOp, second, ratio)), scale)
    im = op(arith.DivfOp, op(arith.SubfOp, second, op(arith.MulfOp, first, ratio)), scale)
    return Pair(re, select(swap, op(arith.NegfOp, im), im))


def negate(e: FunctionEmitter, a: Pair) -> Pair:
    """-a."""
    return Pair(e.b.op(arith.NegfOp, a.re), e.b.op(arith.NegfOp, a.im))


def absolute(e: FunctionEmitter, a: Pair) -> SSAValue:
    """hypot(re, im), scaled by the larger part so that no square overflows; inf when a part is infinite."""
    op = e.b.op
    x, y = op(math.AbsFOp, a.re), op(math.AbsFOp, a.im)
    large, small = op(arith.MaximumfOp, x, y), op(arith.MinimumfOp, x, y)
    zero, one, infinity = (e.b.floating(v, x.type) for v in (0.0, 1.0, float("inf")))
    ratio = op(arith.DivfOp, small, large)
    length = op(arith.MulfOp, large, op(math.SqrtOp, op(arith.AddfOp, one, op(arith.MulfOp, ratio, ratio))))
    plain = e.b.select(e.b.cmpf("oeq", large, zero), zero, length)
    infinite = op(arith.OrIOp, e.b.cmpf("oeq", x, infinity), e.b.cmpf("oeq", y, infinity))
    return e.b.select(infinite, infinity, plain)


def sign(e: FunctionEmitter, a: Pair) -> Pair:
    """a / |a|, 0 for 0."""
    length = absolute(e, a)
    zero = e.b.floating(0.0, length.type)
    is_zero = e.b.cmpf("oeq", length, zero)
    parts = [e.b.select(is_zero, part, e.b.op(arith.DivfOp, part, length)) for part in a]
    return Pair(*parts)


def _exponential(e: FunctionEmitter, a: Pair) -> Pair:
    op = e.b.op
    size = op(math.ExpOp, a.re)
    zero = e.b.floating(0.0, size.type)
    # a real argument stays real: exp(inf) * sin(0) would be NaN
    im = op(arith.MulfOp, size, op(math.SinOp, a.im))
    im = e.b.select(e.b.cmpf("oeq", a.im, zero), a.im, im)
    return Pair(op(arith.MulfOp, size, op(math.CosOp, a.im)), im)


def _log(e: FunctionEmitter, a: Pair) -> Pair:
    return Pair(e.b.op(math.LogOp, absolute(e, a)), e.b.op(math.Atan2Op, a.im, a.re))


def _sine(e: FunctionEmitter, a: Pair) -> Pair:
    op = e.b.op
    return Pair(
        op(arith.MulfOp, op(math.SinOp, a.re), op(math.CoshOp, a.im)),
        op(arith.MulfOp, op(math.CosOp, a.re), op(math.SinhOp, a.im)),
    )


def _cosine(e: FunctionEmitter, a: Pair) -> Pair:
    op = e.b.op
    im = op(arith.MulfOp, op(math.SinOp, a.re), op(math.SinhOp, a.im))
    return Pair(op(arith.MulfOp, op(math.CosOp, a.re), op(math.CoshOp, a.im)), op(arith.NegfOp, im))


def _sqrt(e: FunctionEmitter, a: Pair) -> Pair:
    """Half the length and half the real part, whichever sum does not cancel; the other part by division."""
    op = e.b.op
    half, zero = e.b.floating(0.5, a.re.type), e.b.floating(0.0, a.re.type)
    total = op(arith.AddfOp, absolute(e, a), op(math.AbsFOp, a.re))
    root = op(math.SqrtOp, op(arith.MulfOp, half, total))
    other = op(arith.DivfOp, op(arith.MulfOp, half, op(math.AbsFOp, a.im)), root)
    is_zero = e.b.cmpf("oeq", root, zero)
    other = e.b.select(is_zero, zero, other)
    left = e.b.cmpf("olt", a.re, zero)
    re, im = e.b.select(left, other, root), e.b.select(left, root, other)
    return Pair(re, op(math.CopySignOp, im, a.im))


#: complex functions by opcode
UNARY: dict[str, Callable[[FunctionEmitter, Pair], Pair]] = {
    "exponential": _exponential,
    "log": _log,
    "sine": _sine,
    "cosine": _cosine,
    "sqrt": _sqrt,
}
