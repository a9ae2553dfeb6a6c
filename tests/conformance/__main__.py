"""``python -m tests.conformance``: every case and the larger sweeps, as a table of ops and types.

--op NAME         only cases of that op
--quick           the cases the test-suite runs, without the sweeps
--generated N     that many generated programs as well (or, with --op generated, nothing else)
--start N         number of the first generated program
--target T        compile the cases for that target, and compare it with the evaluator instead of XLA
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from tests.conformance import compiled, conversions, coverage, elementwise, programs, structural
from tests.conformance.case import Case
from tests.conformance.disagreements import disagreements, refusals
from tests.conformance.runner import Outcome, run
from tests.conformance.values import ALL

#: verdict → mark in the table, worst first
MARKS = {"differ": "X", "documented": "d", "agree": "=", "refused": "r"}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--op", default="", help="only cases of that op")
    parser.add_argument("--quick", action="store_true", help="without the larger sweeps")
    parser.add_argument("--generated", type=int, default=0, metavar="N", help="that many generated programs, too")
    parser.add_argument("--start", type=int, default=0, metavar="N", help="number of the first generated program")
    parser.add_argument("--target", default="", metavar="T", help="cpu, sim:sm_90, …: its values instead of XLA's")
    arguments = parser.parse_args(argv)
    started = time.perf_counter()
    outcomes: list[Outcome] = []
    for outcome in _outcomes(arguments):
        outcomes.append(outcome)
        if outcome.verdict == "differ":
            print(f"{outcome.case.name}: {outcome.words}", flush=True)
    print(table(outcomes))
    counts = Counter(o.verdict for o in outcomes)
    print(f"{len(outcomes)} cases, {time.perf_counter() - started:.0f} s: {dict(counts)}")
    stale = [] if arguments.op or arguments.quick or arguments.target else unseen(outcomes)
    for words in stale:
        print(words)
    return 1 if counts["differ"] or stale else 0


def all_cases(full: bool) -> Iterator[Case]:
    """Every family's cases."""
    yield from elementwise.cases(full)
    yield from conversions.cases(full)
    yield from coverage.cases()
    yield from structural.cases()


def _outcomes(arguments: argparse.Namespace) -> Iterator[Outcome]:
    if arguments.target:
        cases = [c for c in compiled.cases(not arguments.quick) if arguments.op in ("", c.op)]
        yield from compiled.run(cases, arguments.target)
        return
    batch: list[Case] = []
    for case in all_cases(not arguments.quick):
        if arguments.op in ("", case.op):
            batch.append(case)
        if len(batch) == 150:
            yield from run(batch)
            batch = []
    yield from run(batch)
    yield from programs.run(arguments.generated, arguments.start)


def table(outcomes: Iterable[Outcome]) -> str:
    """Ops down, types across: the worst outcome of the cases about both."""
    cells: dict[str, dict[str, str]] = defaultdict(dict)
    order = list(MARKS)
    for o in outcomes:
        row = cells[o.case.op]
        row[o.case.type] = min(o.verdict, row.get(o.case.type, o.verdict), key=order.index)
    width = max(map(len, cells), default=0)
    lines = [f"{'':{width}}  " + " ".join(ALL)]
    for op in sorted(cells):
        marks = [f"{MARKS.get(cells[op].get(t, ''), '.'):^{len(t)}}" for t in ALL]
        others = [f"{t}: {MARKS[v]}" for t, v in cells[op].items() if t not in ALL]
        lines.append(f"{op:{width}}  " + " ".join(marks + others).rstrip())
    lines.append("= agree, d differ as written down, r refused by XLA:CPU, X differ, . not run")
    return "\n".join(lines)


def unseen(outcomes: list[Outcome]) -> list[str]:
    """Known disagreements and refusals that nothing showed: to be taken out."""
    used = {d for o in outcomes for d in o.used}
    cases = [o.case for o in outcomes]
    words = [f"no case differs as written down: {d.case} {d.where}" for d in disagreements() if d not in used]
    return words + [f"no case is about: {r.case}" for r in refusals() if not any(map(r.covers, cases))]


if __name__ == "__main__":
    sys.exit(main())
