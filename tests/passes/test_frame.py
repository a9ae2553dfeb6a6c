"""Registration, pipelines, fixed points, checks, dumps: what runs passes rather than what they do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from heron.errors import HeronError
from heron.hlo.ir import literal
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import F32
from heron.hlo.text import parse
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.checks import difference
from heron.passes.framework.context import PassContext
from heron.passes.framework.pipeline import Fixpoint, Pipeline
from heron.passes.rewriting.building import scalar

TEXT = """
HloModule m

ENTRY main {
  x = f32[4] parameter(0)
  e = f32[4] exponential(x)
  c = f32[] constant(1)
  b = f32[4] broadcast(c), dimensions={}
  ROOT r = f32[4] add(e, b)
}
"""


@pytest.fixture
def module() -> Module:
    return parse(TEXT)


# -- passes made for these tests, never registered -------------------------------------------------------------------
@dataclass(frozen=True)
class SetConstant(Pass):
    """Sets the program's constant."""

    name = "set-constant"
    value: float = 2.0
    when: float | None = None

    def run(self, module: Module, ctx: PassContext) -> bool:
        c = next(i for i in module.entry.instructions if i.opcode == "constant")
        if self.when is not None and c.attrs["literal"].item() != self.when:
            return False
        ctx.fired("set", f"here.py:{int(self.value)}")
        c.attrs["literal"] = literal.scalar(F32, self.value)
        return True


@dataclass(frozen=True)
class BreakModule(Pass):
    """Leaves an instruction with a wrong shape."""

    name = "break-module"

    def run(self, module: Module, ctx: PassContext) -> bool:
        root = module.entry.root
        root.shape = root.shape.with_dims((5,))
        return True


@dataclass(frozen=True)
class NeedsDce(Pass):
    """Must come after dce."""

    name = "needs-dce"
    constraints = (Constraint("dce", "needs-dce", "it counts users"),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        return False


@dataclass(frozen=True)
class Last(Pass):
    """Nothing may simplify after it."""

    name = "last"
    constraints = (Constraint("cse", "last", "copies would be merged", all_runs=True),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        return False


@dataclass(frozen=True)
class Demanding(Pass):
    """Cannot do without dce."""

    name = "demanding"
    constraints = (Constraint("dce", "demanding", "dead code confuses it", needed=True),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        return False


# -- names -----------------------------------------------------------------------------------------------------------
def test_every_pass_is_found_by_its_file_name() -> None:
    for cls in registry.all_passes():
        assert cls.__module__.rpartition(".")[2] == cls.name.replace("-", "_")
        assert registry.find(cls.name) is cls


def test_unknown_names_come_with_a_proposal() -> None:
    with pytest.raises(HeronError, match=r"PASS001(.|\n)*did you mean 'algebraic-simplifier'") as raised:
        registry.get("algebraic-simplifer")
    assert raised.value.code == "PASS001"
    with pytest.raises(HeronError, match=r"PASS006(.|\n)*'simplify'"):
        registry.pipeline("simplfy")
    with pytest.raises(HeronError, match=r"PASS005(.|\n)*max_elements"):
        registry.get("constant-folding", max_elemnts=3)


def test_options_of_a_pass() -> None:
    assert registry.get("constant-folding", max_elements=3).max_elements == 3  # type: ignore[attr-defined]
    assert str(registry.get("constant-folding", max_elements=3)) == "constant-folding(max_elements=3)"


# -- pipelines -------------------------------------------------------------------------------------------------------
def test_a_pipeline_prints_as_a_list() -> None:
    dce, cse = registry.get("dce"), registry.get("cse")
    text = str(Pipeline("all", [dce, Fixpoint("loop", [cse, dce])]))
    assert text == "all:\n  dce\n  loop, to a fixed point:\n    cse\n    dce"


def test_order_constraints() -> None:
    dce, cse = registry.get("dce"), registry.get("cse")
    Pipeline("good", [dce, NeedsDce(), dce])
    Pipeline("good", [NeedsDce()])
    with pytest.raises(HeronError, match=r"PASS002(.|\n)*'dce' must come before 'needs-dce'(.|\n)*counts users"):
        Pipeline("bad", [NeedsDce(), Pipeline("inner", [dce])])
    Pipeline("good", [cse, Last(), dce])
    with pytest.raises(HeronError, match="PASS002"):
        Pipeline("bad", [cse, Last(), cse])
    with pytest.raises(HeronError, match="'dce' is missing"):
        Pipeline("bad", [Demanding()])


def test_records_and_timings(module: Module) -> None:
    ctx = PassContext()
    pipeline = Pipeline("outer", [SetConstant(), registry.get("dce")])
    assert ctx.run_pass(pipeline, module)
    first, second = ctx.trace.passes
    assert (first.name, first.changed, first.before, first.after) == ("set-constant", True, 5, 5)
    assert (second.name, second.changed, second.pipeline) == ("dce", False, "outer")
    assert first.seconds >= 0
    assert ctx.rules == {("set-constant", "set", "here.py:2"): 1}


def test_decisions_carry_the_pass_name(module: Module) -> None:
    @dataclass(frozen=True)
    class Decides(Pass):
        """Refuses."""

        name = "decides"

        def run(self, module: Module, ctx: PassContext) -> bool:
            return bool(ctx.decide(False, "too big", subject="r", cost_before=1.0, cost_after=2.0))

    ctx = PassContext()
    assert not ctx.run_pass(Decides(), module)
    (decision,) = ctx.trace.decisions
    assert (decision.rule, decision.reason, decision.ok) == ("decides", "too big", False)


# -- fixed points ----------------------------------------------------------------------------------------------------
def test_a_fixpoint_stops_when_nothing_changes(module: Module) -> None:
    ctx = PassContext()
    loop = Fixpoint("loop", [SetConstant(2, when=1), registry.get("dce"), SetConstant(3, when=2)])
    assert ctx.run_pass(loop, module)
    # the second round ends as soon as every pass had its turn since the last change
    names = [r.name for r in ctx.records]
    assert names == ["set-constant", "dce", "set-constant"] * 2
    assert [r.changed for r in ctx.records] == [True, False, True, False, False, False]
    assert not ctx.trace.notes


def test_passes_that_fight_are_named(module: Module) -> None:
    ctx = PassContext()

    @dataclass(frozen=True)
    class Back(SetConstant):
        name = "set-back"

    loop = Fixpoint("loop", [SetConstant(2, when=1), Back(1, when=2)], max_iterations=1000)
    assert ctx.run_pass(loop, module)
    (note,) = ctx.trace.notes
    assert note == "loop: stopped, set-constant (rules set) and set-back (rules set) undo each other"
    assert len(ctx.records) < 20
    (found,) = ctx.unsettled
    assert "-  %c = f32[] constant(1)\n+  %c = f32[] constant(2)" in found.difference
    with pytest.raises(HeronError, match=r"PASS008(.|\n)*set-back(.|\n)*\+ .*constant\(2\)"):
        PassContext(Options(check="verify")).run_pass(loop, module)


def test_a_fixpoint_that_never_ends_is_stopped(module: Module) -> None:
    @dataclass(frozen=True)
    class Grow(Pass):
        """Counts up."""

        name = "grow"

        def run(self, module: Module, ctx: PassContext) -> bool:
            c = next(i for i in module.entry.instructions if i.opcode == "constant")
            c.attrs["literal"] = literal.scalar(F32, c.attrs["literal"].item() + 1)
            return True

    ctx = PassContext()
    ctx.run_pass(Fixpoint("loop", [Grow()], max_iterations=7), module)
    assert len(ctx.records) == 8  # and one more to see what changes
    assert ctx.trace.notes == ["loop: stopped after 7 rounds, grow still change"]


# -- checks ----------------------------------------------------------------------------------------------------------
def test_values_check_names_the_pass_and_the_instruction(module: Module) -> None:
    ctx = PassContext(Options(check="values"))
    with pytest.raises(HeronError) as raised:
        ctx.run_pass(Pipeline("p", [registry.get("dce"), registry.get("algebraic-simplifier"), SetConstant()]), module)
    error = raised.value
    assert error.code == "PASS003"
    assert "set-constant" in error.what and "output 0" in error.what
    assert "%c = f32[] constant(2)" in str(error.where)
    assert "4 of 4 elements differ, max error 1;" in str(error.why)


def test_values_check_runs_every_device() -> None:
    text = """HloModule m, num_partitions=2
ENTRY main {
  id = u32[] partition-id()
  f = f32[] convert(id)
  c = f32[] constant(1)
  ROOT r = f32[] multiply(f, c)
}
"""
    with pytest.raises(HeronError, match=r"PASS003(.|\n)*output 1(.|\n)*constant\(2\)"):
        PassContext(Options(check="values")).run_pass(SetConstant(2), parse(text))


def test_values_check_lets_right_passes_through(module: Module) -> None:
    ctx = PassContext(Options(check="values"))
    assert not ctx.run_pass(registry.pipeline("simplify"), module)


def test_a_program_that_cannot_be_evaluated_is_noted() -> None:
    module = parse(
        'HloModule m\n\nENTRY main {\n  ROOT r = f32[] custom-call(), custom_call_target="nobody_knows"\n}\n'
    )
    ctx = PassContext(Options(check="values"))
    ctx.run_pass(registry.get("dce"), module)
    (note,) = ctx.trace.notes
    assert note.startswith("values are not checked") and "nobody_knows" in note


def test_verify_check_names_the_pass(module: Module) -> None:
    with pytest.raises(HeronError, match=r"PASS007(.|\n)*break-module"):
        PassContext(Options(check="verify")).run_pass(BreakModule(), module)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (np.float32([1, 2]), np.float32([1, 2.00001]), None),
        (np.float32([1, 2]), np.float32([1, 2.1]), "1 of 2 elements differ"),
        (np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf]), None),
        (np.float32([np.nan]), np.float32([1]), "1 of 1"),
        (np.int32([5]), np.int32([6]), "5 became 6"),
        (np.int32([5]), np.float32([5]), "it was int32"),
        (np.complex64([1 + 1j]), np.complex64([1 + 2j]), "1 of 1"),
    ],
)
def test_difference(old: np.ndarray, new: np.ndarray, problem: str | None) -> None:
    found = difference(old, new)
    assert found is None if problem is None else problem in str(found)


# -- dumps -----------------------------------------------------------------------------------------------------------
def test_dumps_are_numbered_and_parse(module: Module, tmp_path: Path) -> None:
    ctx = PassContext(Options(dump_dir=str(tmp_path / "d")))
    ctx.run_pass(Pipeline("p", [SetConstant(2), registry.get("dce"), SetConstant(3)]), module)
    files = sorted(p.name for p in (tmp_path / "d").iterdir())
    assert files == ["001.set-constant.hlo", "002.set-constant.hlo"]
    again = parse((tmp_path / "d" / "002.set-constant.hlo").read_text())
    assert again.instruction_count() == 5


@pytest.fixture
def blocked(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "file"
    path.write_text("")
    yield path / "below"


def test_a_dump_folder_that_cannot_be_made(module: Module, blocked: Path) -> None:
    with pytest.raises(HeronError, match="CLI012"):
        PassContext(Options(dump_dir=os.fspath(blocked))).run_pass(SetConstant(), module)


def test_rules_that_chase_each_other_are_named(module: Module) -> None:
    from heron.passes.rewriting.driver import rewrite
    from heron.passes.rewriting.rules import Rule, table

    def again(i, b):  # noqa: ANN001, ANN202
        return b.add("add", list(i.operands), i.shape)

    chase = Rule("again", ("add",), (), "x + y == x + y", "exact", "here.py:1", again)
    with pytest.raises(HeronError, match=r"PASS012(.|\n)*again \(here.py:1\)"):
        rewrite(module.entry, table([chase]))
    wrong = Rule("wrong", ("add",), (), "x + y == 0", "exact", "here.py:2", lambda i, b: scalar(b.computation, F32, 0))
    with pytest.raises(HeronError, match=r"PASS011(.|\n)*wrong"):
        rewrite(parse(TEXT).entry, table([wrong]))
