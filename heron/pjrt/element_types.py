"""PJRT's numbers of element types."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir import types
from heron.hlo.ir.types import ElementType

_NAMES = (
    *("", "pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "bf16", "c64", "c128"),
    *("f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz", "s4", "u4", "token", "s2", "u2"),
    *("f8e4m3", "f8e3m4", "f8e8m0fnu", "f4e2m1fn", "s1", "u1"),
)
_TYPES = tuple(types.by_name(n) if n else None for n in _NAMES)
_NUMBERS = {t: n for n, t in enumerate(_TYPES) if t is not None}


def numbered() -> Iterator[tuple[int, ElementType]]:
    """Element types of arrays with their numbers."""
    return ((n, t) for t, n in _NUMBERS.items() if t.name != "token")


def number(element_type: ElementType) -> int:
    """PJRT_Buffer_Type of an element type. Raises PJRT003 for one that PJRT has no number for."""
    found = _NUMBERS.get(element_type)
    if found is None:
        what = f"PJRT has no number for elements of type {element_type}"
        raise HeronError("PJRT003", what, hint="convert them first")
    return found


def of_number(n: int) -> ElementType:
    """The element type of a PJRT_Buffer_Type. Raises PJRT003 for a number that is none."""
    found = _TYPES[n] if 0 <= n < len(_TYPES) else None
    if found is None:
        raise HeronError(
            "PJRT003", f"{n} is not the number of an element type", why=f"there are 1 to {len(_TYPES) - 1}"
        )
    return found


def has_spare_bits(element_type: ElementType) -> bool:
    """Whether a byte has more values than an element: a host may have left anything in the others' bits."""
    return element_type.bits < 8 or element_type is types.PRED


def without_spare_bits(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """A copy in which truth values are 0 or 1, and bytes of narrower elements have zeros above the element's bits.

    Any other array is returned as it is.
    """
    if not has_spare_bits(element_type):
        return array
    given = array.view(np.uint8)
    return given != 0 if element_type is types.PRED else (given & ((1 << element_type.bits) - 1)).view(array.dtype)
