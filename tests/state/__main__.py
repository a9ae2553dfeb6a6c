"""``python -m tests.state --count 500``: sequences of compiles, runs, threads and caches; the same bits each time.

Each sequence is a process of its own: one of ten a new interpreter, the others forked from a process that has imported
heron and done nothing else. It compiles a few programs in some order, again and again, with the cache cold and warm,
runs them in turn and by several threads, and drops them. Every result has the bits the program gives alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from heron.cli.series import Series, series
from tests import children
from tests.state import programs, sequence

#: a process that has imported this is forked for most sequences
_WARM = "tests.state.warm"
#: one sequence of so many starts as an interpreter: imports, and the seed of hashes, are then its own
_COLD = 10


def main(arguments: list[str] | None = None) -> int:
    """Run and print. 1 when a sequence finds other bits, an error, or ends its process."""
    parser = argparse.ArgumentParser(prog="python -m tests.state", description=__doc__)
    parser.add_argument("--count", type=int, default=500, metavar="N", help="sequences")
    parser.add_argument("--start", type=int, default=0, metavar="N", help="number of the first")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at a time")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS", help="for one sequence")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    chosen = parser.parse_args(arguments)
    found: dict[int, Any] = {}
    with series("sequences", chosen.count, chosen.json) as work:
        for n, report in run(range(chosen.start, chosen.start + chosen.count), chosen.jobs, chosen.timeout, work):
            found[n] = report
    bad = {n: r for n, r in found.items() if isinstance(r, children.Lost) or r.problem}
    steps = sum(len(r.steps) for r in found.values() if isinstance(r, sequence.Report))
    if chosen.json:
        document = {"sequences": len(found), "steps": steps, "problems": {n: _words(r) for n, r in bad.items()}}
        print(json.dumps(document, indent=1))
    else:
        print(f"{len(found)} sequences of {steps} steps, {len(bad)} with a problem")
    return work.code(bad)


def run(
    numbers: Sequence[int], jobs: int = 1, seconds: float = 300.0, shown: Series | None = None
) -> Iterator[tuple[int, Any]]:
    """The sequences of these numbers with their reports (or `children.Lost`); problems are told as they are found."""
    shown = shown or Series()
    used = sorted({name for n in numbers for name in sequence.chosen(n)})
    alone: dict[str, list[str]] = {}
    for at, result in children.results(programs.alone, used, jobs, seconds, fresh=True, warm=_WARM):
        shown.say(0, f"{len(alone) + 1} of {len(used)} programs by themselves: {used[at]}")
        if isinstance(result, children.Lost):
            raise SystemExit(f"{used[at]} by itself: {result}")
        alone[used[at]] = result
    for n, report in shown.over(_sequences(numbers, alone, jobs, seconds)):
        if words := _words(report):
            print(f"sequence {n}: {words}", file=sys.stderr, flush=True)
        yield n, report


def _sequences(
    numbers: Sequence[int], alone: dict[str, list[str]], jobs: int, seconds: float
) -> Iterator[tuple[int, Any]]:
    """The reports by number, as they come; `alone` has the bits of each program by itself."""
    for warm in (_WARM, ""):
        those = [n for n in numbers if (n % _COLD == 0) != bool(warm)]
        work = [(n, {name: alone[name] for name in sequence.chosen(n)}) for n in those]
        for at, report in children.results(sequence.run, work, jobs, seconds, fresh=True, warm=warm):
            yield those[at], report


def _words(report: Any) -> str:
    if isinstance(report, children.Lost):
        return str(report)
    return f"{report.problem}\n    " + "\n    ".join(report.steps) if report.problem else ""


if __name__ == "__main__":
    sys.exit(main())
