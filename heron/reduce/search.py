"""The search for a smaller case that shows the same fault: delta debugging over kinds of edits.

Each kind names atoms of the program. All of them are taken away at once, then halves, quarters and so on, until each
alone was tried; what still shows the fault and is smaller is the new best. Kinds follow each other until none does
anything more. Candidates are made in a fixed order and the first of a batch that shows the fault counts, so the result
does not depend on how fast the processes are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from heron.records import dataclass
from heron.reduce.case import Case
from heron.reduce.checks import Finding, is_same
from heron.reduce.draft import Draft
from heron.reduce.edits import KINDS, WINDOWS, Kind, around
from heron.reduce.pool import Pool
from heron.reduce.recorded import Recorded
from heron.reduce.store import Store

#: parts of a window that are tried: (begin, end) of the atoms, as fractions
_WINDOWS = ((0, 0.5), (0.5, 1), (0.25, 0.75), (0, 0.75), (0.25, 1))
#: instructions in the first window around a place of the fault, and how many times more there are in the next
_NEAR, _WIDER = 4, 3


@dataclass
class Progress:
    """The state of a search: the kind at work, the best case, the programs tried."""

    kind: str
    best: Case
    tried: int
    seconds: float


class OutOfTime(Exception):
    """The time is used up."""


class Search:
    """A search from `start`, whose fault is `first`.

    Args:
        seconds: how long the search may take; None: until nothing gets smaller.
        on_progress: called before each batch and after each step forward.
    """

    def __init__(
        self,
        start: Case,
        first: Finding,
        pool: Pool,
        store: Store,
        jobs: int = 1,
        seconds: float | None = None,
        on_progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self.best, self.first, self.finding = start, first, first
        self._pool, self._store, self._jobs = pool, store, jobs
        self._begun, self._seconds = time.monotonic(), seconds
        self._recorded = self._values(start)
        self._on_progress, self._kind, self.tried = on_progress, "", 0

    def run(self) -> bool:
        """Search; whether nothing smaller is left, or else the time was up. The best case is in `best`, and stored."""
        try:
            while True:
                before = self.best
                self._look_near()
                for kind in KINDS:
                    self._kind = kind.name
                    self._narrow(kind) if kind.narrows else self._thin(kind)
                if self.best is before:
                    return True
        except OutOfTime:
            return False

    def _thin(self, kind: Kind) -> None:
        """Take atoms away: all, halves, quarters, each."""
        count = len(kind.atoms(self.best.module))
        size = min(count, kind.together or count)
        while size:
            place = 0
            while place < len(atoms := kind.atoms(self.best.module)):
                starts = range(place, len(atoms), size)
                taken = self._first(kind, (atoms[n : n + size] for n in starts))
                if taken is None:
                    break
                place = starts[taken]  # what came after it is there now
            size //= 2

    def _look_near(self) -> None:
        """Keep what is around the likeliest place of the fault, or around all of them: a little, then more."""
        self._kind = WINDOWS.name
        places, groups = self.finding.near, []
        for count in dict.fromkeys((1, len(places))):
            names, size = around(self.best.module, places[:count]), _NEAR * count
            while size < len(names):
                groups.append(names[:size])
                size *= _WIDER
        self._first(WINDOWS, iter(sorted(groups, key=len)))

    def _narrow(self, kind: Kind) -> None:
        """Keep one part of the atoms, and of that one part, as long as one will do."""
        while (count := len(atoms := kind.atoms(self.best.module))) > 1:
            parts = [atoms[int(a * count) : int(b * count)] for a, b in _WINDOWS]
            if self._first(kind, (p for p in parts if 0 < len(p) < count)) is None:
                return

    def _first(self, kind: Kind, groups: Iterator[Sequence[str]]) -> int | None:
        """Try groups of atoms in order; which one made the best case smaller, if any."""
        batch: list[tuple[int, Case]] = []
        for n, group in enumerate(groups):
            case = self._made(kind, group)
            if case is not None:
                batch.append((n, case))
            if len(batch) >= self._jobs:
                found = self._judged(batch)
                if found is not None:
                    return found
                batch = []
        return self._judged(batch)

    def _made(self, kind: Kind, group: Sequence[str]) -> Case | None:
        draft = Draft(self.best, self._recorded)
        try:
            case = draft.finish() if kind.apply(draft, group) else None
        except Exception:  # an edit that cannot be made is no candidate, whatever the reason
            return None
        return case if case is not None and case.size < self.best.size else None

    def _judged(self, batch: list[tuple[int, Case]]) -> int | None:
        """The number of the first case of the batch that shows the fault; it becomes the best."""
        if self._seconds is not None and time.monotonic() - self._begun > self._seconds:
            raise OutOfTime
        self._tell()
        unknown = [c for _, c in batch if c.key not in self._store.tried]
        findings = dict(zip((c.key for c in unknown), self._pool.findings(unknown), strict=True))
        for case in unknown:
            self.tried += 1
            self._store.note(case, is_same(self._pool.check, self.first, findings[case.key]))
        for n, case in batch:
            if self._store.tried[case.key]:
                self._accept(case, findings.get(case.key, self.first))
                return n
        return None

    def _accept(self, case: Case, finding: Finding) -> None:
        self.best, self.finding = case, finding
        self._recorded = self._values(case)
        self._store.keep(case, self._pool.check, finding)
        self._tell()

    def _values(self, case: Case) -> Recorded:
        return Recorded(case.module, case.inputs, self._pool.check.reads_inputs)

    def _tell(self) -> None:
        self._on_progress(Progress(self._kind, self.best, self.tried, time.monotonic() - self._begun))
