"""Nodes of a section on several streams, where no graph is used: who runs where, and who waits for whom."""

from __future__ import annotations

from heron.records import dataclass
from heron.runtime.cuda.plan import Section

MOST = 4


@dataclass(frozen=True, slots=True)
class Turn:
    """A node's stream, the nodes on other streams it waits for, and whether nodes on other streams wait for it."""

    node: int
    stream: int
    waits: tuple[int, ...]
    awaited: bool


def assign(section: Section, most: int = MOST) -> list[Turn]:
    """A stream for each node: that of a node it waits for, if it is the last there, else one with nothing left to do.

    Stream 0 is the main one; whatever ends on another is awaited by it at the end (`ends`).
    """
    last: list[int] = [-1]  # the last node of each stream
    streams: list[int] = []
    waits: list[tuple[int, ...]] = []
    for n, node in enumerate(section.nodes):
        own = next((streams[m] for m in reversed(node.after) if last[streams[m]] == m), None)
        if own is None and not node.after and last[0] == -1:
            own = 0
        if own is None and len(last) < most:
            own = len(last)
            last.append(-1)
        if own is None:
            own = n % most
        waits.append(tuple(m for m in node.after if streams[m] != own))
        streams.append(own)
        last[own] = n
    awaited = {m for w in waits for m in w} | {m for s, m in enumerate(last) if s and m >= 0}
    return [Turn(n, streams[n], waits[n], n in awaited) for n in range(len(section.nodes))]


def ends(turns: list[Turn]) -> list[int]:
    """The last node on each side stream."""
    found: dict[int, int] = {}
    for turn in turns:
        if turn.stream:
            found[turn.stream] = turn.node
    return list(found.values())
