"""Every real program keeps its values when all of them live in assigned buffers."""

from __future__ import annotations

import pytest

from heron.buffers import assign
from heron.buffers.check import misaligned, prove, run_in_buffers
from heron.cli import values
from heron.hlo.evaluator import evaluate, flatten
from heron.hlo.text import parse
from heron.passes.checks import difference
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
