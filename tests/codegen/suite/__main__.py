"""``python -m tests.codegen.suite``: every op, hero and type; a table of what is right, refused and wrong.

``--hero``, ``--type`` and ``--op`` take comma-separated names and make it shorter. Kernels are verified as emitted and
after their last step; ``--verify`` does so after every step, which takes five times as long.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable

from tests.codegen.suite.heroes import PLACES
from tests.codegen.suite.movers import MOVERS, run_movers
from tests.codegen.suite.ops import table
from tests.codegen.suite.run import Outcome, run
from tests.codegen.suite.values import TYPES


def main(arguments: list[str] | None = None) -> int:
    """Run and print. 1 when anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.codegen.suite", description=__doc__)
    for name in ("hero", "type", "op"):
        parser.add_argument(f"--{name}", default="", help="only these, comma-separated")
    parser.add_argument("--verify", action="store_true", help="verify kernels after every step")
    chosen = parser.parse_args(arguments)
    each = chosen.verify
    wanted = {name: frozenset(filter(None, getattr(chosen, name).split(","))) for name in ("hero", "type", "op")}
    ops = [op for op in table() if not wanted["op"] or op.name in wanted["op"]]
    movers = [m for m in MOVERS if not wanted["op"] or m.name in wanted["op"]]
    outcomes: list[Outcome] = []
    for t in TYPES:
        if wanted["type"] and t.name not in wanted["type"]:
            continue
        for hero, after in PLACES:
            if wanted["hero"] and hero.name not in wanted["hero"]:
                continue
            print(f"{t} {hero.name} {'epilogue' if after else 'prologue'}", file=sys.stderr, flush=True)
            outcomes += told(run(hero, t, after, ops, each))
            outcomes += told(run_movers(hero, t, movers, each)) if not after else []
    report(outcomes)
    return any(o.found == "differs" for o in outcomes)


def told(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """The outcomes; what differs is told at once, for a run takes long."""
    found = list(outcomes)
    for o in found:
        if o.found == "differs":
            where = f"{o.op} {o.type} {o.hero} {o.place} {o.target}"
            print(f"differs: {where}: {o.detail.splitlines()[0]}", file=sys.stderr, flush=True)
    return found


def report(outcomes: list[Outcome]) -> None:
    """A line for each op: for each hero, what was found on how many types and targets. Then what is not right."""
    cells: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    columns = list(dict.fromkeys((o.hero, o.place) for o in outcomes))
    for o in outcomes:
        cells[o.op, f"{o.hero} {o.place}"][o.found] += 1
    for op in dict.fromkeys(o.op for o in outcomes):
        found = {f"{hero} {place}": cells.get((op, f"{hero} {place}")) for hero, place in columns}
        texts = (f"{name}: {', '.join(f'{n} {what}' for what, n in c.items())}" for name, c in found.items() if c)
        print(f"{op:32} {'; '.join(texts)}")
    print()
    reasons: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for o in outcomes:
        if o.found != "ok":
            first = o.detail.split("\n")[0]
            reasons[o.found, o.op, first].append(f"{o.type} {o.hero} {o.place} {o.target}")
    for (found, op, detail), where in reasons.items():
        print(f"{found}: {op}: {detail}\n    {len(where)} times, first {where[0]}")
    print(", ".join(f"{n} {what}" for what, n in Counter(o.found for o in outcomes).most_common()))


if __name__ == "__main__":
    sys.exit(main())
