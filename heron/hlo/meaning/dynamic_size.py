"""Arrays cut or filled up to sizes known at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heron.errors import HeronError


def within_bound(size: int, bound: int, d: int, least: int = 0) -> int:
    """`size`. Raises EVAL009 unless ``least <= size <= bound``."""
    if not least <= size <= bound:
        why = f"it may have {least} to {bound}" if least < bound else f"the program states {bound}"
        raise HeronError("EVAL009", f"dimension {d} is set to {size} elements", why=why)
    return size


def resized(x: np.ndarray, d: int, size: int) -> np.ndarray:
    """`x` with `size` elements in dimension `d`: the first ones, then zeros."""
    if size <= x.shape[d]:
        return x[(slice(None),) * d + (slice(0, size),)]
    widths = [(0, size - x.shape[d] if k == d else 0) for k in range(x.ndim)]
    return np.pad(x, widths)


def trimmed(x: np.ndarray, dims: Sequence[int | None]) -> np.ndarray:
    """`x` with those sizes, where they are given."""
    for d, size in enumerate(dims):
        if size is not None and size != x.shape[d]:
            x = resized(x, d, size)
    return x
