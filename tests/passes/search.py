"""Looks for odd programs on which a pass breaks: ``python -m tests.fuzz --passes --count 2000``.

Every pass runs alone on every program, then some run one after the other in an order drawn for it. Each kind of fault
is made small and written once, with the passes that show it in a ``RUN`` line.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heron.cli.series import series
from heron.hlo.ir.module import Module
from heron.hlo.text import print_module
from heron.passes.framework.base import Pass
from tests.hlo.odd import OddProgram, odd
from tests.hlo.reduction import reduced
from tests.passes.alone import ROUNDS, Subject, label, passes

#: passes in a row on one program
ROW = 16


@dataclass(frozen=True)
class Fault:
    """A pass, what is wrong, and the program (one for each kind of fault is made small)."""

    step: Pass
    problem: str
    program: OddProgram
    seed: int

    @property
    def kind(self) -> tuple[str, str]:
        """What tells faults apart: the pass, and the words of the problem without numbers and names."""
        return self.step.name, re.sub(r"'[^']*'|[\d.%]+|\(.*", "", self.problem)[:60]


def faults(seeds: Iterable[int], names: Sequence[str] = (), steps: int = 10) -> Iterator[Fault]:
    """All that is wrong on the odd programs of those numbers."""
    all_passes = passes(names)
    for seed in seeds:
        program = odd(seed, steps)
        if program is None:
            continue
        subject = Subject(program.module, [program.inputs])
        for step in all_passes:
            outcome = subject.under(step)
            if outcome.problem:
                yield Fault(step, outcome.problem, program, seed)
        yield from _in_a_row(subject, program, all_passes, seed)


def _in_a_row(subject: Subject, program: OddProgram, all_passes: list[Pass], seed: int) -> Iterator[Fault]:
    random = np.random.default_rng(seed)
    module = subject.module.clone()
    for at in random.permutation(len(all_passes))[:ROW]:
        step, before = all_passes[at], module.clone()
        outcome = subject.after(step, module, before)
        if outcome.problem:
            yield Fault(step, outcome.problem, OddProgram(before, program.inputs), seed)
            return
        module.schedule = None  # which would bind the passes that follow
        if outcome.changed and step.name in ROUNDS:
            subject = Subject(module.clone(), [program.inputs])


def smaller(fault: Fault) -> OddProgram:
    """A small program with the same kind of fault."""

    def fails(module: Module, inputs: list[np.ndarray]) -> bool:
        try:
            outcome = Subject(module, [inputs]).under(fault.step)
        except Exception:
            return False
        return bool(outcome.problem) and Fault(fault.step, outcome.problem, fault.program, 0).kind == fault.kind

    if not fails(fault.program.module, fault.program.inputs):
        return fault.program
    return OddProgram(*reduced(fault.program.module, fault.program.inputs, fails))


def search(count: int, start: int, out: Path, names: Sequence[str] = (), steps: int = 10) -> int:
    """Try that many programs, write what is found into `out`; gives the exit code: 1 where a pass is at fault."""
    begun, seen = time.perf_counter(), dict[tuple[str, str], int]()
    out.mkdir(parents=True, exist_ok=True)
    with series("programs", count) as work:
        for fault in faults(work.over(range(start, start + count)), names, steps):
            seen[fault.kind] = seen.get(fault.kind, 0) + 1
            if seen[fault.kind] > 1:
                continue
            program = smaller(fault)
            path = out / f"{fault.step.name}.{fault.seed}.hlo"
            path.write_text(
                f"// RUN: heron opt %s -p {fault.step.name}\n// {fault.problem}\n{print_module(program.module)}"
            )
            print(f"{label(fault.step)} on program {fault.seed}: {fault.problem}\n  {path}", flush=True)
    seconds = time.perf_counter() - begun
    print(f"{work.done:g} programs, {len(passes(names))} passes, {seconds:.0f} s: {len(seen)} kinds of faults")
    for (name, words), times in sorted(seen.items(), key=lambda item: -item[1]):
        print(f"{times:6} {name}: {words}")
    return work.code(seen)
