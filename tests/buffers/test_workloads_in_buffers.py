"""Every real program keeps its values when all of them live in assigned buffers."""

from __future__ import annotations

import numpy as np
import pytest

from heron.backends.compiler import Compilation
from heron.buffers import assign
from heron.buffers.check import misaligned, prove, run_in_buffers
from heron.cli import values
from heron.evaluator import evaluate, flatten
from heron.hlo.text import parse
from heron.options import Options
from heron.passes.framework.checks import difference
from heron.targets import get
from heron.trace import Trace
from tests.buffers.compiled import FUSED, run_passes
from tests.support import NAMES, golden_values, program

FRONT = ("call-inliner", "tuple-simplifier", "dce")


@pytest.mark.parametrize("name", NAMES)
def test_workload(name: str) -> None:
    text = program(name).read_text()
    source, module = parse(text), parse(text)
    inputs = values.read(str(golden_values(name))).inputs
    run_passes(module, (*FRONT, *FUSED))
    assignment = assign(module, alignment=128)
    prove(assignment)
    assert not misaligned(assignment)
    assert assignment.peak_bytes <= assignment.temp_bytes <= 1.15 * assignment.peak_bytes
    wanted, found = evaluate(source, *inputs), flatten(run_in_buffers(module, assignment, inputs))
    for n, (old, new) in enumerate(zip(wanted, found, strict=True)):
        what = difference(old, new)
        assert what is None, f"output {n}: {what}"


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
@pytest.mark.parametrize("name", [n for n in NAMES if n != "gpt2_12l_train_step"])  # the layers of gpt2_train_step
def test_as_compiled(name: str, target: str) -> None:
    """The same with a backend's own passes, kernels and schedule."""
    compilation = Compilation(parse(program(name).read_text()), get(target), Options(), Trace())
    module, assignment = compilation.scheduled, compilation.buffers
    prove(assignment)
    assert not misaligned(assignment)
    inputs = values.read(str(golden_values(name))).inputs
    wanted, found = evaluate(module, *inputs), flatten(run_in_buffers(module, assignment, inputs))
    for n, (old, new) in enumerate(zip(wanted, found, strict=True)):
        assert np.array_equal(old, new, equal_nan=old.dtype.kind in "fc"), f"output {n}"


@pytest.mark.parametrize("name", ["gpt2_train_step", "heat_while", "cond_switch", "lstm_scan"])
def test_without_fusion(name: str) -> None:
    """Thousands of small values: every op has a buffer of its own."""
    text = program(name).read_text()
    source, module = parse(text), parse(text)
    inputs = values.read(str(golden_values(name))).inputs
    run_passes(module, ("layout-assignment", "copy-insertion", "memory-scheduler"))
    assignment = assign(module)
    prove(assignment)
    wanted, found = evaluate(source, *inputs), flatten(run_in_buffers(module, assignment, inputs))
    for old, new in zip(wanted, found, strict=True):
        assert difference(old, new) is None
