"""Small floats: arithmetic on f16, bf16 and f8 happens in f32, and every HLO op's result is rounded back."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.values import Value, scalar_of
from heron.codegen.ir.types import F32, scalar_type
from heron.hlo.ir import types
from heron.hlo.ir.types import ElementType


def is_small(element_type: ElementType) -> bool:
    """Whether the type is a float narrower than f32."""
    return element_type.is_float and element_type.bits < 32


def widen(e: FunctionEmitter, value: Value, element_type: ElementType) -> SSAValue:
    """A real value in the type arithmetic happens in; a small float is extended once."""
    value = scalar_of(value)
    if not is_small(element_type):
        return value
    return e.once(("wide", value), lambda: e.b.op(arith.ExtFOp, value, type=F32))


def narrow(e: FunctionEmitter, value: SSAValue, element_type: ElementType, *, computed: bool = True) -> SSAValue:
    """A value of the arithmetic type, rounded to `element_type`.

    ``computed``: it was computed from values of that type, so that a NaN has nothing in the bits that are dropped and
    bf16 is reached without a test for one (`heron.computed`).
    """
    if not is_small(element_type):
        return value
    result = e.b.op(arith.TruncFOp, value, type=scalar_type(element_type))
    if computed and element_type is types.BF16:
        assert isinstance(result.owner, arith.TruncFOp)
        result.owner.attributes["heron.computed"] = UnitAttr()
    return result


def to_f32(e: FunctionEmitter, value: SSAValue, element_type: ElementType) -> SSAValue:
    """Any float as f32 (f64 is rounded)."""
    if element_type is types.F64:
        return e.b.op(arith.TruncFOp, value, type=F32)
    return widen(e, value, element_type)
