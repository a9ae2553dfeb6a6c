"""Parallel moves: several copies that read before any writes, put into an order, with spills where they form a ring."""

from __future__ import annotations

from collections.abc import Hashable
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
    waiting = list(moves)
    saved: set[int] = set()
    while waiting:
        ready = [
            m for m in waiting if not any(o is not m and o.source == m.target and id(o) not in saved for o in waiting)
        ]
        if not ready:
            order.append((waiting[0], True))
            saved.add(id(waiting[0]))
            continue
        order += [(m, False) for m in ready[:1]]
        waiting.remove(ready[0])
    return order
