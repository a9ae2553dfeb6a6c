"""A whole reduction: is the fault there each time, search, and is it there still in what is on the disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from heron.errors import HeronError
from heron.records import dataclass
from heron.reduce.case import INPUTS, PROGRAM, Case
from heron.reduce.checks import FINE, Check, Finding, is_alike
from heron.reduce.pool import Pool
from heron.reduce.search import Progress, Search
from heron.reduce.store import Store

#: runs of the whole program that must all show the fault
_RUNS = 2
#: a smaller program may take that many times as long as the whole one, and some seconds
_PATIENCE, _GRACE = 4, 20


@dataclass(frozen=True)
class Plan:
    """The settings: the folder, processes at a time, limits in seconds, and files of passes and rules to load."""

    folder: Path
    jobs: int = 1
    seconds: float | None = None
    timeout: float | None = None
    loads: tuple[str, ...] = ()
    extra: str = ""  # options of `heron reduce` that the script repeats


@dataclass(frozen=True)
class Result:
    """A reduction's outcome. ``finished``: nothing smaller was left to try. ``culprit``: the pass behind it, if any."""

    start: Case
    best: Case
    finding: Finding
    culprit: str
    tried: int
    seconds: float
    finished: bool


def look(case: Case, check: Check, plan: Plan) -> Finding:
    """The outcome of the check on one case, in a child process."""
    with Pool(check, 1, plan.timeout, plan.loads) as pool:
        return pool.findings([case])[0]


def reduce(
    start: Case,
    check: Check,
    plan: Plan,
    on_progress: Callable[[Progress], None] = lambda _: None,
    reread: Callable[[Path, Path], Case] | None = None,
) -> Result:
    """Reduce a case; the best is in the plan's folder at every moment, and an earlier run there is taken up again.

    Args:
        reread: reads a case back from files of a program and its inputs.

    Raises CLI071 (no fault), CLI072 (the folder holds something else), CLI073 (another fault than the check is about),
    CLI074 (the fault comes and goes), CLI012.
    """
    begun = time.monotonic()
    start = start if check.reads_inputs else start.with_ones()
    store = Store(plan.folder, plan.extra)
    kept = store.open(start, check)
    with Pool(check, plan.jobs, plan.timeout, plan.loads) as pool:
        first = _first(start, check, pool)
        if plan.timeout is None:
            pool.seconds = _PATIENCE * (time.monotonic() - begun) + _GRACE
        best = _taken_up(start, kept, plan, reread)
        if best is start:
            store.keep(start, check, first)
        left = None if plan.seconds is None else plan.seconds - (time.monotonic() - begun)
        search = Search(best, first, pool, store, plan.jobs, left, on_progress)
        finished = search.run()
        last = pool.findings([search.best])[0]
        if not is_alike(first, last):
            raise _flaky(f"the smallest program, in '{plan.folder}', shows it no longer: {_said(last)}")
        culprit = pool.findings([search.best], blame=True)[0].culprit
    return Result(start, search.best, last, culprit, search.tried, time.monotonic() - begun, finished)


def _first(start: Case, check: Check, pool: Pool) -> Finding:
    """The fault of the whole program, which must be there each time."""
    found = pool.findings([start] * _RUNS)
    if all(f.kind == FINE for f in found):
        hint = "another check, other inputs (--inputs, --random), or another target"
        raise HeronError("CLI071", "the check finds no fault in the program", why=f"{_RUNS} runs were fine", hint=hint)
    other = next((f for f in found if f.kind not in (FINE, *check.kinds)), None)
    if other is not None:
        raise other_fault(other)
    if not all(is_alike(found[0], f) for f in found):
        raise _flaky("; ".join(f"run {n + 1}: {_said(f)}" for n, f in enumerate(found)))
    return min(found, key=lambda f: f.amount)


def other_fault(finding: Finding) -> HeronError:
    """The error for a fault that the check is not about."""
    hint = "--crashes reduces programs that fail" if finding.kind == "error" else None
    return HeronError("CLI073", "the program fails in another way", why=finding.text, hint=hint)


def _said(finding: Finding) -> str:
    return finding.text or "no fault"


def _flaky(why: str) -> HeronError:
    hint = "fewer --jobs, a longer --timeout, or for --slow-compile fewer seconds"
    return HeronError("CLI074", "the fault comes and goes", why=why, hint=hint)


def _taken_up(start: Case, kept: str, plan: Plan, reread: Callable[[Path, Path], Case] | None) -> Case:
    """The best case of an earlier run; `start` where there is none, or it was cut off while it was written."""
    if not kept or reread is None:
        return start
    try:
        found = reread(plan.folder / PROGRAM, plan.folder / INPUTS)
    except HeronError:
        return start
    return found if found.key == kept else start
