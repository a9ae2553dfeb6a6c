"""``python -m benchmarks.loops [NAME…]``: loops over data in CPU programs, heron beside XLA:CPU.

Both sides compile the program at full scale for this machine, each in a process of its own, and what counts is the HLO
they end with: an instruction that gives more than one element is a loop over data, be it a kernel (a fusion, or an
instruction left alone), a call of a library, or a copy. Those in a loop's body count as often as it runs, if that is
known; those in branches once.
"""

from __future__ import annotations

import datetime
import sys
from collections import Counter
from dataclasses import dataclass

import click

import heron
from benchmarks import programs, sections
from benchmarks.compare import Worker
from heron.analysis.cost.program import trips_of
from heron.errors import HeronError
from heron.hlo import facts
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module

#: ops that are handed to a library when they are not in a fusion
_LIBRARY = frozenset({"dot", "convolution", "fft", "cholesky", "triangular-solve", "custom-call", "topk"})


@dataclass(frozen=True, slots=True)
class Row:
    """One program: kernels, library calls and copies of both sides."""

    name: str
    ours: Counter[str]
    theirs: Counter[str]


def count(module: Module) -> Counter[str]:
    """Kernels, library calls and copies of a run of a module, as its compiler leaves it."""
    found: Counter[str] = Counter()
    _add(module.entry, 1, found)
    return found


def _add(c: Computation, times: int, found: Counter[str]) -> None:
    for i in c.instructions:
        if i.opcode == "while":
            trips = int(trips_of(i) or 1)
            _add(i.condition, times * (trips + 1), found)
            _add(i.body, times * trips, found)
        elif i.opcode in ("conditional", "call"):
            for called in i.called:
                _add(called, times, found)
        elif not facts.is_free(i) and _is_many(i):
            found[_kind(i)] += times


def _is_many(i: Instruction) -> bool:
    return any(s.num_elements > 1 for _, s in i.shape.leaves() if s.is_array)


def _kind(i: Instruction) -> str:
    if i.opcode == "copy":
        return "copies"
    return "libraries" if i.opcode in _LIBRARY else "kernels"


def table(rows: list[Row]) -> str:
    """A line for each program, the goal being no more in all than XLA has."""
    parts = f"{'kernels':>9}{'library':>9}{'copies':>8}"
    lines = [f"{'program':22}{'heron':>7}{parts}{'xla':>7}{parts}"]
    for r in rows:
        cells = [f"{c.total():7}{c['kernels']:9}{c['libraries']:9}{c['copies']:8}" for c in (r.ours, r.theirs)]
        lines.append(f"{r.name:22}{''.join(cells)}{'  more' if r.ours.total() > r.theirs.total() else ''}")
    worse = sum(r.ours.total() > r.theirs.total() for r in rows)
    ours, theirs = (sum(c.total() for c in side) for side in ([r.ours for r in rows], [r.theirs for r in rows]))
    lines.append(f"{len(rows)} programs: {ours} loops over data, XLA:CPU {theirs}; heron has more in {worse}")
    return "\n".join(lines)


_INTRO = """Loops over data in CPU programs at full scale, {today}, by `python -m benchmarks.loops --write`: kernels,
library calls and copies of arrays in the HLO that each compiler ends with, those in a loop's body as often as it runs,
heron beside XLA:CPU (jaxlib 0.10.2). The goal is no more than XLA:CPU on any program."""


def _counted(worker: Worker, name: str) -> Counter[str]:
    worker.ask(do="parse", path=str(programs.path(name)))
    worker.ask(do="compile")
    return count(heron.parse(worker.ask(do="optimised")["text"]))


@click.command()
@click.argument("names", nargs=-1)
@click.option("--peer-python", default=sys.executable, help="A Python that has jax, if this one has not.")
@click.option("--write", is_flag=True, help="Into docs/reference/benchmarks.md.")
def main(names: tuple[str, ...], peer_python: str, write: bool) -> None:
    """Count the loops over data of all programs (or NAMES) on both sides."""
    workers = Worker("heron"), Worker("xla", python=peer_python)
    rows: list[Row] = []
    try:
        for name in names or programs.names():
            click.echo(f"{name} …", err=True)
            rows.append(Row(name, *(_counted(w, name) for w in workers)))
    finally:
        for worker in workers:
            worker.close()
    text = table(rows)
    click.echo(text)
    if write:
        intro = _INTRO.format(today=datetime.date.today())
        sections.put("Loops over data on the CPU", f"{intro}\n\n```\n{text}\n```\n")


if __name__ == "__main__":
    try:
        main()
    except HeronError as error:
        sys.exit(error.render())
