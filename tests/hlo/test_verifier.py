"""The structure's rules, each broken once by damage to a module, and how problems are reported."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import problems, verify

GOOD = """HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[4]{0} parameter(0)
  n = s32[] parameter(1)
  zero = f32[] constant(0)
  total = f32[] reduce(x, zero), dimensions={0}, to_apply=add
  y = f32[4]{0} negate(x)
  z = f32[4]{0} abs(y), control-predecessors={total}
  ROOT out = (f32[4]{0}, f32[]) tuple(z, total)
}
"""


def find(module: Module, name: str):
    return next(i for i in module.instructions() if i.name == name)


def no_root(m: Module) -> None:
    m.entry.root = None  # type: ignore[assignment]


def same_name(m: Module) -> None:
    find(m, "y").name = "z"


def unknown_user(m: Module) -> None:
    find(m, "y").users.clear()


def foreign_operand(m: Module) -> None:
    y, a = find(m, "y"), find(m, "a")
    y.set_operand(0, a)
    a.users.pop(y)


def one_sided_control_edge(m: Module) -> None:
    find(m, "total").control_successors.clear()


def too_few_operands(m: Module) -> None:
    find(m, "y").set_operands([])


def missing_attribute(m: Module) -> None:
    del find(m, "total").attrs["dimensions"]


def unknown_attribute(m: Module) -> None:
    find(m, "y").attrs["dimensions"] = (0,)


def parameter_gap(m: Module) -> None:
    find(m, "n").attrs["number"] = 2


def cycle(m: Module) -> None:
    find(m, "y").set_operand(0, find(m, "z"))


def recursion(m: Module) -> None:
    add = m.computation("add")
    inner = add.add("call", [find(m, "a"), find(m, "b")], find(m, "a").shape, to_apply=add)
    add.root = inner


def foreign_computation(m: Module) -> None:
    find(m, "total").attrs["to_apply"] = parse(GOOD).computation("add")


def wrong_shape(m: Module) -> None:
    find(m, "y").shape = find(m, "n").shape


def wrong_reducer(m: Module) -> None:
    find(m, "total").attrs["to_apply"] = m.add_computation(m.entry.clone("other"))


def wrong_entry_layout(m: Module) -> None:
    m.entry_layout = ((find(m, "x").shape,), find(m, "out").shape)


def wrong_result_layout(m: Module) -> None:
    m.entry_layout = ((find(m, "x").shape, find(m, "n").shape), find(m, "x").shape)


def schedule_too_short(m: Module) -> None:
    assert m.schedule is not None
    m.schedule[m.entry].pop()


def schedule_out_of_order(m: Module) -> None:
    assert m.schedule is not None
    m.schedule[m.entry].reverse()


def alias_of_nothing(m: Module) -> None:
    m.header["input_output_alias"] = (((2,), 0, (), "may-alias"),)


def alias_twice(m: Module) -> None:
    m.header["input_output_alias"] = (((0,), 0, (), "may-alias"), ((1,), 0, (), "may-alias"))


def donor_of_nothing(m: Module) -> None:
    m.header["buffer_donor"] = ((7, ()),)


BROKEN: list[tuple[Callable[[Module], None], str, str]] = [
    (no_root, "HLO101", "'main' has no root"),
    (same_name, "HLO102", "'z'"),
    (unknown_user, "HLO103", "'y' does not know its user"),
    (foreign_operand, "HLO103", "operand 'a' is not in computation 'main'"),
    (one_sided_control_edge, "HLO103", "control predecessor 'total'"),
    (too_few_operands, "HLO104", "negate takes 1 operand, 'y' has 0"),
    (missing_attribute, "HLO104", "reduce needs the attribute 'dimensions'"),
    (unknown_attribute, "HLO104", "negate has no attribute 'dimensions'"),
    (parameter_gap, "HLO105", "their numbers are 0, 2"),
    (cycle, "HLO106", "cycle"),
    (recursion, "HLO107", "'add' calls itself"),
    (foreign_computation, "HLO107", "not in the module"),
    (wrong_shape, "HLO108", "negate gives f32[4]"),
    (wrong_reducer, "HLO010", "reduce"),
    (wrong_entry_layout, "HLO109", "1 parameters, 'main' has 2"),
    (wrong_result_layout, "HLO109", "the result is f32[4]"),
    (schedule_too_short, "HLO110", "each of its instructions once"),
    (schedule_out_of_order, "HLO110", "which it needs"),
    (alias_of_nothing, "HLO111", "no part {2}"),
    (alias_twice, "HLO111", "aliased twice"),
    (donor_of_nothing, "HLO115", "no parameter 7"),
]


def test_good() -> None:
    verify(parse(GOOD))


@pytest.mark.parametrize(("damage", "code", "message"), BROKEN, ids=[b[0].__name__ for b in BROKEN])
def test_rule(damage: Callable[[Module], None], code: str, message: str) -> None:
    module = parse(GOOD)
    damage(module)
    with pytest.raises(HeronError) as caught:
        verify(module)
    assert caught.value.code == code, caught.value
    assert message in str(caught.value)


def test_all_problems_of_a_group_are_found() -> None:
    module = parse(GOOD)
    wrong_shape(module)
    find(module, "out").shape = find(module, "n").shape
    assert [p.instruction.name for p in problems(module) if p.instruction is not None] == ["y", "z", "out"]


def test_where_shows_the_instruction_and_its_computation() -> None:
    module = parse(GOOD)
    wrong_shape(module)
    with pytest.raises(HeronError, match=r"at %y = s32\[\] negate\(%x\) \(in 'main'\)"):
        verify(module)
