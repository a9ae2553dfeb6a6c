"""Shadow memory: the last access to each byte (`Shadow`), and the bytes ever written (`Written`)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from heron.buffers.assignment import Allocation, Slice
from heron.errors import HeronError
from heron.runtime.sim.code import Access, KernelCode
from heron.runtime.sim.state import CELL, CHECKS, WRITE, Row

_LAST_TICK = 1 << 31  # a launch this late starts again with clean cells

Buffer = tuple[int, int]


class Shadow:
    """Cells for the races of one run's launches. Ticks only grow: what an earlier launch left is known as old."""

    def __init__(self) -> None:
        self._cells = np.zeros(0, np.uint64)
        self.tick = 0

    def cells(self, count: int) -> int:
        """The address of that many cells, for the launch about to begin. Raises RUN010 when memory is short."""
        if self._cells.size < count * CELL or self.tick > _LAST_TICK:
            try:
                self._cells = np.zeros(max(count * CELL, self._cells.size), np.uint64)
            except MemoryError as e:
                size = f"{8 * CELL * count:,} bytes"
                raise HeronError(
                    "RUN010", f"no memory to watch for races: {size}", hint="a smaller program, or fewer checks"
                ) from e
            self.tick = 0
        return self._cells.ctypes.data


def make_rows(buffers: Sequence[Buffer], valid: Sequence[int], code: KernelCode, shadow: Shadow) -> ctypes.Array[Row]:
    """The table of memory a launch may access: its buffers, then its globals.

    Buffers that overlap share their cells. Memory that the kernel never writes needs none: reads do not race.
    """
    names, globals_, accesses, checks = code.arguments, code.globals_, code.accesses(), code.checks
    rows = (Row * max(len(buffers) + len(globals_), 1))()
    for n, (address, size) in enumerate(buffers):
        rows[n] = Row(address, size, None, valid[n] or None, _granule(names[n], accesses), 0)
    for n, o in enumerate(globals_, len(buffers)):
        rows[n] = Row(0, o.size, None, None, _granule(f"@{o.name}", accesses), o.shared)
    places: list[tuple[Row, int]] = []  # (row, its first cell)
    count = 0
    if checks & CHECKS["races"]:
        for region in _regions(rows[: len(buffers)]):
            if not any(_written(names[n], accesses) for n in region):
                continue
            start, end = rows[region[0]].base, max(rows[n].base + rows[n].length for n in region)
            granule = min(rows[n].granule for n in region)
            while any((rows[n].base - start) % granule for n in region):
                granule //= 2
            for n in region:
                rows[n].granule = granule
                places.append((rows[n], count + (rows[n].base - start) // granule))
            count += -(-(end - start) // granule)
    if checks & (CHECKS["races"] | CHECKS["uninit"]):
        for n, o in enumerate(globals_, len(buffers)):
            if not o.shared:
                continue
            places.append((rows[n], count))
            count += -(-o.size // rows[n].granule)
    base = shadow.cells(count)
    for row, first in places:
        row.cells = base + 8 * CELL * first
    return rows


def _granule(name: str, accesses: Sequence[Access]) -> int:
    """The most bytes that accesses of that memory take whole."""
    sizes = [min(a.size & -a.size, a.align) for a in accesses if a.root in (name, "")]
    return min(sizes, default=1)


def _written(name: str, accesses: Sequence[Access]) -> bool:
    return any(a.kind == WRITE and a.root in (name, "") for a in accesses)


def _regions(rows: Sequence[Row]) -> list[list[int]]:
    """Numbers of the rows, those that overlap together, each group by address."""
    groups: list[list[int]] = []
    end = 0
    for n in sorted((n for n in range(len(rows)) if rows[n].length), key=lambda n: rows[n].base):
        if groups and rows[n].base < end:
            groups[-1].append(n)
        else:
            groups.append([n])
        end = max(end, rows[n].base + rows[n].length)
    return groups


class Written:
    """The bytes of a program's memory that hold a value: one byte for each of temps and outputs, none for the rest."""

    def __init__(self, allocations: Sequence[Allocation]) -> None:
        self._bytes = {
            a.number: np.zeros(a.size, np.uint8) for a in allocations if a.kind not in ("parameter", "constant")
        }

    def part(self, s: Slice) -> np.ndarray | None:
        """The slice's bytes; None when all of it always holds a value."""
        held = self._bytes.get(s.allocation)
        return None if held is None else held[s.offset : s.offset + s.size]

    def address(self, s: Slice) -> int:
        """The address of the slice's bytes; 0 if there are none."""
        part = self.part(s)
        return 0 if part is None else part.ctypes.data

    def mark(self, s: Slice, value: int = 1) -> None:
        part = self.part(s)
        if part is not None:
            part[...] = value

    def copy(self, origin: Slice, target: Slice) -> None:
        """The target's bytes hold what the origin's do."""
        known, part = self.part(origin), self.part(target)
        if part is not None:
            part[...] = 1 if known is None else known[: part.size]

    def missing(self, s: Slice, size: int) -> int | None:
        """The first of the slice's ``size`` bytes that holds no value."""
        part = self.part(s)
        if part is None or part[:size].all():
            return None
        return int(np.argmin(part[:size]))
