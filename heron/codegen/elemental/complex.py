"""Complex arithmetic on pairs of real values: the parts are ordinary scalars, so they vectorise and simplify.

Infinities follow Annex G of the C standard where HLO's values do: a number with an infinite part is infinite.
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.elemental.constants import scalar_constant
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.real import Real, Truth, joined, parts
from heron.codegen.elemental.registry import rule
from heron.codegen.elemental.values import Pair, Value, scalar_of
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import ElementType


@rule("complex")
def _complex(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    return Pair(*e.scalars(i, index))


@rule("real", "imag")
def _part(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a = e.operand(i, 0, index)
    if isinstance(a, Pair):
        return a.re if i.opcode == "real" else a.im
    return a if i.opcode == "real" else zero(e, i.shape.element_type)


def zero(e: FunctionEmitter, t: ElementType) -> SSAValue:
    """0 as a float type has it: f8e8m0fnu, of powers of two alone, has NaN for it."""
    return scalar_of(scalar_constant(e, t.dtype.type(0), t))


def binary(e: FunctionEmitter, opcode: str, a: Pair, b: Pair) -> Pair:
    """`add`, `subtract`, `multiply`, `divide`, `maximum` or `minimum` (by the real parts, the first of equals)."""
    op = e.b.op
    if opcode == "add":
        return Pair(op(arith.AddfOp, a.re, b.re), op(arith.AddfOp, a.im, b.im))
    if opcode == "subtract":
        return Pair(op(arith.SubfOp, a.re, b.re), op(arith.SubfOp, a.im, b.im))
    if opcode == "multiply":
        re = op(arith.SubfOp, op(arith.MulfOp, a.re, b.re), op(arith.MulfOp, a.im, b.im))
        im = op(arith.AddfOp, op(arith.MulfOp, a.re, b.im), op(arith.MulfOp, a.im, b.re))
        return Pair(re, im)
    if opcode == "divide":
        return divide(e, a, b)
    first = e.b.cmpf("oge" if opcode == "maximum" else "ole", a.re, b.re)
    return Pair(e.b.select(first, a.re, b.re), e.b.select(first, a.im, b.im))


def divide(e: FunctionEmitter, x: Pair, y: Pair) -> Pair:
    """Smith's method: the divisor is scaled by its larger part, so that no square overflows.

    By zero, each part of the dividend goes to infinity; an infinite dividend gives infinity, an infinite divisor 0.
    """
    (a, b), (c, d) = parts(e, x), parts(e, y)
    swap = abs(c) < abs(d)
    large, small = swap.choose(d, c), swap.choose(c, d)
    ratio = small / large
    scale = large + small * ratio
    first, second = swap.choose(b, a), swap.choose(a, b)
    re, im = (first + second * ratio) / scale, (second - first * ratio) / scale
    im = swap.choose(-im, im)

    by_zero = c.equals(0) & d.equals(0)
    infinity = c.of(float("inf")).copysign(c)
    re, im = by_zero.choose(infinity * a, re), by_zero.choose(infinity * b, im)

    from_infinity = (a.is_infinite() | b.is_infinite()) & c.is_finite() & d.is_finite() & ~by_zero
    u, v = _infinite_as_one(a), _infinite_as_one(b)
    re = from_infinity.choose((u * c + v * d) * float("inf"), re)
    im = from_infinity.choose((v * c - u * d) * float("inf"), im)

    by_infinity = (c.is_infinite() | d.is_infinite()) & a.is_finite() & b.is_finite()
    u, v = _infinite_as_one(c), _infinite_as_one(d)
    re = by_infinity.choose((a * u + b * v) * 0.0, re)
    im = by_infinity.choose((b * u - a * v) * 0.0, im)
    return joined(re, im)


def _infinite_as_one(x: Real) -> Real:
    """±1 for infinities, ±0 for the rest."""
    return x.is_infinite().choose(x.of(1.0), 0.0).copysign(x)


def negate(e: FunctionEmitter, a: Pair) -> Pair:
    """-a."""
    return Pair(e.b.op(arith.NegfOp, a.re), e.b.op(arith.NegfOp, a.im))


def absolute(e: FunctionEmitter, a: Pair) -> SSAValue:
    """hypot(re, im), scaled by the larger part so that no square overflows; inf when a part is infinite."""
    x, y = parts(e, a)
    return modulus(x, y).v


def ordered(x: Real, y: Real) -> tuple[Real, Real, Real]:
    """The larger and the smaller magnitude and their quotient, which lies in [0, 1] whatever they are but NaN."""
    x, y = abs(x), abs(y)
    large, small = x.largest(y), x.smallest(y)
    return large, small, large.equals(small).choose(large.of(1.0), small / large)


def modulus(x: Real, y: Real) -> Real:
    """hypot(x, y)."""
    large, _, ratio = ordered(x, y)
    length = large * (1.0 + ratio * ratio).apply(math.SqrtOp)
    return infinite(x, y).choose(length.of(float("inf")), length)


def infinite(x: Real, y: Real) -> Truth:
    """Whether either is an infinity."""
    return x.is_infinite() | y.is_infinite()


def sign(e: FunctionEmitter, a: Pair) -> Pair:
    """a / |a|, 0 for 0. The modulus may be out of range, and that of denormals has few digits: the quotient is used."""
    x, y = parts(e, a)
    large, _, ratio = ordered(x, y)
    length = (1.0 + ratio * ratio).apply(math.SqrtOp)
    is_zero = large.equals(0)
    return joined(*(is_zero.choose(part, part / large / length) for part in (x, y)))
