"""Packed nibbles: bytes that hold two integers of 4 bits each, in products with operand_precision packed_nibble.

The product is that of the low halves plus that of the high halves. Of s8 both halves have a sign.
Source: https://github.com/openxla/xla (xla_data.proto, PrecisionConfig; operand_upcaster.cc).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heron.hlo.ir.instruction import Instruction


def is_packed(i: Instruction) -> bool:
    """Whether both operands of a product hold packed nibbles."""
    words = i.attrs.get("operand_precision") or ()
    return tuple(words) == ("packed_nibble", "packed_nibble")


def by_halves(
    i: Instruction, x: np.ndarray, y: np.ndarray, product: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """``product(x, y)``, of the halves of bytes where the operands of `i` are packed."""
    if not is_packed(i):
        return product(x, y)
    (x_low, x_high), (y_low, y_high) = _halves(x), _halves(y)
    return product(x_low, y_low) + product(x_high, y_high)


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return ((x << 4) >> 4 if x.dtype.kind == "i" else x & 15), x >> 4
