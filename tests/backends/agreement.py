"""Whether a generated program means the same compiled as evaluated, in every way there is to run it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heron.buffers.check import prove, run_in_buffers
from heron.compiling import compile
from heron.evaluator import evaluate, flatten
from heron.hlo.text import print_module
from heron.options import Options
from tests.hlo.generate import Program

TARGETS = ("cpu", "sim:sm_90")


def check(program: Program, targets: Sequence[str] = TARGETS, buffers: bool = False, passes: bool = False) -> None:
    """Compile and run `program`; every output must be what the evaluator gives, up to the error it is known to have.

    With `buffers` the scheduled module also runs inside its assigned buffers, by the evaluator; with `passes` the
    values are checked after every pass.
    """
    module, inputs, errors = program
    wanted = evaluate(module, *inputs)
    options = Options(check="values" if passes else "", sim_check="all")
    for target in targets:
        executable = compile(module, target, options=options)
        assert not executable.trace.notes, f"{target}: {executable.trace.notes}"  # such as passes going in circles
        compare(executable.run(inputs), wanted, errors, target)
        if buffers:
            assignment = executable.assignment
            prove(assignment)
            found = run_in_buffers(assignment.module, assignment, inputs)
            compare(flatten(found), wanted, errors, f"buffers of {target}")


def compare(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], errors: Sequence[float], what: str) -> None:
    """Raise AssertionError where an output is further off than its error."""
    for n, (ours, theirs, error) in enumerate(zip(found, wanted, errors, strict=True)):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, f"{what}, output {n}: {ours.dtype}"
        if not error:
            np.testing.assert_array_equal(ours, theirs, f"{what}, output {n}")
            continue
        np.testing.assert_allclose(
            ours.astype(np.float64), theirs.astype(np.float64), rtol=0, atol=2 * error, err_msg=f"{what}, output {n}"
        )


def text(program: Program) -> str:
    return print_module(program.module)
