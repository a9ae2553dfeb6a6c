"""Every pass on every small workload: ``python -m tests.passes.workloads``.

Each pass runs alone on each program as JAX gives it and after ``simplify``, on the inputs of the goldens; then the cpu
and gpu pipelines run with the values checked after every pass. A table says on how many programs a pass changed
something, and what is wrong is told below it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from heron.cli.series import series
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from heron.targets import get as target
from tests.passes.alone import Subject, label, passes
from tests.support import NAMES, golden_values, program

#: a pipeline and the machine it is for
PIPELINES = {"cpu": "x86-64-v3", "gpu": "sm_90"}


@dataclass(frozen=True)
class Row:
    """What a pass or pipeline did to a workload; ``form`` is ``given``, ``simplified`` or ``pipeline``."""

    workload: str
    form: str
    step: str
    changed: bool
    problem: str


def given(name: str, platform: str = "cpu") -> tuple[Module, list[np.ndarray]]:
    """A small workload with the inputs of its golden."""
    module = parse(program(name, platform=platform).read_text())
    stored = np.load(golden_values(name))
    kept = json.loads(str(stored["meta"]))["kept_inputs"]
    types = [p.shape.element_type.dtype for p in module.entry.parameters]
    return module, [stored[f"in{k}"].view(t) for k, t in zip(kept, types, strict=True)]


def alone(name: str, names: Sequence[str] = (), forms: Sequence[str] = ("given", "simplified")) -> Iterator[Row]:
    """Every pass alone on a workload, as given and simplified."""
    module, inputs = given(name)
    for form in forms:
        if form == "simplified":
            PassContext().run_pass(registry.pipeline("simplify"), module)
        subject = Subject(module, [inputs], floor=2e-6)
        for step in passes(names):
            outcome = subject.under(step)
            yield Row(name, form, label(step), outcome.changed, outcome.problem)


def in_pipelines(name: str) -> Iterator[Row]:
    """A workload through the pipelines of the targets, values checked after every pass that changed something."""
    for pipeline, machine in PIPELINES.items():
        module = parse(program(name, platform="cpu" if pipeline == "cpu" else "cuda").read_text())
        ctx = PassContext(Options(check="values"), target=target(machine))
        try:
            changed = ctx.run_pass(registry.pipeline(pipeline), module)
            problem = "; ".join(ctx.trace.notes)
        except HeronError as error:
            changed, problem = True, str(error)
        yield Row(name, "pipeline", f"{pipeline}, after every pass", changed, problem)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.passes.workloads", description=__doc__.splitlines()[0])
    parser.add_argument("--workload", action="append", help=f"of {' '.join(NAMES)}")
    parser.add_argument("--pass", action="append", default=[], dest="names", metavar="NAME")
    arguments = parser.parse_args(argv)
    begun, rows = time.perf_counter(), list[Row]()
    chosen = arguments.workload or NAMES
    with series("workloads", len(chosen)) as work:
        for n, name in enumerate(chosen):
            found: list[Row] = []
            work.say(n, name)
            for row in chain(alone(name, arguments.names), [] if arguments.names else in_pipelines(name)):
                found.append(row)
                rows.append(row)
                work.say(n, f"{name}, after {row.step}")
            wrong = [r for r in found if r.problem]
            print(f"{name}: {sum(r.changed for r in found)} of {len(found)} changed it, {len(wrong)} wrong", flush=True)
            for r in wrong:
                print(f"  {r.step} ({r.form}): {r.problem}", flush=True)
    print(table(rows))
    print(f"{time.perf_counter() - begun:.0f} s")
    return work.code(any(r.problem for r in rows))


def table(rows: Sequence[Row]) -> str:
    """Passes down; on how many workloads each ran, changed something, and was wrong."""
    ran, changed, wrong = Counter[str](), Counter[str](), Counter[str]()
    for r in rows:
        ran[r.step] += 1
        changed[r.step] += r.changed
        wrong[r.step] += bool(r.problem)
    width = max(map(len, ran), default=0)
    lines = [f"{'pass':{width}}  {'ran':>5} {'changed':>8} {'wrong':>6}"]
    return "\n".join([*lines, *(f"{s:{width}}  {ran[s]:5} {changed[s]:8} {wrong[s]:6}" for s in ran)])


if __name__ == "__main__":
    sys.exit(main())
