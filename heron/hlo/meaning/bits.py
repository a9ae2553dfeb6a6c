"""Arrays as bits: other types over the same bits, and elements in the order of a layout."""

from __future__ import annotations

import numpy as np

from heron.hlo.ir.layout import Layout
from heron.hlo.ir.types import ElementType


def reinterpret(x: np.ndarray, source: ElementType, to: ElementType, dims: tuple[int, ...]) -> np.ndarray:
    """The bits of `x` (row-major, least significant first) as elements of `to`, shaped `dims`."""
    x = np.ascontiguousarray(x)
    if source.bits >= 8 and to.bits >= 8:
        if source.kind == "pred":
            x = x.view(np.uint8)
        if to.kind == "pred":  # any bit makes it true
            return (x.reshape(-1).view(np.uint8) != 0).reshape(dims)
        return x.reshape(-1).view(to.dtype).reshape(dims)
    pattern = _unpack(x, source).reshape(-1, to.bits)
    if to.kind == "pred":
        return np.any(pattern, axis=1).reshape(dims)
    return _pack(pattern, to).reshape(dims)


def _unpack(x: np.ndarray, t: ElementType) -> np.ndarray:
    """One row of `t.bits` bits for each element."""
    octets = x.reshape(-1, 1).view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little")[:, : t.bits]


def _pack(pattern: np.ndarray, t: ElementType) -> np.ndarray:
    octets = np.packbits(pattern, axis=1, bitorder="little")
    if t.bits < 8 and t.is_signed:  # stored sign-extended
        sign = 1 << (t.bits - 1)
        return ((octets.astype(np.int8) ^ sign) - sign).astype(np.int8)[:, 0].astype(t.dtype)
    return np.ascontiguousarray(octets).view(t.dtype)[:, 0]


def to_memory(x: np.ndarray, layout: Layout | None) -> np.ndarray:
    """The elements of `x` in the order `layout` keeps them, flat."""
    if layout is None or layout.is_default:
        return x.reshape(-1)
    return x.transpose(layout.minor_to_major[::-1]).reshape(-1)


def from_memory(flat: np.ndarray, dims: tuple[int, ...], layout: Layout | None) -> np.ndarray:
    """The array of `dims` whose elements lie as `layout` says in `flat`."""
    if layout is None or layout.is_default:
        return flat.reshape(dims)
    order = layout.minor_to_major[::-1]
    back = np.argsort(order)
    return flat.reshape([dims[d] for d in order]).transpose(back)
