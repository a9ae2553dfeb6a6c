"""Arrays of one value: constants and broadcasts of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from heron.hlo.ir.instruction import Instruction


def splat_value(i: Instruction) -> Any:
    """The NumPy scalar every element of `i` is known to be; None when not known.

    Of constants only small ones are looked at.
    """
    while i.opcode == "broadcast" or i.opcode == "reshape":
        i = i.operands[0]
    if i.opcode != "constant" or not i.shape.is_array:
        return None
    array = i.attrs["literal"].array
    if array.ndim == 0:
        return array[()]
    if not 0 < array.size <= 4096:
        return None
    first = array.flat[0]
    return first if array.tobytes() == first.tobytes() * array.size else None


def is_splat(i: Instruction, value: float) -> bool:
    """Whether every element of `i` is known to equal `value`; 0 and -0 are told apart by the sign of a float `value`.

    Write ``0`` for either zero, ``-0.0`` or ``+0.0`` for just that one. A complex zero must have that sign twice.
    """
    found = splat_value(i)
    if found is None or found != value:
        return False
    if value == 0 and isinstance(value, float):
        wide = np.complex128(found)
        signs = [np.signbit(wide.real), np.signbit(wide.imag)] if np.iscomplexobj(found) else [np.signbit(wide.real)]
        return all(sign == np.signbit(value) for sign in signs)
    return True
