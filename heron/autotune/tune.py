"""The loop: every candidate of every fragment is checked and measured, within a budget of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Protocol

from heron.errors import HeronError
from heron.lockfile import Choice
from heron.passes.framework.measured import Fragment, who
from heron.records import dataclass

_INTERRUPTED = "interrupted"


class Measure(Protocol):
    """A function that measures a candidate."""

    def __call__(self, fragment: Fragment, way: str) -> float:
        """Seconds of one run. Raises HeronError when the candidate cannot be built, cannot run, or is wrong."""
        ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to do a fragment: who computes it, seconds by the model and as measured; ``refused``: why it is out."""

    way: str
    who: str
    model: float | None
    seconds: float | None = None
    refused: str = ""


@dataclass
class Decision:
    """All that was tried of a fragment, and what was chosen; no choice where nothing could be measured."""

    fragment: Fragment
    candidates: list[Candidate] = field(default_factory=list)
    choice: Choice | None = None


@dataclass
class Result:
    """``decisions`` in order, fragments ``skipped`` because no time was left.

    ``stopped``: why it ended before all was measured: by the user, or because the device was lost.
    """

    decisions: list[Decision] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    stopped: str = ""

    @property
    def is_interrupted(self) -> bool:
        """Whether the user ended it."""
        return self.stopped == _INTERRUPTED

    @property
    def choices(self) -> list[Choice]:
        """The choices to keep."""
        return [d.choice for d in self.decisions if d.choice is not None]

    @property
    def refused(self) -> list[tuple[str, str, str]]:
        """Candidates that are out: fragment, way, why."""
        return [(d.fragment.name, c.way, c.refused) for d in self.decisions for c in d.candidates if c.refused]

    def add(self, other: Result) -> None:
        """Take in what came after."""
        self.decisions += other.decisions
        self.skipped += other.skipped
        self.stopped = other.stopped


def tune(
    fragments: Iterable[Fragment],
    device: str,
    measure: Measure,
    *,
    budget: float = 600.0,
    ways: Callable[[Fragment], tuple[str, ...]] = lambda f: f.ways,
    progress: Callable[[str], None] = lambda _: None,
    keep: Callable[[Choice], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> Result:
    """Measure all candidates; the quickest of each fragment becomes its choice.

    Args:
        device: the name choices are kept under.
        budget: seconds; what is not begun by then is skipped.
        ways: the candidates of a fragment; a device's libraries know more of them.
        progress: told of each candidate as a line.
        keep: told of each choice as soon as it is made.

    Ctrl-C ends it with what was found so far, a fragment's candidates that were measured included.
    """
    end, result = clock() + budget, Result()
    for fragment in fragments:
        if clock() >= end or result.stopped:
            result.skipped.append(fragment.name)
            continue
        decision = Decision(fragment)
        result.decisions.append(decision)
        try:
            candidates = _ways(fragment, ways, decision, result)
            for n, way in enumerate(candidates, 1):
                if (decision.candidates and clock() >= end) or result.stopped:
                    break
                progress(f"{fragment.name}: {way} ({n} of {len(candidates)})")
                _try(fragment, way, measure, decision, result)
        except KeyboardInterrupt:
            result.stopped = _INTERRUPTED
        decision.choice = _choice(decision, device)
        if decision.choice is not None:
            keep(decision.choice)
    return result


def _ways(
    fragment: Fragment, ways: Callable[[Fragment], tuple[str, ...]], decision: Decision, result: Result
) -> tuple[str, ...]:
    """The candidates; none, with the reason kept, where the device cannot say."""
    try:
        return ways(fragment)
    except HeronError as error:
        _refuse(fragment, fragment.ways[0], error, decision, result)
        return ()


def _try(fragment: Fragment, way: str, measure: Measure, decision: Decision, result: Result) -> None:
    """Measure a candidate; a refusal is kept with its reason, and the last one when the device is lost."""
    try:
        seconds = measure(fragment, way)
    except HeronError as error:
        _refuse(fragment, way, error, decision, result)
    else:
        decision.candidates.append(Candidate(way, who(way), fragment.model.get(way), seconds))


def _refuse(fragment: Fragment, way: str, error: HeronError, decision: Decision, result: Result) -> None:
    if error.code == "RUN054":
        result.stopped = error.what
        return
    why = f"{error.what}: {error.why}" if error.why else error.what
    decision.candidates.append(Candidate(way, who(way), fragment.model.get(way), None, why))


def _choice(decision: Decision, device: str) -> Choice | None:
    """The quickest; of equals the one the model likes better."""
    times = [(c.seconds, c.way) for c in decision.candidates if c.seconds is not None]
    if not times:
        return None
    (best, way), *others = sorted(times, key=lambda pair: pair[0])
    second, runner_up = others[0] if others else (0.0, "")
    fragment = decision.fragment
    return Choice(device, fragment.key, fragment.name, way, best * 1e6, runner_up, second * 1e6)
