"""Changes of type: convert, stochastic-convert, reduce-precision.

Float to integer truncates, saturates and maps NaN to 0. To pred: x != 0. Small floats are reached through f32.
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.floats import is_small, narrow, to_f32, widen
from heron.codegen.elemental.registry import rule
from heron.codegen.elemental.values import Pair, Value, scalar_of
from heron.codegen.ir.types import F32, scalar_type
from heron.hlo.ir import types
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import ElementType

F16 = scalar_type(types.F16)


@rule("convert")
def _convert(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    return convert(e, e.operand(i, 0, index), i.operands[0].shape.element_type, i.shape.element_type)


@rule("copy")
def _copy(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    return e.operand(i, 0, index)


def convert(e: FunctionEmitter, a: Value, source: ElementType, target: ElementType) -> Value:
    """A value of type `source` as one of type `target`."""
    if source is target:
        return a
    if target.is_complex:
        part = target.component
        if isinstance(a, Pair):
            re, im = (scalar_of(convert(e, v, source.component, part)) for v in a)
            return Pair(re, im)
        return Pair(scalar_of(convert(e, a, source, part)), e.b.floating(0.0, scalar_type(part)))
    if isinstance(a, Pair):
        return convert(e, a.re, source.component, target)
    a = scalar_of(a)
    if target is types.PRED:
        return _nonzero(e, a, source)
    if source.is_float:
        return _float_to_float(e, a, source, target) if target.is_float else _saturate(e, a, source, target)
    if target.is_float:
        return _to_float(e, a, source, target)
    result = scalar_type(target)
    if a.type == result:
        return a
    if source is types.PRED or target.bits > source.bits:
        kind = arith.ExtSIOp if source.is_signed else arith.ExtUIOp
        return e.b.op(kind, a, type=result)
    return e.b.op(arith.TruncIOp, a, type=result)


def _nonzero(e: FunctionEmitter, a: SSAValue, source: ElementType) -> SSAValue:
    if source.is_float:
        wide = widen(e, a, source)
        return e.b.cmpf("une", wide, e.b.floating(0.0, wide.type))
    return e.b.cmpi("ne", a, e.b.integer(0, a.type))


def _float_to_float(e: FunctionEmitter, a: SSAValue, source: ElementType, target: ElementType) -> SSAValue:
    if target is types.F64:
        return e.b.op(arith.ExtFOp, widen(e, a, source), type=scalar_type(target))
    if source is types.F64 and target is types.F16:
        return e.b.op(arith.TruncFOp, a, type=scalar_type(target))  # one rounding, not two
    wide = _to_odd(e, a) if source is types.F64 and is_small(target) else to_f32(e, a, source)
    return narrow(e, wide, target, computed=False)


def _to_odd(e: FunctionEmitter, a: SSAValue) -> SSAValue:
    """f64 as f32, inexact values to the neighbour with an odd last bit: narrowing that again rounds only once."""
    b, bits = e.b, IntegerType(32)
    near = b.op(arith.TruncFOp, a, type=F32)
    back = b.op(arith.ExtFOp, near, type=a.type)
    size, back_size = (b.op(math.AbsFOp, x, type=a.type) for x in (a, back))
    further = b.op(arith.ExtUIOp, b.cmpf("ogt", back_size, size), type=bits)
    below = b.op(arith.SubiOp, b.op(arith.BitcastOp, near, type=bits), further)
    odd = b.op(arith.BitcastOp, b.op(arith.OrIOp, below, b.integer(1, bits)), type=F32)
    return b.select(b.cmpf("one", back, a), odd, near)


def _to_float(e: FunctionEmitter, a: SSAValue, source: ElementType, target: ElementType) -> SSAValue:
    if source is types.PRED and not is_small(target):
        t = scalar_type(target)  # a choice of two constants is fewer instructions of vectors than a conversion
        return e.b.select(a, e.b.floating(1.0, t), e.b.floating(0.0, t))
    kind = arith.SIToFPOp if source.is_signed else arith.UIToFPOp
    if not is_small(target):
        return e.b.op(kind, a, type=scalar_type(target))
    if source.bits >= 32:
        a = _sticky(e, a, source)
    return narrow(e, e.b.op(kind, a, type=F32), target)


def _sticky(e: FunctionEmitter, a: SSAValue, source: ElementType) -> SSAValue:
    """Integers beyond f32's digits with fewer of them, the last one set if others were: rounded twice as if once."""
    b, t, size = e.b, a.type, a
    if source.is_signed:
        size = b.op(arith.XOrIOp, a, b.op(arith.ShRSIOp, a, b.integer(source.bits - 1, t)))
    for start, dropped in ((24, 15), (38, 29), (52, 43))[: 1 if source.bits == 32 else 3]:
        some = b.cmpi("ne", b.op(arith.AndIOp, a, b.integer((1 << dropped) - 1, t)), b.integer(0, t))
        cut = b.op(arith.AndIOp, a, b.integer(-(1 << dropped), t))
        marked = b.op(arith.OrIOp, cut, b.select(some, b.integer(1 << (dropped - 1), t), b.integer(0, t)))
        a = b.select(b.cmpi("uge", size, b.integer(1 << start, t)), marked, a)
    return a


def _saturate(e: FunctionEmitter, a: SSAValue, source: ElementType, target: ElementType) -> SSAValue:
    """Truncate; below and above the integer's range its bounds, NaN to 0 (out-of-range casts are thrown away)."""
    b, wide, result = e.b, widen(e, a, source), scalar_type(target)
    signed = target.is_signed
    low = -(1 << (target.bits - 1)) if signed else 0
    high = (1 << (target.bits - signed)) - 1
    cast = b.op(arith.FPToSIOp if signed else arith.FPToUIOp, wide, type=result)
    below = b.cmpf("ole", wide, b.floating(float(low), wide.type))
    cast = b.select(below, b.integer(low, result), cast)
    above = b.cmpf("oge", wide, b.floating(float(high + 1), wide.type))
    cast = b.select(above, b.integer(high, result), cast)
    return b.select(b.cmpf("uno", wide, wide), b.integer(0, result), cast)


def _to_integers(i: Instruction) -> str | None:
    return None if i.shape.element_type.is_signed else f"to {i.shape.element_type}; signed integers only"


@rule("stochastic-convert", check=_to_integers)
def _stochastic_convert(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    """Truncated, and one further from 0 where the random bits are below those of the fraction."""
    a, random = e.scalars(i, index)
    b, source = e.b, i.operands[0].shape.element_type
    wide = widen(e, a, source)
    zero, bits = b.floating(0.0, wide.type), source.bits
    finite = b.cmpf("olt", b.op(math.AbsFOp, wide), b.floating(float("inf"), wide.type))
    size = b.select(finite, b.op(math.AbsFOp, wide), zero)
    whole = b.op(math.FloorOp, size)
    scaled = b.op(arith.MulfOp, b.op(arith.SubfOp, size, whole), b.floating(2.0**bits, wide.type))
    below = b.cmpi("ult", random, b.op(arith.FPToUIOp, scaled, type=random.type))
    more = b.select(below, b.floating(1.0, wide.type), zero)
    rounded = b.op(math.CopySignOp, b.op(arith.AddfOp, whole, more), wide)
    compute = types.F64 if source is types.F64 else types.F32
    return _saturate(e, b.select(finite, rounded, wide), compute, i.shape.element_type)


@rule("reduce-precision")
def _reduce_precision(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    """f16 by its own bits, where denormals stay when the exponent does; the 8-bit types as f16."""
    t, (a,) = i.shape.element_type, e.scalars(i, index)
    if not is_small(t) or t in (types.BF16, types.F8E8M0FNU):
        return narrow(e, reduce_precision(e, widen(e, a, t), i.exponent_bits, i.mantissa_bits), t)
    half = a if t is types.F16 else e.b.op(arith.TruncFOp, widen(e, a, t), type=F16)
    half = reduce_precision(e, half, i.exponent_bits, i.mantissa_bits)
    return half if t is types.F16 else narrow(e, e.b.op(arith.ExtFOp, half, type=F32), t)


def reduce_precision(e: FunctionEmitter, x: SSAValue, exponent: int, mantissa: int) -> SSAValue:
    """`x` (f16, f32 or f64) rounded to a float of that many exponent and mantissa bits, by its bits; NaN stays NaN."""
    b = e.b
    width, fraction = {F16: (16, 10), F32: (32, 23)}.get(x.type, (64, 52))
    exponent_width = width - 1 - fraction
    bits = IntegerType(width)
    value = b.op(arith.BitcastOp, x, type=bits)
    sign = b.op(arith.AndIOp, value, b.integer(1 << (width - 1), bits))
    if mantissa < fraction:
        dropped = fraction - mantissa
        # round half to even: add half less one, plus one when the last bit kept is odd
        odd = b.op(arith.AndIOp, b.op(arith.ShRUIOp, value, b.integer(dropped, bits)), b.integer(1, bits))
        bias = b.op(arith.AddiOp, odd, b.integer((1 << (dropped - 1)) - 1, bits))
        value = b.op(arith.AndIOp, b.op(arith.AddiOp, value, bias), b.integer(-(1 << dropped), bits))
    if exponent < exponent_width:
        mask = ((1 << exponent_width) - 1) << fraction
        bias, reduced = (1 << (exponent_width - 1)) - 1, (1 << (exponent - 1)) - 1
        exponent_bits = b.op(arith.AndIOp, value, b.integer(mask, bits))
        over = b.cmpi("ugt", exponent_bits, b.integer((bias + reduced) << fraction, bits))
        under = b.cmpi("ule", exponent_bits, b.integer((bias - reduced) << fraction, bits))
        infinity = b.op(arith.OrIOp, sign, b.integer(mask, bits))
        value = b.select(over, infinity, b.select(under, sign, value))
    result = b.op(arith.BitcastOp, value, type=x.type)
    return b.select(b.cmpf("uno", x, x), x, result)
