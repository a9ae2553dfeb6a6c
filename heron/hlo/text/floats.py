"""Floating-point numbers as XLA prints them: few digits that read back as the same value, NaN payloads in hex."""

from __future__ import annotations

import math
from functools import cache

import ml_dtypes
import numpy as np

from heron.hlo.ir.types import ElementType

#: types with one NaN of each sign
_SIGNED_NAN = ("f8e4m3fn",)
_UINT = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


@cache
def mantissa_bits(element_type: ElementType) -> int:
    """Stored mantissa bits of a floating-point type."""
    return int(ml_dtypes.finfo(element_type.dtype).nmant)


@cache
def digits(element_type: ElementType) -> int:
    """Significant decimal digits that always identify a value of the type."""
    return math.ceil(1 + (mantissa_bits(element_type) + 1) * math.log10(2))


def format_all(element_type: ElementType, array: np.ndarray) -> list[str]:
    """Every element of a floating-point array, in row-major order."""
    flat = array.reshape(-1)
    with np.errstate(invalid="ignore"):  # a signalling NaN in the array is no news
        wide = flat.astype(np.float64)
    values = wide.tolist()
    if element_type.bits >= 32:
        texts = _round_trip(values, flat, "%.15g" if element_type.bits == 64 else "%.6g")
    else:
        form = f"%.{digits(element_type)}g"
        texts = [form % v for v in values]
    if np.isfinite(wide).all():
        return texts
    for n in np.flatnonzero(np.isnan(wide)).tolist():
        texts[n] = _nan(element_type, flat[n : n + 1])
    return texts


def _round_trip(values: list[float], flat: np.ndarray, short: str) -> list[str]:
    """The short form where it reads back as the same value, else the long one."""
    texts = [short % v for v in values]
    with np.errstate(over="ignore"):
        back = np.array(list(map(float, texts))).astype(flat.dtype)
    long = "%.17g" if flat.dtype.itemsize == 8 else "%.9g"
    for n in np.flatnonzero(back != flat).tolist():
        texts[n] = long % values[n]
    return texts


def _nan(element_type: ElementType, one: np.ndarray) -> str:
    bits = element_type.dtype.itemsize * 8
    pattern = int(one.view(_UINT[bits])[0])
    width = mantissa_bits(element_type)
    payload = pattern & ((1 << width) - 1)
    sign = "-" if np.signbit(one)[0] else ""
    quiet = quiet_payload(element_type)
    return f"{sign}nan" if quiet is None or payload == quiet else f"{sign}nan(0x{payload:x})"


@cache
def quiet_payload(element_type: ElementType) -> int | None:
    """Mantissa of the usual NaN; None when the type has one NaN only."""
    if element_type.bits < 16 and element_type.name not in ("f8e5m2", "f8e4m3", "f8e3m4"):
        return None
    return 1 << (mantissa_bits(element_type) - 1)


def make_nan(element_type: ElementType, negative: bool, payload: int | None) -> np.ndarray:
    """A one-element array holding that NaN. Raises ValueError when the payload does not fit."""
    one = np.full(1, np.nan).astype(element_type.dtype)
    quiet = quiet_payload(element_type)
    if quiet is None:
        if payload is not None:
            raise ValueError(f"{element_type} has one NaN only, without a payload")
        if element_type.name in _SIGNED_NAN and negative:
            one.view(np.uint8)[0] |= 0x80
        return one
    width = mantissa_bits(element_type)
    if payload is not None and not 0 < payload < 1 << width:
        raise ValueError(f"a NaN of {element_type} has a payload of {width} bits, not zero")
    view = one.view(_UINT[element_type.dtype.itemsize * 8])
    sign_bit = 1 << (element_type.bits - 1)
    exponent = int(view[0]) & ~sign_bit & ~((1 << width) - 1)
    view[0] = exponent | (quiet if payload is None else payload) | (sign_bit if negative else 0)
    return one
