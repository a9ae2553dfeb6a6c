"""Parallel moves: several copies that read before any writes, put into an order, with spills where they form a ring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from heapq import heappop, heappush
from typing import Any

from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Move:
    """A move from place `source` to place `target`; `key` names it."""

    key: Any
    source: Hashable
    target: Hashable


def sequence(moves: list[Move]) -> list[tuple[Move, bool]]:
    """The moves in an order in which no target is written while another move still has to read it.

    An entry (move, True) saves the move's source in a fresh place first; the move then reads from there. One per ring,
    as a swap needs three copies.
    """
    order: list[tuple[Move, bool]] = []
    readers = Counter(m.source for m in moves)  # that still have to read a place
    writers: dict[Hashable, list[int]] = {}
    for n, m in enumerate(moves):
        writers.setdefault(m.target, []).append(n)
    done, saved = set[int](), set[int]()

    def is_ready(n: int) -> bool:
        m = moves[n]
        return readers[m.target] == (m.source == m.target and n not in saved)

    def has_read(n: int) -> None:
        place = moves[n].source
        readers[place] -= 1
        for other in writers.get(place, ()):
            if is_ready(other):
                heappush(ready, other)

    ready = [n for n in range(len(moves)) if is_ready(n)]
    for first in range(len(moves)):
        while first not in done:
            if not ready:
                order.append((moves[first], True))
                saved.add(first)
                has_read(first)
                continue
            n = heappop(ready)
            if n in done:
                continue
            order.append((moves[n], False))
            done.add(n)
            if n not in saved:
                has_read(n)
    return order
