"""Rules that text cannot break, since the parser, or its defaults, would mend it: modules damaged by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heron.errors import HeronError
from heron.hlo.ir.layout import layout
from heron.hlo.ir.metadata import Metadata
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.text.header import StackFrames
from heron.hlo.verifier import VerifierOptions, problems, verify

PROGRAM = """HloModule m, is_scheduled=true

f {
  p = f32[4,2]{1,0} parameter(0)
  ROOT n = f32[4,2]{1,0} negate(p)
}

g {
  a = f32[4,2]{1,0} parameter(0)
  ROOT b = f32[4,2]{1,0} abs(a)
}, execution_thread="other"

step {
  q = f32[4,2]{1,0} parameter(0)
  ROOT o = f32[4,2]{1,0} fusion(q), kind=kLoop, calls=f
}

ENTRY e {
  x = f32[4,2]{1,0} parameter(0)
  y = f32[4,2]{1,0} custom-call(x), custom_call_target="g", operand_layout_constraints={f32[4,2]{1,0}}
  z = f32[4,2]{1,0} call(y), to_apply=step
  r = f32[4,2]{1,0} collective-broadcast(z), replica_groups={{0,1}}
  s = ((f32[4,2]{1,0}), f32[4,2]{1,0}, u32[]) async-start(r), async_execution_thread="other", calls=g
  ROOT d = f32[4,2]{1,0} async-done(s)
}
"""


def find(m: Module, name: str):
    return next(i for i in m.instructions() if i.name == name)


def no_name(m: Module) -> None:
    m.name = ""


def prefetch_of_nothing(m: Module) -> None:
    m.cross_program_prefetches = ((1, (), 0),)


def prefetch_twice(m: Module) -> None:
    m.cross_program_prefetches = ((0, (), 0), (0, (), 32))


def too_many_shardings(m: Module) -> None:
    m.spmd_parameter_shardings = ("{replicated}", "{replicated}")


def fusion_with_schedule(m: Module) -> None:
    assert m.schedule is not None
    m.schedule[m.computation("f")] = m.computation("f").instructions


def call_without_schedule(m: Module) -> None:
    assert m.schedule is not None
    del m.schedule[m.computation("step")]


def no_schedule(m: Module) -> None:
    m.clear_schedule()


def step_applied_too(m: Module) -> None:
    x = find(m, "x")
    outer = m.entry.add(
        "custom-call", [x], x.shape, custom_call_target="h", called_computations=(m.computation("step"),)
    )
    assert m.schedule is not None
    m.schedule[m.entry].append(outer)


def no_operand_layout(m: Module) -> None:
    y = find(m, "y")
    y.attrs["operand_layout_constraints"] = (y.shape.bare,)


def no_result_layout(m: Module) -> None:
    find(m, "y").shape = find(m, "y").shape.bare


def no_layout(m: Module) -> None:
    find(m, "n").shape = find(m, "n").shape.bare


def other_computation(m: Module) -> None:
    find(m, "d").attrs["calls"] = m.computation("step")


def other_thread(m: Module) -> None:
    find(m, "d").attrs["async_execution_thread"] = "main"


def odd_groups(m: Module) -> None:
    find(m, "r").attrs["replica_groups"] = "{{0,1},2}"


def odd_sharding(m: Module) -> None:
    find(m, "x").extras["sharding"] = "{splat}"


def sharding_of_too_few(m: Module) -> None:
    find(m, "x").extras["sharding"] = "{devices=[2,2]0,1}"


def odd_origin(m: Module) -> None:
    find(m, "x").extras["origin"] = '"a"'


def accurate_negation(m: Module) -> None:
    find(m, "n").extras["result_accuracy"] = "{mode=highest}"


def too_many_flags(m: Module) -> None:
    find(m, "x").extras["parameter_replication"] = (True, False)


def frame_of_nobody(m: Module) -> None:
    m.header["stack_frames"] = StackFrames(("a.py",), ("f",), ((1, 1, 3, 3, 1, 9),), ((1, 1),))
    find(m, "x").metadata = Metadata(stack_frame_id=2)


def sharding_of_no_text(m: Module) -> None:
    find(m, "x").extras["sharding"] = None


def layout_of_other_rank(m: Module) -> None:
    n = find(m, "n")
    n.shape = n.shape.with_layout(layout((0,)))


SCHEDULED = VerifierOptions(scheduled=True)
LAYOUTS = VerifierOptions(layout_sensitive=True)
BROKEN: list[tuple[Callable[[Module], None], VerifierOptions, str, str]] = [
    (no_name, VerifierOptions(), "HLO112", "no name"),
    (prefetch_of_nothing, VerifierOptions(), "HLO116", "parameter 1{} cannot be prefetched"),
    (prefetch_twice, VerifierOptions(), "HLO116", "prefetched twice"),
    (too_many_shardings, VerifierOptions(), "HLO118", "2 shardings, 1 parameters"),
    (fusion_with_schedule, VerifierOptions(), "HLO119", "'f' is the body of a fusion"),
    (no_operand_layout, VerifierOptions(), "HLO126", "operand 0 has none"),
    (no_result_layout, VerifierOptions(), "HLO126", "the result has none"),
    (sharding_of_no_text, VerifierOptions(), "HLO159", "'sharding' of 'x' must be a str"),
    (odd_groups, VerifierOptions(), "HLO140", "the groups of 'r' cannot be read"),
    (odd_sharding, VerifierOptions(), "HLO150", "the sharding of 'x' cannot be read"),
    (sharding_of_too_few, VerifierOptions(), "HLO150", "4 tiles and 2 devices"),
    (odd_origin, VerifierOptions(), "HLO154", "the origin of 'x' cannot be read"),
    (accurate_negation, VerifierOptions(), "HLO155", "negate has no result accuracy"),
    (too_many_flags, VerifierOptions(), "HLO156", "2 flags, 1 leaves"),
    (frame_of_nobody, VerifierOptions(), "HLO158", "frame 2, the table has 1"),
    (other_computation, VerifierOptions(), "HLO132", "'d' calls 'step', 's' calls 'g'"),
    (other_thread, VerifierOptions(), "HLO132", "'d' is on 'main', 's' on 'other'"),
    (layout_of_other_rank, VerifierOptions(), "HLO160", "{0} for rank 2"),
    (call_without_schedule, SCHEDULED, "HLO190", "'step' has no schedule"),
    (no_schedule, SCHEDULED, "HLO190", "has no schedule"),
    (step_applied_too, SCHEDULED, "HLO191", "'step' runs in sequence elsewhere"),
    (no_layout, LAYOUTS, "HLO200", "'n' has no layout"),
]


@pytest.mark.parametrize(("damage", "options", "code", "says"), BROKEN, ids=[b[0].__name__ for b in BROKEN])
def test_rule(damage: Callable[[Module], None], options: VerifierOptions, code: str, says: str) -> None:
    module = parse(PROGRAM)
    verify(module, options)
    damage(module)
    with pytest.raises(HeronError) as caught:
        verify(module, options)
    assert caught.value.code == code, caught.value
    assert says in str(caught.value)


def test_modes_are_off_by_default() -> None:
    module = parse(PROGRAM)
    no_layout(module)
    call_without_schedule(module)
    assert list(problems(module)) == []


def test_attributes_of_the_wrong_type_are_blamed() -> None:
    module = parse(PROGRAM)
    find(module, "y").attrs["output_to_operand_aliasing"] = 3
    assert [p.code for p in problems(module)][:1] == ["HLO104"]
