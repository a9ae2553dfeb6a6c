"""Trip counts against running the loop: every direction, sign and type, and loops without a closed form."""

from __future__ import annotations

import pytest

from heron.analysis.values.trip_count import counter_of, trip_count
from heron.evaluator import Evaluator
from heron.hlo.ir.module import Module
from heron.hlo.text import parse

TEXT = """
HloModule m

body {
  s = (TYPE[], s32[], TYPE[]) parameter(0)
  n = TYPE[] get-tuple-element(s), index=0
  k = TYPE[] STEP
  next = TYPE[] OP
  c = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  count = s32[] add(c, one)
  b = TYPE[] get-tuple-element(s), index=2
  ROOT t = (TYPE[], s32[], TYPE[]) tuple(next, count, b)
}

condition {
  s = (TYPE[], s32[], TYPE[]) parameter(0)
  n = TYPE[] get-tuple-element(s), index=0
  limit = TYPE[] LIMIT
  ROOT r = pred[] compare(OPERANDS), direction=DIRECTION
}

ENTRY main {
  start = TYPE[] constant(START)
  zero = s32[] constant(0)
  bound = TYPE[] constant(BOUND)
  init = (TYPE[], s32[], TYPE[]) tuple(start, zero, bound)
  loop = (TYPE[], s32[], TYPE[]) while(init), condition=condition, body=body
  ROOT trips = s32[] get-tuple-element(loop), index=1
}
"""


def loop(
    start: int,
    step: int,
    bound: int,
    direction: str,
    op: str = "add(n, k)",
    swap: bool = False,
    t: str = "s32",
    carried: bool = False,
) -> Module:
    """`carried`: the bound is an element of the state, not a constant in the condition."""
    changes = {
        "STEP": f"constant({step})",
        "OPERANDS": "limit, n" if swap else "n, limit",
        "DIRECTION": direction,
        "OP": op,
        "LIMIT": "get-tuple-element(s), index=2" if carried else f"constant({bound})",
        "START": start,
        "BOUND": bound,
        "TYPE": t,
    }
    text = TEXT
    for name, value in changes.items():
        text = text.replace(name, str(value))
    return parse(text)


def the_loop(module: Module):
    return next(i for i in module.entry.instructions if i.opcode == "while")


def trips(module: Module) -> int | None:
    counter = counter_of(the_loop(module))
    return None if counter is None else counter.trips


@pytest.mark.parametrize("direction", ["LT", "LE", "GT", "GE", "NE", "EQ"])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("carried", [False, True])
def test_closed_forms(direction: str, swap: bool, carried: bool) -> None:
    checked = 0
    for start in (-3, 0, 4):
        for step in (-2, -1, 1, 3):
            for bound in (-7, 0, 4, 6):
                module = loop(start, step, bound, direction, swap=swap, carried=carried)
                found = trips(module)
                if found is not None:
                    assert found == int(Evaluator(module).run()), (start, step, bound)
                    checked += 1
    assert checked > 15


@pytest.mark.parametrize("t", ["s4", "u4", "u8"])
@pytest.mark.parametrize("op", ["add(k, n)", "subtract(n, k)"])
def test_small_types_wrap_round(t: str, op: str) -> None:
    """Every loop near the ends of its type that ends at all, counted in closed form or by running."""
    bits = int(t[1:])
    low, high = (0, (1 << bits) - 1) if t[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
    checked = 0
    for start, bound in ((low, high), (high, low), (high - 2, low + 2), (low + 1, high - 1)):
        for step in (1, 3, high, high - 1, low):
            for direction in ("LT", "LE", "GT", "GE", "NE", "EQ"):
                module = loop(start, step, bound, direction, op, t=t)
                found = trip_count(the_loop(module), most=64)
                if found is not None:
                    assert found == int(Evaluator(module).run()), (start, step, bound, direction)
                    checked += 1
                closed = trips(module)
                assert closed is None or closed == found
    assert checked > 40


def test_wide_types() -> None:
    assert trips(loop(0, 1, (1 << 63) - 1, "LT", t="s64")) == (1 << 63) - 1
    assert trips(loop((1 << 32) - 1, (1 << 32) - 1, 7, "GT", t="u32")) == (1 << 32) - 8, "adding 2^32 - 1 counts down"
    assert trips(loop(0, 2, (1 << 32) - 1, "LT", t="u32")) is None, "it wraps round before the test fails"
    assert trips(loop(0, 1, (1 << 31) - 1, "LE")) is None, "it never ends"
    assert trips(loop(5, 1, 0, "GE", op="subtract(n, k)", t="u32")) is None, "it never ends"
    assert trips(loop(10, 1, 0, "GT", op="subtract(n, k)")) == 10


@pytest.mark.parametrize(
    ("step", "direction", "op"),
    [(-1, "LT", "add(n, k)"), (0, "LT", "add(n, k)"), (3, "NE", "add(n, k)"), (1, "LT", "subtract(k, n)")],
)
def test_what_has_no_simple_count(step: int, direction: str, op: str) -> None:
    assert trips(loop(0, step, 4, direction, op)) is None


@pytest.mark.parametrize(
    ("start", "step", "bound", "direction", "op", "count"),
    [
        (1, 2, 100, "LT", "multiply(n, k)", 7),
        (100, 3, 0, "NE", "divide(n, k)", 5),
        (9, 3, 9, "EQ", "multiply(n, k)", 1),
        (1, 1, 99, "LT", "shift-left(n, k)", 7),
        (5, 6, 5, "LT", "multiply(n, k)", 0),
    ],
)
def test_by_running(start: int, step: int, bound: int, direction: str, op: str, count: int) -> None:
    module = loop(start, step, bound, direction, op)
    assert trips(module) is None
    assert trip_count(the_loop(module)) == count == int(Evaluator(module).run())


def test_running_stops() -> None:
    module = loop(1, 1, 1000, "LT", "multiply(n, k)")
    assert trip_count(the_loop(module)) is None, "it never ends"
    assert trip_count(the_loop(loop(1, 2, 100, "LT", "multiply(n, k)")), most=6) is None


def test_a_state_that_is_one_number() -> None:
    module = parse("""HloModule m
body { n = s32[] parameter(0) two = s32[] constant(2) ROOT t = s32[] multiply(n, two) }
condition { n = s32[] parameter(0) limit = s32[] constant(50) ROOT r = pred[] compare(n, limit), direction=LT }
ENTRY e { one = s32[] constant(1) ROOT loop = s32[] while(one), condition=condition, body=body }""")
    assert trip_count(the_loop(module)) == 6
    assert int(Evaluator(module).run()) == 1 << 6


def test_floats_and_inputs_are_not_run() -> None:
    module = parse("""HloModule m
body { n = f32[] parameter(0) ROOT t = f32[] add(n, n) }
condition { n = f32[] parameter(0) limit = f32[] constant(50) ROOT r = pred[] compare(n, limit), direction=LT }
other { n = s32[] parameter(0) ROOT t = s32[] add(n, n) }
until { n = s32[] parameter(0) limit = s32[] constant(50) ROOT r = pred[] compare(n, limit), direction=LT }
ENTRY e { one = f32[] constant(1) a = f32[] while(one), condition=condition, body=body
  x = s32[] parameter(0) b = s32[] while(x), condition=until, body=other
  ROOT r = (f32[], s32[]) tuple(a, b) }""")
    assert [trip_count(i) for i in module.entry.instructions if i.opcode == "while"] == [None, None]
