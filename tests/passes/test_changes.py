"""Passes that look only at what has changed find what they would find looking at everything."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from heron.hlo.ir.fingerprint import digest
from heron.hlo.ir.instruction import clock
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.passes.framework import registry
from heron.passes.framework.changes import around, changed_since
from heron.passes.framework.context import PassContext
from tests.hlo.generate import Program, programs
from tests.support import NAMES, program

TEXT = """
HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  x = f32[4] parameter(0)
  e = f32[4] exponential(x)
  n = f32[4] negate(e)
  t = f32[4] tanh(n)
  z = f32[] constant(0)
  r = f32[] reduce(t, z), dimensions={0}, to_apply=sum
  ROOT p = (f32[], f32[4]) tuple(r, x)
}
"""


def _named(module: Module, found: set) -> set[str]:
    return {i.name for i in found}


def test_what_counts_as_changed() -> None:
    module = parse(TEXT)
    by_name = {i.name: i for i in module.instructions()}
    then = clock()
    assert changed_since(module, then) == set()
    by_name["t"].set_operand(0, by_name["e"])
    assert _named(module, changed_since(module, then)) == {"t", "n"}  # n has lost its only user
    then = clock()
    new = module.entry.add("cosine", [by_name["x"]])
    assert changed_since(module, then) == {new}
    then = clock()
    inner = by_name["s"]
    inner.set_operand(1, inner.operands[0])
    assert {"s", "r"} <= _named(module, changed_since(module, then))  # r calls what changed


def test_around() -> None:
    module = parse(TEXT)
    by_name = {i.name: i for i in module.instructions()}
    assert _named(module, around([by_name["e"]], 0)) == {"x", "e", "p"}  # p reads x, too
    assert _named(module, around([by_name["e"]], 1)) == {"x", "e", "p", "n"}
    assert _named(module, around([by_name["e"]], 9)) == {"x", "e", "n", "t", "r", "p"}


def _both_ways(module: Module, pipeline: str) -> tuple[PassContext, PassContext]:
    other = module.clone()
    quick, thorough = PassContext(), PassContext()
    thorough.revisits_changes_only = False
    quick.run_pass(registry.pipeline(pipeline), module)
    thorough.run_pass(registry.pipeline(pipeline), other)
    assert digest(module.entry) == digest(other.entry)
    return quick, thorough


@pytest.mark.parametrize("name", NAMES)
def test_real_programs_come_out_the_same(name: str) -> None:
    for pipeline in ("cpu-hlo", "gpu-hlo"):
        quick, thorough = _both_ways(parse(program(name).read_text()), pipeline)
        assert len(quick.records) <= len(thorough.records)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(programs())
def test_generated_programs_come_out_the_same(made: Program) -> None:
    _both_ways(made.module, "cpu-hlo")


def test_a_pipeline_forgets_when_it_ends() -> None:
    module, ctx = parse(TEXT), PassContext()
    ctx.run_pass(registry.pipeline("simplify"), module)
    root = module.entry.root
    one = module.entry.add("negate", [module.entry.add("negate", [root.operands[1]])])
    root.set_operand(1, one)
    ctx.run_pass(registry.pipeline("simplify"), module)
    assert root.operands[1].opcode == "parameter"
