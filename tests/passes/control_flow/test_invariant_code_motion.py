"""What goes before a loop and what stays: work goes with what it needs, moves alone do not, nor what would be larger."""

from __future__ import annotations

from typing import Any

import pytest

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext

TEXT = """
HloModule m

add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }

body {
  s = (s32[], f32[4], f32[4], f32[4,4]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  k = f32[4] get-tuple-element(s), index=1
  v = f32[4] get-tuple-element(s), index=2
  m = f32[4,4] get-tuple-element(s), index=3
  HERE
  ROOT t = (s32[], f32[4], f32[4], f32[4,4]) tuple(next, k, w, m)
}

condition {
  s = (s32[], f32[4], f32[4], f32[4,4]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  ten = s32[] constant(TRIPS)
  ROOT c = pred[] compare(n, ten), direction=LT
}

ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  z = f32[4,4] parameter(2)
  zero = s32[] constant(0)
  init = (s32[], f32[4], f32[4], f32[4,4]) tuple(zero, x, y, z)
  loop = (s32[], f32[4], f32[4], f32[4,4]) while(init), condition=condition, body=body
  ROOT r = f32[4] get-tuple-element(loop), index=2
}
"""


def moved(body: str, trips: int = 3, **options: Any) -> tuple[list[str], Instruction]:
    """Opcodes of what came to stand before the loop, and the loop."""
    module = parse(TEXT.replace("HERE", body).replace("TRIPS", str(trips)))
    verify(module)
    PassContext(Options(check="values")).run_pass(registry.get("while-loop-invariant-code-motion", **options), module)
    loop = next(i for i in module.entry.instructions if i.opcode == "while")
    names = {"parameter", "constant", "tuple", "while", "get-tuple-element"}
    return [i.opcode for i in module.entry.instructions if i.opcode not in names], loop


def test_work_goes_with_the_moves_it_needs() -> None:
    found, loop = moved("""half = f32[] constant(0.5) halves = f32[4] broadcast(half), dimensions={}
      a = f32[4] multiply(k, halves) b = f32[4] exponential(a) r = f32[4] reverse(b), dimensions={0}
      w = f32[4] add(v, r)""")
    assert found == ["broadcast", "multiply", "exponential"]
    assert len(loop.shape.tuple_shapes or ()) == 5, "only the last result is carried, the reverse is done inside"


def test_only_moves_stay() -> None:
    found, _ = moved("r = f32[4] reverse(k), dimensions={0} w = f32[4] add(v, r)")
    assert found == []


@pytest.mark.parametrize(("ratio", "count"), [(1.0, 0), (4.0, 2)])
def test_what_is_larger_than_its_sources_stays(ratio: float, count: int) -> None:
    body = """wide = f32[4,4] broadcast(k), dimensions={0} e = f32[4,4] exponential(wide)
      zero = f32[] constant(0) sum = f32[4] reduce(e, zero), dimensions={0}, to_apply=add
      d = f32[4] dot(e, v), lhs_contracting_dims={1}, rhs_contracting_dims={0} w = f32[4] add(d, sum)"""
    found, _ = moved(body, size_inflation_ratio=ratio)
    assert len([opcode for opcode in found if opcode in ("exponential", "reduce")]) == count


@pytest.mark.parametrize(("t", "op", "moves"), [("f64", "exponential", True), ("f64", "negate", False)])
def test_functions_of_numbers_that_grow_go(t: str, op: str, moves: bool) -> None:
    """Twice the bytes are worth a function, not a conversion."""
    found, _ = moved(f"x = {t}[4] convert(k) e = {t}[4] {op}(x) y = f32[4] convert(e) z = {t}[4] convert(v) "
                     f"a = {t}[4] add(z, e) w = f32[4] convert(a)")  # fmt: skip
    assert (op in found) == moves


def test_a_reduction_of_a_large_value_goes() -> None:
    found, loop = moved("""e = f32[4,4] exponential(m) zero = f32[] constant(0)
      sum = f32[4] reduce(e, zero), dimensions={0}, to_apply=add w = f32[4] add(v, sum)""")
    assert found == ["exponential", "reduce"]
    assert str(loop.shape.tuple_shapes[-1].bare) == "f32[4]"  # type: ignore[index]


@pytest.mark.parametrize(
    "body",
    [
        "f = f32[] constant(1) a = f32[4] rng(f, f), distribution=rng_uniform",
        'a = f32[4] custom-call(k), custom_call_target="f", custom_call_has_side_effect=true',
        "e = f32[4] negate(v) a = f32[4] exponential(k), control-predecessors={e}",
        "a = f32[4] all-reduce(k), replica_groups={}, to_apply=add",
    ],
)
def test_what_must_stay(body: str) -> None:
    module = parse(TEXT.replace("HERE", body + " w = f32[4] add(v, a)").replace("TRIPS", "3"))
    assert not registry.get("while-loop-invariant-code-motion").run(module, PassContext())


@pytest.mark.parametrize("trips", [0, 1])
def test_loops_that_hardly_run_are_left_alone(trips: int) -> None:
    assert moved("e = f32[4] exponential(k) w = f32[4] add(v, e)", trips)[0] == []


NESTED = """
HloModule m

inner {
  s = (s32[], f32[2], f32[2]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  k = f32[2] get-tuple-element(s), index=1
  e = f32[2] exponential(k)
  v = f32[2] get-tuple-element(s), index=2
  w = f32[2] multiply(v, e)
  ROOT t = (s32[], f32[2], f32[2]) tuple(next, k, w)
}

two {
  s = (s32[], f32[2], f32[2]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  k = s32[] constant(2)
  ROOT c = pred[] compare(n, k), direction=LT
}

outer {
  s = (s32[], f32[2], f32[2]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(n, one)
  k = f32[2] get-tuple-element(s), index=1
  v = f32[2] get-tuple-element(s), index=2
  init = (s32[], f32[2], f32[2]) tuple(zero, k, v)
  loop = (s32[], f32[2], f32[2]) while(init), condition=two, body=inner
  w = f32[2] get-tuple-element(loop), index=2
  ROOT t = (s32[], f32[2], f32[2]) tuple(next, k, w)
}

ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[2], f32[2]) tuple(zero, x, y)
  ROOT loop = (s32[], f32[2], f32[2]) while(init), condition=two, body=BODY
}
"""


def test_out_of_two_loops() -> None:
    module = parse(NESTED.replace("BODY", "outer"))
    assert _run(module)
    assert [i.opcode for i in module.entry.instructions].count("exponential") == 1
    assert not any(
        i.opcode == "exponential" for c in module.computations if c is not module.entry for i in c.instructions
    )


def test_a_body_that_others_run_too_is_copied() -> None:
    text = NESTED.replace("BODY", "outer").replace("ROOT loop", "loop")
    head, tail = text.rsplit("\n}", 1)
    module = parse(
        head
        + "\n  other = (s32[], f32[2], f32[2]) while(init), condition=two, body=inner"
        + "\n  ROOT r = ((s32[], f32[2], f32[2]), (s32[], f32[2], f32[2])) tuple(loop, other)\n}"
        + tail
    )
    assert _run(module)
    assert [i.opcode for i in module.entry.instructions].count("exponential") == 2


def _run(module: Module) -> bool:
    verify(module)
    return PassContext(Options(check="values")).run_pass(registry.get("while-loop-invariant-code-motion"), module)


CONDITION = """
HloModule m

add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }

body {
  s = (f32[], f32[4], f32[4]) parameter(0)
  n = f32[] get-tuple-element(s), index=0
  two = f32[] constant(2)
  next = f32[] multiply(n, two)
  k = f32[4] get-tuple-element(s), index=1
  v = f32[4] get-tuple-element(s), index=2
  w = f32[4] add(v, k)
  ROOT t = (f32[], f32[4], f32[4]) tuple(next, k, w)
}

condition {
  s = (f32[], f32[4], f32[4]) parameter(0)
  n = f32[] get-tuple-element(s), index=0
  k = f32[4] get-tuple-element(s), index=1
  v = f32[4] get-tuple-element(s), index=2
  zero = f32[] constant(0)
  HERE
  ROOT c = pred[] compare(n, limit), direction=LT
}

ENTRY main {
  a = f32[] parameter(0)
  x = f32[4] parameter(1)
  y = f32[4] parameter(2)
  init = (f32[], f32[4], f32[4]) tuple(a, x, y)
  loop = (f32[], f32[4], f32[4]) while(init), condition=condition, body=body
  MORE
}
"""
_ONE, _TWO = "ROOT r = f32[4] get-tuple-element(loop), index=2", "other = (f32[], f32[4], f32[4]) while(init), "


@pytest.mark.parametrize(
    ("limit", "gone"),
    [
        # an array that no round changes: the sum goes, the product with it
        ("q = f32[4] multiply(k, k) limit = f32[] reduce(q, zero), dimensions={0}, to_apply=add", 2),
        # a part of the limit changes: the other part goes
        (
            """q = f32[] reduce(k, zero), dimensions={0}, to_apply=add
            p = f32[] reduce(v, zero), dimensions={0}, to_apply=add limit = f32[] add(p, q)""",
            1,
        ),
        ("limit = f32[] reduce(v, zero), dimensions={0}, to_apply=add", 0),
        # numbers computed from numbers are no kernel
        ("half = f32[] constant(0.5) limit = f32[] exponential(half)", 0),
    ],
)
@pytest.mark.parametrize("shared", [False, True])
def test_out_of_the_condition(limit: str, gone: int, shared: bool) -> None:
    more = _ONE
    if shared:
        more = (
            _TWO
            + """condition=condition, body=body
          ROOT r = ((f32[], f32[4], f32[4]), (f32[], f32[4], f32[4])) tuple(loop, other)"""
        )
    module = parse(CONDITION.replace("HERE", limit).replace("MORE", more))
    assert _run(module) == bool(gone)
    names = {"parameter", "constant", "tuple", "while", "get-tuple-element"}
    moved = [i.opcode for i in module.entry.instructions if i.opcode not in names]
    assert len(moved) == gone * (2 if shared else 1)
