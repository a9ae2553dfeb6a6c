"""The shuffles that transpose a square of vectors in registers.

With the bits of (row, column) written side by side, interleaving row i with row i + n/2 into rows 2i and 2i + 1 rotates
them by one place: log2 n rounds swap row and column. Vectors of 256 bits shuffle fast within their halves alone. There
the halves of rows i and i + n/2 are put together first, and then the halves are squares of their own, side by side.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

#: bits of vectors whose shuffles stay within halves
_IN_HALVES = 256


class Shuffle(NamedTuple):
    """A new row, of the elements ``order`` of two rows side by side."""

    first: int
    second: int
    order: tuple[int, ...]


@cache
def rounds(side: int, bits: int) -> tuple[tuple[Shuffle, ...], ...]:
    """The shuffles, round by round, for a square of `side` vectors of as many elements of so many bits."""
    if side * bits != _IN_HALVES or side == 1:
        return tuple(_interleaved(side, side) for _ in range(side.bit_length() - 1))
    half = side // 2
    low, high = (tuple(range(start, start + half)) for start in (0, half))
    joined = tuple(
        Shuffle(k, k + half, (*part, *(side + n for n in part))) for part in (low, high) for k in range(half)
    )
    return joined, *(_interleaved(side, half) for _ in range(half.bit_length() - 1))


def _interleaved(side: int, part: int) -> tuple[Shuffle, ...]:
    """Rows k and k + part/2 of every `part` rows in turn, within every `part` elements: their first halves make a row,
    then their second ones."""
    found: list[Shuffle] = []
    for top in range(0, side, part):
        for k in range(top, top + part // 2):
            for start in (0, part // 2):
                taken = [left + start + n for left in range(0, side, part) for n in range(part // 2)]
                found.append(Shuffle(k, k + part // 2, tuple(n for one in taken for n in (one, side + one))))
    return tuple(found)
