"""Floats as integers whose extremum is theirs: what a `reduce` of maxima or minima accumulates on CPUs.

`maximum` of floats has no instruction on x86: NaN must win over numbers and +0 over -0, which takes seven instructions
each of which waits for the one before. Integers need four for a key and its comparison, and only the comparison waits.
They have a sign: processors before AVX-512 compare 64 bits with a sign alone.
The order of the keys of `heron.codegen.elemental.logic.total_key` is that of the floats, -0 before +0, with NaN at both
ends. A subtraction that wraps around brings all NaN to the end where they win.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.logic import total_key
from heron.codegen.ir.types import scalar_type
from heron.hlo.ir.types import F32, F64, S32, S64, ElementType

#: the type of the keys of a float, and the bits of its infinity
KEYS: dict[ElementType, tuple[ElementType, int]] = {F32: (S32, 0x7F800000), F64: (S64, 0x7FF0000000000000)}
#: the total key that becomes the lowest, from the bits of infinity: that of -inf, or the one after that of +inf
_FIRST: dict[str, Callable[[int], int]] = {"maximum": lambda bits: -bits - 1, "minimum": lambda bits: bits + 1}


def key_type(opcode: str, t: ElementType) -> ElementType | None:
    """The type of the keys for a reduction of floats of type `t` by that op; None where there are none."""
    return KEYS[t][0] if opcode in _FIRST and t in KEYS else None


def to_key(e: FunctionEmitter, opcode: str, x: SSAValue, t: ElementType) -> SSAValue:
    """The key of a float of type `t` for its `maximum` or `minimum`: that of the keys belongs to that of the floats."""
    key = total_key(e, x, t)
    return e.b.op(arith.SubiOp, key, _first(e, opcode, key, t))


def from_key(e: FunctionEmitter, opcode: str, key: SSAValue, t: ElementType) -> SSAValue:
    """The float that has this key."""
    total = e.b.op(arith.AddiOp, key, _first(e, opcode, key, t))
    sign = e.b.op(arith.ShRSIOp, total, e.b.integer(t.bits - 1, key.type))
    mask = e.b.op(arith.ShRUIOp, sign, e.b.integer(1, key.type))
    return e.b.op(arith.BitcastOp, e.b.op(arith.XOrIOp, total, mask), type=scalar_type(t))


def _first(e: FunctionEmitter, opcode: str, key: SSAValue, t: ElementType) -> SSAValue:
    """The difference of the total key from that of its extremum: the lowest is -2^(bits - 1)."""
    lowest = -(1 << (t.bits - 1))
    first = _FIRST[opcode](KEYS[t][1]) - lowest
    return e.b.integer((first - lowest) % (1 << t.bits) + lowest, key.type)
