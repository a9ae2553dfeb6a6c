"""The extremum of two floats by the instruction that x86 has for it, asked both ways.

`minss a, b` is a where a < b, else b. Asked both ways it gives two equal numbers, both zeros, or a NaN and the other
operand. Of two zeros that differ, the bits of either way together are -0, which is their minimum, and the bits that
both have are +0. The bits of a NaN and of a number together are those of a NaN; for a maximum, NaN is asked for. LLVM's
own code for `llvm.minimum` is twice as long.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.ir.types import scalar_type
from heron.hlo.ir.types import F32, F64, U32, U64, ElementType

#: the comparison by which a side is taken, and the op that joins the bits of both ways
_WAYS = {"minimum": ("olt", arith.OrIOp), "maximum": ("ogt", arith.AndIOp)}
_BITS = {F32: U32, F64: U64}


def picks(opcode: str, t: ElementType) -> bool:
    """Whether `pick` computes that op of floats of type `t`."""
    return opcode in _WAYS and t in _BITS


def are_new(a: SSAValue, b: SSAValue) -> bool:
    """Whether neither value is a constant, with which LLVM's own code is short, or what a loop carries: LLVM makes
    vectors of partial results of its own extrema alone."""
    return all(isinstance(v.owner, Operation) and not isinstance(v.owner, arith.ConstantOp) for v in (a, b))


def pick(e: FunctionEmitter, opcode: str, a: SSAValue, b: SSAValue) -> SSAValue:
    """The `minimum` or `maximum` of two floats of 32 or 64 bits."""
    predicate, join = _WAYS[opcode]
    t = next(t for t in _BITS if scalar_type(t) == a.type)
    ways = [e.b.select(e.b.cmpf(predicate, x, y), x, y) for x, y in ((a, b), (b, a))]
    bits = [e.b.op(arith.BitcastOp, way, type=scalar_type(_BITS[t])) for way in ways]
    joined = e.b.op(arith.BitcastOp, e.b.op(join, *bits), type=a.type)
    if opcode == "minimum":
        return joined
    return e.b.select(e.b.cmpf("uno", a, b), e.b.op(arith.AddfOp, a, b), joined)
