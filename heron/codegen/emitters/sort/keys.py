"""The bits a sort orders elements by (see `heron.analysis.fusion.sort_keys`), as code."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from heron.analysis.fusion.sort_keys import Key
from heron.codegen.elemental import Value
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.logic import total_key
from heron.codegen.ir.types import I64
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.types import F8E8M0FNU, PRED


def emit_key(key: Key, e: FunctionEmitter, comparator: Computation, element: Sequence[Value]) -> SSAValue:
    """An `i64` whose low bits, as an unsigned number, order the element; those above are 0."""
    value = _value(key, e, comparator, element)
    b, t = e.b, key.value.shape.element_type
    if t is PRED:
        word = b.op(arith.ExtUIOp, value, type=IntegerType(8))
    else:
        word = total_key(e, value, t) if t.is_float else value
        if key.partial:  # -0, the only number of that key, is 0
            is_zero = b.cmpi("eq", word, b.integer(-1, word.type))
            word = b.select(is_zero, b.integer(0, word.type), word)
        if t.is_signed or (t.is_float and t is not F8E8M0FNU):
            word = b.op(arith.XOrIOp, word, b.integer(-(1 << (t.bits - 1)), word.type))
    if key.descending:
        word = b.op(arith.XOrIOp, word, b.integer(-1, word.type))
    return word if word.type == I64 else b.op(arith.ExtUIOp, word, type=I64)


def emit_is_nan(key: Key, e: FunctionEmitter, comparator: Computation, element: Sequence[Value]) -> SSAValue:
    """Whether a float key of the element is none that has a place in an order."""
    value = _value(key, e, comparator, element)
    return e.b.cmpf("uno", value, value)


def _value(key: Key, e: FunctionEmitter, comparator: Computation, element: Sequence[Value]) -> SSAValue:
    with e.scope():
        for n, parameter in enumerate(comparator.parameters):
            e.provide(parameter, (), element[n // 2])
        return e.scalar(key.value, ())
