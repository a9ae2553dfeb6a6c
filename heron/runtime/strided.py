"""Convolutions as many small matrix products on strided parts of their operands, as plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of a loop: offsets in elements into the three arrays, and how long the matrices are in it (or 1)."""

    out: int
    lhs: int
    rhs: int
    count: int = 1


Walk = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """How a matrix lies in memory: elements between its rows if the second index is ``inner``, else its columns."""

    leading: int
    inner_second: bool


@dataclass(frozen=True, slots=True)
class StridedProducts:
    """``out[m, n] += lhs[m, k] @ rhs[k, n]`` at the sum of the offsets of every combination of steps of `walks`.

    ``m`` and ``k`` are sizes, or minus one minus the number of the walk whose steps count them. ``out`` starts as 0.
    """

    walks: tuple[Walk, ...]
    m: int
    n: int
    k: int
    lhs: Matrix
    rhs: Matrix
    out: Matrix

    @property
    def products(self) -> int:
        """How many there are."""
        count = 1
        for walk in self.walks:
            count *= len(walk)
        return count

    def longest(self, size: int) -> int:
        """The largest value of a size that may differ from step to step."""
        return size if size >= 0 else max((s.count for s in self.walks[-1 - size]), default=0)
