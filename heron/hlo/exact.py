"""Element types among whose values are all those of another type."""

from __future__ import annotations

import ml_dtypes

from heron.hlo.ir.types import ElementType


def holds_all(a: ElementType, via: ElementType) -> bool:
    """Whether every value of `a` is a value of `via`."""
    if a is via:
        return True
    if a.kind == "pred":
        return via.is_integer and via.bits > 1 or via.is_complex or via.is_float and via.bits >= 16
    if via.is_complex:
        return not a.is_complex and holds_all(a, via.component) or (a.is_complex and a.bits <= via.bits)
    if via.is_float and via.bits < 16:
        return False  # the small formats differ in what they have of infinities, NaNs and zeros
    if a.is_integer:
        return _holds_integers(a, via)
    if a.is_float and via.is_float and a.bits >= 16:
        return all(mine <= theirs for mine, theirs in zip(exact_range(a), exact_range(via), strict=True))
    return False


def _holds_integers(a: ElementType, via: ElementType) -> bool:
    """Whether every value of the integer type `a` is a value of `via`, which is no small float."""
    if via.is_float:
        mantissa, largest = exact_range(via)
        return a.bits - a.is_signed <= mantissa and largest > 1 << a.bits
    if not via.is_integer:
        return False
    return a.bits <= via.bits if a.is_signed == via.is_signed else a.is_unsigned and a.bits < via.bits


def exact_range(t: ElementType) -> tuple[int, float]:
    """Significant bits, hidden one included, and the largest value."""
    info = ml_dtypes.finfo(t.dtype)
    return int(info.nmant) + 1, float(info.max)
