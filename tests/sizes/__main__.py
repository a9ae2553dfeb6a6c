"""``python -m tests.sizes``: every op that kernels, libraries or native code compute, at every class of size.

Sizes are none, one, two, odd, prime, around the tiles of kernels, and long; orders in memory and ranks are drawn. Every
case is compiled for the CPU, small ones also for the simulated GPU, and compared with the evaluator. ``--huge`` runs
arrays of more than 2^31 bytes instead: each takes up to 12 GiB of memory.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from heron.cli.series import series
from tests import children
from tests.sizes.case import Case
from tests.sizes.jobs import known, one
from tests.sizes.run import TARGETS, Outcome


def main(arguments: list[str] | None = None) -> int:
    """Run and print. 1 when anything is not right."""
    parser = argparse.ArgumentParser(prog="python -m tests.sizes", description=__doc__)
    parser.add_argument("--family", default="", help="only these, by commas")
    parser.add_argument("--label", default="", help="only cases whose label holds this")
    parser.add_argument("--target", action="append", help=f"default: {' '.join(TARGETS)}")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth case")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="with --every: the first case")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="for one case")
    parser.add_argument("--huge", action="store_true", help="arrays of more than 2^31 bytes instead")
    parser.add_argument("--list", action="store_true", help="print the cases' names; run nothing")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    chosen = parser.parse_args(arguments)
    names = frozenset(filter(None, chosen.family.split(",")))
    found = [c for c in known(chosen.huge) if (not names or c.family in names) and chosen.label in c.label]
    found = found[chosen.offset :: chosen.every]
    if chosen.list:
        print("\n".join(c.name for c in found))
        return 0
    outcomes: list[tuple[Case, Outcome]] = []
    with series("cases", len(found), chosen.json) as work:
        runs = _run(found, tuple(chosen.target or TARGETS), chosen.jobs, chosen.timeout, chosen.huge)
        for case, results in work.over(runs):
            outcomes += [(case, o) for o in results]
            for o in results:
                if o.found != "ok":
                    print(f"{case.name}: {o.target}: {o.found}: {o.detail}", file=sys.stderr, flush=True)
    if chosen.json:
        print(json.dumps([{"case": c.name, **dataclasses.asdict(o)} for c, o in outcomes], indent=1))
    else:
        _report(outcomes)
    return work.code(any(o.found != "ok" for _, o in outcomes))


def _run(
    cases: list[Case], targets: tuple[str, ...], jobs: int, seconds: float, is_huge: bool
) -> Iterator[tuple[Case, Sequence[Outcome]]]:
    """Each case, as it is over, with its outcome on every target."""
    numbers = {c.name: n for n, c in enumerate(known(is_huge))}
    work = [(is_huge, numbers[c.name], targets) for c in cases]
    runs = children.results(one, work, jobs, seconds)
    for n, result in runs:
        yield cases[n], [Outcome("", "fails", str(result))] if isinstance(result, children.Lost) else result


def _report(outcomes: list[tuple[Case, Outcome]]) -> None:
    """A line for each family and target; then what is not right, by what was said."""
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for case, outcome in outcomes:
        rows[case.family, outcome.target][outcome.found] += 1
    for (family, target), counts in rows.items():
        print(f"{family:24} {target:10} " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    reasons: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for case, outcome in outcomes:
        if outcome.found != "ok":
            reasons[case.family, outcome.target, outcome.detail].append(case.label)
    for (family, target, detail), labels in reasons.items():
        print(f"{family} on {target}: {detail}\n    {len(labels)} times, first {labels[0]}")
    print(", ".join(f"{n} {what}" for what, n in Counter(o.found for _, o in outcomes).most_common()) or "no case")


if __name__ == "__main__":
    sys.exit(main())
