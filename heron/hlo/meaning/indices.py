"""Index arithmetic of gather and scatter: which operand elements each index means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Slices:
    """Start indices: vectors along `vector_dim`, whose entry k is for operand dimension ``mapped[k]``.

    Operand dimension ``batching[k]`` runs along with indices dimension ``start_batching[k]``.
    """

    def __init__(
        self,
        starts: np.ndarray,
        vector_dim: int,
        mapped: Sequence[int],
        batching: Sequence[int],
        start_batching: Sequence[int],
    ) -> None:
        if starts.dtype == np.uint64:  # beyond every array all the same
            starts = np.minimum(starts, np.uint64(np.iinfo(np.int64).max))
        starts = starts.astype(np.int64)
        self.starts = starts[..., None] if vector_dim == starts.ndim else np.moveaxis(starts, vector_dim, -1)
        self.mapped, self.batching = mapped, batching
        self.start_batching = [d - (d > vector_dim) for d in start_batching]

    def index(
        self, dims: tuple[int, ...], sizes: Sequence[int], window_dims: Sequence[int], clamp: bool
    ) -> tuple[np.ndarray, ...]:
        """For each operand dimension, indices shaped (batch dimensions..., window dimensions...), broadcastable.

        ``clamp``: move slices of `sizes` inside an operand of `dims`.
        """
        batch_rank = self.starts.ndim - 1
        rank = batch_rank + len(window_dims)
        found: list[np.ndarray] = []
        for d, (n, size) in enumerate(zip(dims, sizes, strict=True)):
            at = np.zeros((1,) * rank, np.int64)
            if d in self.mapped:
                start = self.starts[..., self.mapped.index(d)]
                if clamp:
                    start = np.clip(start, 0, n - size)
                at = at + start.reshape((*start.shape, *(1,) * len(window_dims)))
            if d in self.batching:
                axis = self.start_batching[self.batching.index(d)]
                at = at + _line(self.starts.shape[axis], axis, rank)
            if d in window_dims:
                at = at + _line(size, batch_rank + list(window_dims).index(d), rank)
            found.append(at)
        # every result dimension must show in the indices, or broadcasting would lose it
        full = (*self.starts.shape[:-1], *(sizes[d] for d in window_dims))
        if not found:
            return ()
        found[0] = np.broadcast_to(found[0], full)
        return tuple(found)


def _line(size: int, axis: int, rank: int) -> np.ndarray:
    return np.arange(size).reshape([-1 if d == axis else 1 for d in range(rank)])


def order(window_dims: Sequence[int], rank: int) -> tuple[list[int], list[int]]:
    """The permutation that brings `window_dims` behind the other dimensions, and the one that brings them back."""
    forth = [d for d in range(rank) if d not in window_dims] + list(window_dims)
    back = [0] * rank
    for n, d in enumerate(forth):
        back[d] = n
    return forth, back
