"""Global arrays cut into the shares of devices, and put together again, by one sharding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heron.hlo.ir.shape import Shape
from heron.hlo.sharding.value import Kind, Sharding


def share(x: np.ndarray, shape: Shape, sharding: Sharding, device: int) -> np.ndarray:
    """A device's share, filled up with zeros; of what is to be summed, the first summand is all of it."""
    dims = sharding.tile_shape(shape).dims
    if sharding.subgroup_place(Kind.UNREDUCED, device):
        return np.zeros(dims, x.dtype)
    piece = x[_cut(shape, sharding, device)]
    if piece.shape == dims:
        return piece
    full = np.zeros(dims, x.dtype)
    full[tuple(slice(0, n) for n in piece.shape)] = piece
    return full


def whole(parts: Sequence[np.ndarray], shape: Shape, sharding: Sharding) -> np.ndarray:
    """The array whose shares are given: tiles side by side, summands added up, one of equal ones."""
    is_sum = sharding.is_unreduced or Kind.UNREDUCED in sharding.subgroups
    if not is_sum and parts[0].shape == shape.dims:
        return parts[0]
    found = np.zeros(shape.dims, parts[0].dtype)
    for device, part in enumerate(parts):
        if sharding.subgroup_place(Kind.REPLICATED, device):
            continue
        at = _cut(shape, sharding, device)
        own = part[tuple(slice(0, s.stop - s.start) for s in at)]
        found[at] = found[at] + own if is_sum else own
    return found


def _cut(shape: Shape, sharding: Sharding, device: int) -> tuple[slice, ...]:
    begin, end = sharding.tile_offset(shape, device), sharding.tile_limit(shape, device)
    return tuple(slice(b, e) for b, e in zip(begin, end, strict=True))
