"""Looks after a launch on several GPUs: what fails on one device ends it on all, and who waits too long is named."""

from __future__ import annotations

import time
from collections.abc import Sequence

from heron.errors import HeronError
from heron.records import dataclass
from heron.runtime.collectives.report import Report
from heron.runtime.collectives.state import COMPUTES, ENDED
from heron.runtime.cuda.nccl.cliques import Clique, Cliques
from heron.runtime.cuda.nccl.crew import Job
from heron.runtime.cuda.nccl.exchanges import Place
from heron.runtime.thunks import CollectiveThunk

#: seconds between two looks at the devices, the first time and at most
_LOOK, _SELDOM = 2e-3, 0.1


@dataclass(frozen=True)
class Launch:
    """The devices of this process in one launch. ``timeout``: seconds that they may wait for others; 0: no limit."""

    jobs: Sequence[Job]
    places: Sequence[Place]
    collectives: Sequence[CollectiveThunk]
    cliques: Cliques
    acquired: Sequence[Clique]
    timeout: int

    def wait(self) -> BaseException | None:
        """Wait until all devices have ended, or something goes wrong: the error then, with some devices under way.

        The error is RUN087 for devices that wait for each other forever, RUN088 for one that comes too late to a
        collective, RUN095 for what NCCL reports, or what a device raised.
        """
        watch, error = _Watch(self), None
        try:
            while error is None and not all(job.done.is_set() for job in self.jobs):
                watch.sleep()
                error = self._failure() or watch.look()
        except BaseException as interrupt:  # Ctrl-C
            return interrupt
        return error or self._failure()

    def _failure(self) -> BaseException | None:
        """The first error of a device."""
        return next((job.error for job in self.jobs if job.failed), None)


class _Watch:
    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.seen: list[tuple[int, int, bool]] = []
        self.since = time.monotonic()
        self.pause = _LOOK
        self._begun = [place.progress.now[1] if place.progress is not None else 0 for place in launch.places]

    def sleep(self) -> None:
        """Until a device has ended, or some time has gone."""
        running = next((job for job in self.launch.jobs if not job.done.is_set()), None)
        if running is not None:
            running.done.wait(self.pause)
        self.pause = min(2 * self.pause, _SELDOM)

    def look(self) -> BaseException | None:
        """The error of the launch, if there is one."""
        if self.pause < _SELDOM:
            return None
        found = self.launch.cliques.error(self.launch.acquired)
        return found or self._waiting()

    def _waiting(self) -> HeronError | None:
        now = self._states()
        if now != self.seen:
            self.seen, self.since = now, time.monotonic()
            return None
        spent, limit = time.monotonic() - self.since, self.launch.timeout
        places = [self._at(n) for n in range(len(now))]
        numbers = [place.number for place in self.launch.places]
        report = Report(list(zip(numbers, places, strict=True)), [str(c) for c in self.launch.collectives])
        joining = [c.told for c in self.launch.acquired if not c.is_whole]
        if joining:
            return report.late_to_join(spent, joining) if limit and spent > limit else None
        if self._meets_ended(places):
            return report.stuck()
        if report.waiting and limit and spent > limit:
            return report.mismatch() if self._differ(places) else report.late(spent)
        return None

    def _states(self) -> list[tuple[int, int, bool]]:
        """Of each device: the collective that it has come to, how many, and whether it has ended."""
        found = []
        for job, place, first in zip(self.launch.jobs, self.launch.places, self._begun, strict=True):
            at, steps = place.progress.now if place.progress is not None else (COMPUTES, 0)
            found.append((at, steps - first, job.done.is_set()))
        return found

    def _group(self, n: int, at: int) -> list[int]:
        """The devices of this process in a device's group of a collective, by their place in the launch."""
        number = self.launch.places[n].number
        group = next((g for g in self.launch.collectives[at].groups if number in g), ())
        return [m for m, place in enumerate(self.launch.places) if place.number in group]

    def _at(self, n: int) -> int:
        """The collective at which a device waits. One that others of its group have left is behind it, too."""
        at, steps, ended = self.seen[n]
        if ended:
            return ENDED
        if at < 0 or any(self.seen[m][1] > steps for m in self._group(n, at)):
            return COMPUTES
        return at

    def _meets_ended(self, places: Sequence[int]) -> bool:
        """Whether a device waits for one that has ended before it came there."""
        return any(
            at >= 0 and any(places[m] == ENDED and self.seen[m][1] < self.seen[n][1] for m in self._group(n, at))
            for n, at in enumerate(places)
        )

    def _differ(self, places: Sequence[int]) -> bool:
        """Whether devices of one group have come to different collectives."""
        waiting = [(n, at) for n, at in enumerate(places) if at >= 0]
        return any(places[m] not in (at, COMPUTES, ENDED) for n, at in waiting for m in self._group(n, at))
