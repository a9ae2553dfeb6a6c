"""Scalar constants of any element type."""

from __future__ import annotations

import numpy as np

from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.floats import is_small
from heron.codegen.elemental.values import Pair, Value
from heron.codegen.ir.types import F32, scalar_type
from heron.hlo.ir.types import ElementType


def scalar_constant(e: FunctionEmitter, value: np.ndarray | complex, t: ElementType) -> Value:
    """A constant of type `t`, from a Python number or a one-element array."""
    array = np.asarray(value)
    item = array.reshape(-1)[0]
    if t.is_complex:
        part = scalar_type(t.component)
        return Pair(e.b.floating(float(item.real), part), e.b.floating(float(item.imag), part))
    if not t.is_float:
        return e.b.integer(int(item), scalar_type(t))
    if is_small(t):
        # rounding a constant f32 would cost an op: the literal is exact in the small type already
        wide = e.b.floating(float(item), F32)
        small = e.b.floating(float(item), scalar_type(t))
        e.once(("wide", small), lambda: wide)
        return small
    return e.b.floating(float(item), scalar_type(t))
