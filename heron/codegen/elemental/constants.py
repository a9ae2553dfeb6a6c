"""Scalar constants of any element type."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.floats import is_small
from heron.codegen.elemental.values import Pair, Value
from heron.codegen.ir.types import scalar_type
from heron.hlo.ir.types import F32, ElementType


def scalar_constant(e: FunctionEmitter, value: np.ndarray | complex, t: ElementType) -> Value:
    """A constant of type `t`, from a Python number or a one-element array."""
    array = np.asarray(value)
    item = array.reshape(-1)[0]
    if t.is_complex:
        return Pair(_floating(e, item.real, t.component), _floating(e, item.imag, t.component))
    if not t.is_float:
        return e.b.integer(int(item), scalar_type(t))
    small = _floating(e, item, t)
    if is_small(t):
        # rounding a constant f32 would cost an op: the literal is exact in the small type already
        with np.errstate(invalid="ignore"):
            wide = _floating(e, np.asarray(item).astype(np.float32), F32)
        e.once(("wide", small), lambda: wide)
    return small


def _floating(e: FunctionEmitter, item: Any, t: ElementType) -> SSAValue:
    """A float; one that is no number keeps its sign and its other bits, by which total orders go."""
    value = float(item)
    if value == value:
        return e.b.floating(value, scalar_type(t))
    with np.errstate(invalid="ignore"):
        given, quiet = (np.asarray(x).astype(t.dtype).view(f"u{t.dtype.itemsize}") for x in (item, np.nan))
    if given == quiet:
        return e.b.floating(value, scalar_type(t))
    return e.b.op(arith.BitcastOp, e.b.integer(int(given), IntegerType(t.bits)), type=scalar_type(t))
