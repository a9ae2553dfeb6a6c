"""The test programs of a StableHLO checkout, run by heron and held against what the files, or XLA, say comes out.

    python -m tests.frontends.stablehlo_suite CHECKOUT [--target cpu] [--only TEXT] [--every N] [--json FILE]

`testdata`, `testdata/quantized` and `tests/interpret` hold their own checks; `testdata/dynamic` has none, and is held
against XLA:CPU. A program is right within the limits of its check, close within those of its type (f32 1e-4, f16 and
bf16 2e-2, f64 1e-8 of the largest value), deviates as docs/use/frontends.md says, is refused with a HeronError, or is left out
when it tests the interpreter itself.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import heron
from heron.errors import HeronError
from heron.evaluator import evaluate, evaluate_devices, flatten
from heron.frontends.stablehlo.importer import imported
from heron.frontends.stablehlo.reader import read
from heron.hlo.ir.module import Module
from tests.frontends.stablehlo_suite import dynamic
from tests.frontends.stablehlo_suite.compare import verdict
from tests.frontends.stablehlo_suite.programs import (
    DEVIATIONS,
    FOLDERS,
    Case,
    Check,
    Checked,
    Unsupported,
    cases,
    checked,
)

Run = Callable[..., list[np.ndarray]]
KINDS = ("right", "close", "deviates", "wrong", "refused", "exception", "left out")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a program, and why."""

    name: str
    folder: str
    kind: str
    why: str = ""


def main(arguments: list[str]) -> int:
    """Run the programs, print a table and what is not right; 1 when anything is wrong or raises."""
    parser = argparse.ArgumentParser(prog="python -m tests.frontends.stablehlo_suite", description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--target", default="eval", help="eval (the evaluator), cpu, sim:sm_90, …")
    parser.add_argument("--only", default="", help="programs whose name holds this")
    parser.add_argument("--every", type=int, default=1, help="each N-th program")
    parser.add_argument("--json", type=Path, help="write every outcome there")
    given = parser.parse_args(arguments)
    todo = [c for c in cases(given.checkout) if given.only in c.name][:: given.every]
    start = time.monotonic()
    found: list[Outcome] = []
    for n, case in enumerate(todo):
        found.append(outcome(case, given.target))
        if n % 50 == 49 or n + 1 == len(todo):
            counts = Counter(o.kind for o in found)
            told = ", ".join(f"{counts[k]} {k}" for k in KINDS if counts[k])
            print(f"{n + 1} of {len(todo)}, {time.monotonic() - start:.0f} s: {told}", file=sys.stderr, flush=True)
    _report(found)
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(o) for o in found], indent=1))
    return int(any(o.kind in ("wrong", "exception") for o in found))


def outcome(case: Case, target: str) -> Outcome:
    """Run one program."""
    try:
        kind, why = _judged(case, target)
    except Unsupported as error:
        kind, why = "left out", str(error)
    except HeronError as error:
        kind, why = "refused", f"{error.code} {error.what}" + (f": {error.why}" if error.why else "")
    except Exception as error:  # whatever it is, it is a bug to be shown
        kind, why = "exception", f"{type(error).__name__}: {error}"
    if kind in ("wrong", "refused") and case.name.startswith(DEVIATIONS):
        kind = "deviates"
    return Outcome(case.name, case.folder, kind, why[:300])


def _judged(case: Case, target: str) -> tuple[str, str]:
    run: Run = evaluate if target == "eval" else lambda module, *arrays: _compiled(module, target, arrays)
    if case.function is None:
        return _without_checks(case, run)
    program = checked(case, hide=target != "eval")
    module = imported(program.program, case.name, verify=True)
    if module.entry.parameters:
        raise Unsupported("a program that takes arguments")
    results = evaluate(module) if program.parallel is not None else run(module)
    if program.parallel is not None:
        results = _on_devices(program, case.name, results)
    return _worst(program.checks, results)


def _compiled(module: Module, target: str, arrays: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    return [np.asarray(o) for o in flatten(heron.compile(module, target=target)(*arrays))]


def _on_devices(program: Checked, name: str, given: list[np.ndarray]) -> list[np.ndarray]:
    """The pairs of a program that several devices run: what they give, and what is expected."""
    parallel = program.parallel
    assert parallel is not None
    module = imported(parallel.program, name, verify=True)
    count = len(module.entry.parameters)
    each = [given[n * count : (n + 1) * count] for n in range(parallel.replicas * parallel.partitions)]
    devices = evaluate_devices(module, each, parallel.replicas, parallel.partitions)
    outputs = [array for device in devices for array in device]
    return [array for got, want in parallel.pairs for array in (outputs[got], given[want])]


def _worst(checks: list[Check], results: list[np.ndarray]) -> tuple[str, str]:
    if len(results) != 2 * len(checks):
        return "wrong", f"{len(results)} results for {len(checks)} checks"
    pairs = zip(checks, results[::2], results[1::2], strict=True)
    verdicts = [verdict(check, np.asarray(got), np.asarray(want)) for check, got, want in pairs]
    return max(verdicts, key=lambda v: KINDS.index(v[0]), default=("right", ""))


def _without_checks(case: Case, run: Run) -> tuple[str, str]:
    """A program that leaves sizes open is held against XLA; of any other there is nothing to hold."""
    program = read(case.text, case.name)
    if not dynamic.is_open(program):
        raise Unsupported("a program without checks")
    module = dynamic.specialised(program, case.name)
    arrays = dynamic.inputs(module)
    results = run(module, *arrays)
    expected = dynamic.by_xla(case.text, module, arrays)
    if expected is None:
        expected = evaluate(module, *arrays)
    check = Check("near", 1e-6)
    return _worst([check] * len(results), [a for pair in zip(results, expected, strict=True) for a in pair])


def _report(found: list[Outcome]) -> None:
    folders = [f for f in FOLDERS if any(o.folder == f for o in found)]
    print(f"{'':24}{'programs':>9}" + "".join(f"{k:>11}" for k in KINDS))
    for folder in folders:
        counts = Counter(o.kind for o in found if o.folder == folder)
        print(f"{folder:24}{sum(counts.values()):>9}" + "".join(f"{counts[k]:>11}" for k in KINDS))
    for o in found:
        if o.kind not in ("right", "close"):
            print(f"{o.kind}: {o.name}: {o.why}")


if __name__ == "__main__":
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        sys.exit(main(sys.argv[1:]))
