"""Looks for programs that mean something else compiled: ``python -m tests.fuzz --count 5000``.

Each program is compiled and run on every target and compared with the evaluator; the first that differs, or fails to
compile, is written to the output folder with its inputs, and made as small as it goes. The program being tried is in
``last.hlo`` there, in case it ends the process.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

from heron.cli.series import series
from heron.errors import HeronError
from tests.backends.agreement import TARGETS, check, text
from tests.buffers import search as buffers
from tests.hlo.generate import ALL_TYPES, Program, programs
from tests.passes import search as passes


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=1000, help="programs to try")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--ops", type=int, default=14, help="steps of a program, at most")
    p.add_argument("--target", action="append", help=f"default: {' '.join(TARGETS)}")
    p.add_argument("--types", help=f"of {','.join(t.name for t in ALL_TYPES)}")
    p.add_argument("--checks", action="store_true", help="also after every pass, and inside the assigned buffers")
    p.add_argument("--allow", default="", help="error codes that are no fault, such as GEN001,GEN002")
    p.add_argument("--out", type=Path, default=Path("fuzz"))
    p.add_argument("--passes", action="store_true", help="passes on odd programs; nothing is compiled")
    p.add_argument("--pass", action="append", default=[], dest="names", metavar="NAME", help="with --passes")
    p.add_argument("--buffers", action="store_true", help="loops, updates, fusions in their inputs: in their buffers")
    a = p.parse_args()
    if a.buffers:
        return buffers.search(a.count, a.seed, a.out)
    if a.passes:
        return passes.search(a.count, a.seed, a.out, a.names, a.ops)
    types = tuple(t for t in ALL_TYPES if not a.types or t.name in a.types.split(","))
    a.out.mkdir(parents=True, exist_ok=True)
    tried, refused, start = 0, 0, time.perf_counter()
    failing: Program | None = None

    @seed(a.seed)
    @settings(
        max_examples=a.count,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        report_multiple_bugs=False,
    )
    @given(programs(types, a.ops))
    def search(program: Program) -> None:
        nonlocal tried, refused, failing
        tried += 1
        if failing is not None:
            work.say(tried - 1, "making a program smaller")
        if tried % 100 == 0 and failing is None and not sys.stderr.isatty():
            print(f"{tried} programs, {time.perf_counter() - start:.0f} s", flush=True)
        (a.out / "last.hlo").write_text(text(program))
        try:
            check(program, a.target or TARGETS, buffers=a.checks, passes=a.checks)
        except Exception as error:
            if isinstance(error, HeronError) and error.code in a.allow.split(","):
                refused += 1
                work.say(tried)
                return
            if failing is None:
                print(f"found one after {tried} programs, making it smaller", flush=True)
            failing = program
            _save(program, a.out / f"found_{a.seed}.hlo")
            raise
        work.say(tried)

    error: Exception | None = None
    with series("programs", a.count) as work:
        try:
            search()
        except Exception as fault:
            error = fault
    if error is not None:
        return _report(failing, error, a.out, a.seed)
    if failing is not None:
        print(f"one that does not agree, not made small, is in {a.out}")
    print(f"{work.done:g} programs agree, {refused} of them not compiled, {time.perf_counter() - start:.0f} s")
    return work.code(failing)


def _report(program: Program | None, error: Exception, out: Path, number: int) -> int:
    print(f"{type(error).__name__}: {error}")
    if program is None:
        raise error
    path = out / f"found_{number}.hlo"
    print(f"{text(program)}\nheron run {path} --inputs {path.with_suffix('.npz')} --target …")
    return 1


def _save(program: Program, path: Path) -> None:
    path.write_text(text(program))
    np.savez(path.with_suffix(".npz"), *[_plain(x) for x in program.inputs])


def _plain(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.isbuiltin == 1 else array.view(f"u{array.itemsize}")


if __name__ == "__main__":
    sys.exit(main())
