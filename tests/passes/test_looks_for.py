"""Passes that say what they look for are not run on modules that have none of it, and would change nothing there."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from heron.hlo.ir.module import Module
from heron.hlo.ir.op import REGISTRY
from heron.hlo.text import parse
from heron.hlo.text.printer import identity
from heron.passes.framework import registry
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.pipeline import Fixpoint, Pipeline
from tests.hlo.odd import odd
from tests.support import NAMES, program

LOOKING = [p for p in registry.all_passes() if p.looks_for is not None]


def assert_left_alone(module: Module) -> None:
    opcodes = {i.opcode for i in module.instructions()}
    text = identity(module)
    for cls in LOOKING:
        assert cls.looks_for is not None
        if cls.looks_for.isdisjoint(opcodes):
            assert not registry.get(cls.name).run(module, PassContext()), cls.name
            assert identity(module) == text, cls.name


def test_they_change_nothing_without_it_in_odd_programs() -> None:
    for seed in range(60):
        found = odd(seed)
        if found is not None:
            assert_left_alone(found[0])


@pytest.mark.parametrize("name", NAMES[::6])
def test_they_change_nothing_without_it_in_workloads(name: str) -> None:
    assert_left_alone(parse(program(name).read_text()))


def test_what_they_look_for_are_opcodes() -> None:
    assert len(LOOKING) > 40
    assert {opcode for p in LOOKING for opcode in p.looks_for or ()} <= REGISTRY.keys()


@dataclass(frozen=True)
class Sines(Pass):
    """Turns sines into cosines; never registered."""

    name = "sines"
    looks_for = frozenset({"sine"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        ctx.note("ran")
        found = [i for i in module.entry.instructions if i.opcode == "sine"]
        for i in found:
            module.entry.replace_with(i, "cosine", i.operands, i.shape)
        return bool(found)


@dataclass(frozen=True)
class Cosines(Sines):
    """Turns cosines into sines once."""

    name = "cosines"
    looks_for = frozenset({"cosine"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        found = [i for i in module.entry.instructions if i.opcode == "cosine"]
        for i in found:
            module.entry.replace_with(i, "sine", i.operands, i.shape)
        return bool(found)


PROGRAM = "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] %s(x)\n}"


def test_a_pass_runs_when_its_op_comes_up() -> None:
    """What an earlier pass makes counts at once; a pass with nothing to find is in the trace, and has not run."""
    module, ctx = parse(PROGRAM % "cosine"), PassContext()
    Pipeline("p", [Sines(), Cosines(), Sines(), Sines()]).run(module, ctx)
    assert module.entry.root.opcode == "cosine"
    assert ctx.trace.notes == ["ran"]
    assert [p.name for p in ctx.trace.passes] == ["sines", "cosines", "sines", "sines"]


def test_loops_of_passes_end_where_nothing_is_found() -> None:
    module, ctx = parse(PROGRAM % "tan"), PassContext()
    assert not Fixpoint("f", [Sines(), Cosines()]).run(module, ctx)
    assert not ctx.trace.notes
