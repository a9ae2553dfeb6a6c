"""Makes a joint program small that is not right, first by its fragments and joins, then by its instructions.

Fewer fragments, smaller sizes and simpler joins are tried in child processes, so that a program which ends its process
is reduced like any other. What is left is lowered; then instructions are dropped or replaced by parameters that hold
their values (`tests.hlo.reduction`), as long as the target still differs from the evaluator in the same way.
"""

from __future__ import annotations

import json
import re
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.hlo.text import parse, print_module
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from tests.children import Lost, results
from tests.hlo.reduction import reduced, with_root
from tests.interplay.joins import Node
from tests.interplay.judging import distance, size
from tests.interplay.program import Program
from tests.interplay.running import Job, Outcome, computed, imported, run

#: of the largest element: by how much a target must differ for a smaller program to show the fault
DIFFERS = 1e-3


@dataclass(frozen=True)
class Sign:
    """By what a fault is known again."""

    target: str
    kind: str
    text: str = ""

    @staticmethod
    def of(outcome: Outcome) -> Sign:
        target = outcome.faults[0]
        kind = outcome.kinds[target]
        return Sign(target, kind, "" if kind in ("wrong", "lost") else _words(outcome.texts.get(target, "")))

    def shown_by(self, outcome: Outcome | Lost) -> bool:
        if isinstance(outcome, Lost):
            return self.kind == "lost"
        same = outcome.kinds.get(self.target) == self.kind
        return same and (not self.text or _words(outcome.texts.get(self.target, "")) == self.text)


def _words(text: str) -> str:
    """An error without names and numbers: its code, or the last line of a traceback."""
    last = text.strip().splitlines()[-1 if text.startswith("Traceback") else 0] if text.strip() else ""
    return re.sub(r"'[^']*'|%?[\w.-]*\d[\w.]*|\[.*", "", last)[:60] if not _code(text) else _code(text)


def _code(text: str) -> str:
    found = re.match(r"[A-Z]+\d{3}\b", text)
    return found[0] if found else ""


def by_fragments(program: Program, sign: Sign, seconds: float, limit: float) -> Program:
    """The simplest program found in `limit` seconds of fewer, smaller fragments and simpler joins that shows the fault.

    Args:
        seconds: how long a program may take.
    """
    end = time.monotonic() + limit
    going = True
    while going and time.monotonic() < end:
        going = False
        candidates = list(_simpler(program))
        jobs = [Job(p, (sign.target,)) for p in candidates]
        for k, outcome in results(run, jobs, 1, seconds):
            if sign.shown_by(outcome):
                program, going = candidates[k], True
            if going or time.monotonic() > end:
                break
    return program


def _simpler(program: Program) -> Iterator[Program]:
    seen: set[Node] = set()
    for node in program.node.smaller():
        if node not in seen:
            seen.add(node)
            yield replace(program, node=node)
    if program.donated:
        yield replace(program, donated=False)
    if program.wide and not any(leaf.fragment.wide for leaf in program.node.leaves):
        yield replace(program, wide=False)


@dataclass(frozen=True)
class Task:
    program: Program
    sign: Sign
    path: Path
    limit: float


def by_instructions(task: Task) -> str:
    """Reduce the lowered program and write it with its inputs; gives what to tell. Runs in a child."""
    program, sign, path = task.program, task.sign, task.path
    inputs = program.inputs()
    module = imported(program.lowered())
    if sign.kind != "lost" and _shows(module, inputs, sign):
        for simpler in _inlined(module):
            module = simpler if _shows(simpler, inputs, sign) else module
        end = time.monotonic() + task.limit
        module, inputs = _cut_off(module, inputs, sign)
        module, inputs = reduced(module, inputs, lambda m, a: time.monotonic() < end and _shows(m, a, sign))
    path.with_suffix(".hlo").write_text(print_module(module))
    np.savez(path.with_suffix(".npz"), *[_plain(x) for x in inputs])
    return f"heron run {path.with_suffix('.hlo')} --inputs {path.with_suffix('.npz')} --target {sign.target}"


def _inlined(module: Module) -> Iterator[Module]:
    flat = module.clone()
    registry.get("call-inliner").run(flat, PassContext())
    yield flat


def _cut_off(module: Module, inputs: list[np.ndarray], sign: Sign) -> tuple[Module, list[np.ndarray]]:
    """The program up to the first instruction that shows the fault, found by halving."""
    low, high = 0, len(module.entry.post_order()) - 1
    best = module, inputs
    while low < high:
        middle = (low + high) // 2
        smaller = module.clone()
        chosen = smaller.entry.post_order()[middle]
        kept = None if chosen.opcode == "parameter" else with_root(smaller, inputs, chosen)
        if kept is not None and _shows(smaller, kept, sign):
            best, high = (smaller, kept), middle
        else:
            low = middle + 1
    return best


def _shows(module: Module, inputs: Sequence[np.ndarray], sign: Sign) -> bool:
    try:
        wanted = evaluate(parse(print_module(module), verify=True), *inputs)
    except HeronError:
        return sign.target == "eval" and sign.kind == "refused"
    except Exception:
        return sign.target == "eval" and sign.kind == "exception"
    try:
        found = computed(sign.target, module.clone(), inputs)
    except HeronError as error:
        return sign.kind == "refused" and error.code == sign.text
    except Exception:
        return sign.kind == "exception" and _words(traceback.format_exc(limit=-4)) == sign.text
    far = [distance(a, b) > DIFFERS * size(b) for a, b in zip(found, wanted, strict=True)]
    return sign.kind == "wrong" and any(far)


def _plain(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.isbuiltin == 1 else array.view(f"u{array.itemsize}")


def keep(job: Job, outcome: Outcome, folder: Path, seconds: float, limit: float) -> str:
    """Reduce a program that is not right, write all there is to know of it, and say where it is.

    Args:
        seconds: how long a program may take.
        limit: how long each half of the reduction may take.
    """
    sign = Sign.of(outcome)
    small = by_fragments(job.program, sign, seconds, limit)
    path = folder / f"program_{max(job.number, 0)}"
    told = [f"reduced: python -m tests.interplay --program {json.dumps(repr(small))}"]
    for _, result in results(by_instructions, [Task(small, sign, path, limit)], 1, 2 * limit + seconds):
        told.append(str(result))
    path.with_suffix(".txt").write_text("\n".join([f"{sign}", repr(job.program), *told]) + "\n")
    return "\n".join(f"  {line}" for line in told)
