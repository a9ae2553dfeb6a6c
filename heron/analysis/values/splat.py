"""Arrays of one value: constants and broadcasts of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from heron.hlo.ir.instruction import Instruction

#: elements compared ahead of all others: most arrays of several values differ there
_SAMPLES = 8


def splat_value(i: Instruction) -> Any:
    """The NumPy scalar every element of `i` is known to be; None when not known."""
    while i.opcode == "broadcast" or i.opcode == "reshape":
        i = i.operands[0]
    if i.opcode != "constant" or not i.shape.is_array:
        return None
    array = i.attrs["literal"].array
    if array.ndim == 0:
        return array[()]
    return array.flat[0] if array.size and _is_even(array) else None


def _is_even(array: np.ndarray) -> bool:
    """Whether all elements have the same bytes."""
    if not any(array.strides):
        return True
    first = array.flat[0].tobytes()
    if any(array.flat[n].tobytes() != first for n in range(0, array.size, -(-array.size // _SAMPLES))):
        return False
    raw = np.frombuffer(first, np.uint8)
    return bool((np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(-1, len(raw)) == raw).all())


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
