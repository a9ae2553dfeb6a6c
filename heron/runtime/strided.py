"""Convolutions as sums in registers, as plain data."""

from __future__ import annotations

from functools import cached_property
from math import prod

from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of a loop: offsets in elements into the three arrays, and how many products are summed in it."""

    out: int
    lhs: int
    rhs: int
    count: int = 1


Walk = tuple[Step, ...]


@dataclass(frozen=True)
class Loop:
    """A step of `walk` at a time, in which ``count`` products are summed, ``lhs`` and ``rhs`` elements apart."""

    walk: Walk
    lhs: int = 0
    rhs: int = 0

    @cached_property
    def products(self) -> int:
        """The products of all its steps."""
        return sum([s.count for s in self.walk])

    @cached_property
    def longest(self) -> int:
        """The most products of a step."""
        return max([s.count for s in self.walk], default=0)


@dataclass(frozen=True)
class Rows:
    """Rows of a result that sum over the same things: an offset into ``out`` for each, and for each step one into rhs
    and one into lhs for each row, None where the row adds nothing.
    """

    outs: tuple[int, ...]
    steps: tuple[tuple[int, tuple[int | None, ...]], ...]

    @cached_property
    def spans(self) -> dict[tuple[int, int], int]:
        """The number of steps that add to the rows from one to before another, and to no others."""
        found: dict[tuple[int, int], int] = {}
        for _, places in self.steps:
            start, stop = 0, len(places)
            while start < stop and places[start] is None:
                start += 1
            while start < stop and places[stop - 1] is None:
                stop -= 1
            if start < stop:
                found[start, stop] = found.get((start, stop), 0) + 1
        return found

    @cached_property
    def has_padding(self) -> bool:
        """Whether a step adds nothing to some row."""
        return any(None in places for _, places in self.steps)


@dataclass(frozen=True, slots=True)
class Tiling:
    """Rows of ``columns`` neighbours in ``out`` and rhs, at every combination of steps of `loops`.

    Each is the sum over the rows' steps and over what is counted in the loops, the last one innermost, of an element of
    lhs times a row of rhs; or, if ``lanewise``, of as many neighbours in lhs times a row of rhs, one by one. ``chunk``
    says how many steps of the first summed loop go before all of the next: what they read stays in the cache.
    """

    loops: tuple[Loop, ...]
    rows: tuple[Rows, ...]
    columns: int
    lanewise: bool
    chunk: int

    @property
    def summary(self) -> str:
        """A short description."""
        rows = sum(len(rows.outs) for rows in self.rows)
        places = prod(len(loop.walk) for loop in self.loops)
        longest = prod(loop.longest for loop in self.loops)
        steps = max((len(rows.steps) for rows in self.rows), default=0) * longest
        return f"{places} sums of {rows}x{self.columns}x{steps}" + " by lanes" * self.lanewise
