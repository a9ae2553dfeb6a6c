"""Unrolled loops keep their values; long, large and heavy ones stay; annotations are XLA's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from heron.analysis.values.trip_count import trip_count
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext

#: rotates its state, and uses the counter
TEXT = """
HloModule m

less {
  a = u32[] parameter(0)
  b = u32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT
}

body {
  s = (TYPE[], f32[3], f32[3], u32[2], u32[2]) parameter(0)
  n = TYPE[] get-tuple-element(s), index=0
  step = TYPE[] constant(STEP)
  next = TYPE[] add(n, step)
  a = f32[3] get-tuple-element(s), index=1
  b = f32[3] get-tuple-element(s), index=2
  k = f32[] convert(n)
  ks = f32[3] broadcast(k), dimensions={}
  c = f32[3] add(a, ks)
  HEAVY
  p = u32[2] get-tuple-element(s), index=3
  q = u32[2] get-tuple-element(s), index=4
  ROOT t = (TYPE[], f32[3], f32[3], u32[2], u32[2]) tuple(next, b, c, q, p)
}

condition {
  s = (TYPE[], f32[3], f32[3], u32[2], u32[2]) parameter(0)
  n = TYPE[] get-tuple-element(s), index=0
  limit = TYPE[] constant(LIMIT)
  ROOT c = pred[] compare(n, limit), direction=DIRECTION
}

ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  z = u32[2] parameter(2)
  start = TYPE[] constant(START)
  u = u32[2] constant({7, 9})
  init = (TYPE[], f32[3], f32[3], u32[2], u32[2]) tuple(start, x, y, z, u)
  ROOT loop = (TYPE[], f32[3], f32[3], u32[2], u32[2]) while(init), condition=condition, body=body
}
"""


def module_of(start: int, limit: int, step: int, direction: str = "LT", type_: str = "s32", heavy: str = "") -> Module:
    text = TEXT.replace("TYPE", type_).replace("STEP", str(step)).replace("START", str(start)).replace("HEAVY", heavy)
    return parse(text.replace("LIMIT", str(limit)).replace("DIRECTION", direction))


def run(module: Module, name: str = "while-loop-unroller", **options: Any) -> PassContext:
    ctx = PassContext(Options(check="values"))
    ctx.run_pass(registry.get(name, **options), module)
    verify(module)
    return ctx


def loops(module: Module) -> list[Instruction]:
    return [i for i in module.instructions() if i.opcode == "while"]


@pytest.mark.parametrize(
    ("start", "limit", "step", "direction", "type_"),
    [
        (0, 5, 1, "LT", "s32"),
        (3, 3, 1, "LE", "s64"),
        (0, 0, 1, "LT", "s32"),
        (10, 0, -3, "GT", "s32"),
        (250, 255, 1, "NE", "u8"),
        (-4, 4, 2, "LE", "s8"),
    ],
)
def test_every_round_is_there(start: int, limit: int, step: int, direction: str, type_: str) -> None:
    module = module_of(start, limit, step, direction, type_)
    run(module)
    assert not loops(module)
    assert [c.name for c in module.computations if c.name != "less"] == ["main"]


@pytest.mark.parametrize(
    ("heavy", "options", "reason"),
    [
        ("", {"max_trips": 4}, "runs 5 times"),
        ("", {"max_instructions": 10}, "would become 20 instructions"),
        ("w = u32[3] iota(), iota_dimension=0\n  v = u32[3] sort(w), dimensions={0}, to_apply=less", {}, "is a sort"),
    ],
)
def test_refusals_have_reasons(heavy: str, options: dict[str, Any], reason: str) -> None:
    module = module_of(0, 5, 1, heavy=heavy)
    ctx = run(module, **options)
    assert len(loops(module)) == 1
    assert any(reason in d.reason and not d.ok for d in ctx.trace.decisions)


@pytest.mark.parametrize(
    ("rounds", "most", "left"),
    [
        (8, 8, []),  # few rounds become straight code
        (20, 80, []),  # so does little
        (20, 79, [4]),  # five rounds at a time: nine would leave two over
        (23, 40, [4]),  # nothing divides it: three rounds come first
        (12, 4, [6]),  # two rounds at a time at least
        (100, 40, [20]),  # also of loops that would not become straight code
        (100, 4, [100]),  # but not of those that have long rounds
    ],
)
def test_many_rounds_are_unrolled_in_part(rounds: int, most: int, left: list[int]) -> None:
    module = module_of(0, rounds, 1)
    ctx = run(module, most_code=most)
    assert [trip_count(loop) for loop in loops(module)] == left
    reason = " rounds at a time" if left not in ([], [rounds]) else "gain little" if left else "instructions in all"
    assert any(reason in d.reason for d in ctx.trace.decisions)


def test_a_loop_within_a_loop_goes_first() -> None:
    module = parse("""HloModule m
inner { s = (s32[], f32[2]) parameter(0) n = s32[] get-tuple-element(s), index=0 one = s32[] constant(1)
  next = s32[] add(n, one) v = f32[2] get-tuple-element(s), index=1 w = f32[2] multiply(v, v)
  ROOT t = (s32[], f32[2]) tuple(next, w) }
two { s = (s32[], f32[2]) parameter(0) n = s32[] get-tuple-element(s), index=0 k = s32[] constant(2)
  ROOT c = pred[] compare(n, k), direction=LT }
outer { s = (s32[], f32[2]) parameter(0) n = s32[] get-tuple-element(s), index=0 one = s32[] constant(1)
  zero = s32[] constant(0) next = s32[] add(n, one) v = f32[2] get-tuple-element(s), index=1
  init = (s32[], f32[2]) tuple(zero, v) loop = (s32[], f32[2]) while(init), condition=two, body=inner
  w = f32[2] get-tuple-element(loop), index=1 ROOT t = (s32[], f32[2]) tuple(next, w) }
three { s = (s32[], f32[2]) parameter(0) n = s32[] get-tuple-element(s), index=0 k = s32[] constant(3)
  ROOT c = pred[] compare(n, k), direction=LT }
ENTRY e { x = f32[2] parameter(0) zero = s32[] constant(0) init = (s32[], f32[2]) tuple(zero, x)
  loop = (s32[], f32[2]) while(init), condition=three, body=outer ROOT r = f32[2] get-tuple-element(loop), index=1 }""")
    run(module)
    assert not loops(module)
    assert sum(i.opcode == "multiply" for i in module.entry.instructions) == 6


def test_annotations_keep_what_else_is_said() -> None:
    module = module_of(0, 5, 1)
    loops(module)[0].extras["backend_config"] = '{"known_trip_count":{"n":"4"},"dynamic_variables":[]}'
    run(module, "while-loop-trip-count-annotator")
    assert json.loads(loops(module)[0].extras["backend_config"]) == {
        "dynamic_variables": [],
        "known_induction_variable": {"tuple_index": "0"},
        "known_init_step": {"init": "0", "step": "1"},
        "known_trip_count": {"n": "5"},
    }
    assert not registry.get("while-loop-trip-count-annotator").run(module, PassContext())


def test_an_unreadable_backend_config_stays() -> None:
    module = module_of(0, 5, 1)
    loops(module)[0].extras["backend_config"] = "something else"
    assert not registry.get("while-loop-trip-count-annotator").run(module, PassContext())
    assert loops(module)[0].extras["backend_config"] == "something else"


@pytest.mark.parametrize(("trips", "factor"), [(6, 2), (6, 3), (7, 2), (7, 3), (5, 5), (4, 3)])
@pytest.mark.parametrize("direction", ["LT", "NE"])
def test_several_rounds_in_one(trips: int, factor: int, direction: str) -> None:
    """Rounds that are left over come before the loop; values are checked by the pass context."""
    module = module_of(2, 2 + 3 * trips, 3, direction)
    run(module, factor=factor)
    (loop,) = loops(module)
    counts = [sum(i.opcode == "add" for i in c.instructions) for c in (loop.body, module.entry)]
    assert counts == [2 * factor, 2 * (trips % factor)]
    assert trip_count(loop) == trips // factor


def test_too_few_rounds_for_the_factor() -> None:
    ctx = run(module_of(0, 3, 1), factor=4)
    assert any("runs 3 times, which is less than 4" in d.reason for d in ctx.trace.decisions)


def test_any_work_when_asked() -> None:
    heavy = "w = u32[3] iota(), iota_dimension=0\n  v = u32[3] sort(w), dimensions={0}, to_apply=less"
    module = module_of(0, 5, 1, heavy=heavy)
    run(module, only_fusible=False)
    assert not loops(module)


@pytest.mark.parametrize("factor", [0, 2])
def test_fusions_get_bodies_of_their_own(factor: int) -> None:
    text = TEXT.replace("body {", "twice { a = f32[3] parameter(0) ROOT r = f32[3] add(a, a) }\nbody {", 1)
    text = text.replace("c = f32[3] add(a, ks)", "c = f32[3] fusion(a), kind=kLoop, calls=twice").replace("HEAVY", "")
    changes = {"TYPE": "s32", "STEP": "1", "LIMIT": "4", "DIRECTION": "LT", "START": "0"}
    for name, value in changes.items():
        text = text.replace(name, value)
    module = parse(text)
    run(module, only_fusible=False, factor=factor)
    fusions = [i for i in module.instructions() if i.opcode == "fusion"]
    assert len({i.attrs["calls"] for i in fusions}) == len(fusions) > 1
