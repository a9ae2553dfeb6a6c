"""Closed forms against running the loop."""

from __future__ import annotations

import pytest

from heron.analysis.trip_count import counter_of
from heron.hlo.evaluator import Evaluator
from heron.hlo.module import Module
from heron.hlo.text import parse

TEXT = """
HloModule m

body {
  s = (TYPE[], s32[]) parameter(0)
  n = TYPE[] get-tuple-element(s), index=0
  k = TYPE[] constant(STEP)
  next = TYPE[] OP(n, k)
  c = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  count = s32[] add(c, one)
  ROOT t = (TYPE[], s32[]) tuple(next, count)
}

condition {
  s = (TYPE[], s32[]) parameter(0)
  n = TYPE[] get-tuple-element(s), index=0
  limit = TYPE[] constant(BOUND)
  ROOT r = pred[] compare(OPERANDS), direction=DIRECTION
}

ENTRY main {
  start = TYPE[] constant(START)
  zero = s32[] constant(0)
  init = (TYPE[], s32[]) tuple(start, zero)
  loop = (TYPE[], s32[]) while(init), condition=condition, body=body
  ROOT trips = s32[] get-tuple-element(loop), index=1
}
"""


def loop(start: int, step: int, bound: int, direction: str, op: str = "add", swap: bool = False, t: str = "s32"):
    operands = "limit, n" if swap else "n, limit"
    changes = {"START": start, "STEP": step, "BOUND": bound, "DIRECTION": direction, "OPERANDS": operands}
    text = TEXT.replace("TYPE", t).replace("OP(", f"{op}(")
    for name, value in changes.items():
        text = text.replace(name, str(value))
    return parse(text)


def trips(module: Module) -> int | None:
    counter = counter_of(next(i for i in module.entry.instructions if i.opcode == "while"))
    return None if counter is None else counter.trips


@pytest.mark.parametrize("direction", ["LT", "LE", "GT", "GE", "NE"])
@pytest.mark.parametrize("swap", [False, True])
def test_against_running(direction: str, swap: bool) -> None:
    checked = 0
    for start in (-3, 0, 5):
        for step in (-2, -1, 1, 3):
            for bound in (-7, 0, 4, 6):
                module = loop(start, step, bound, direction, swap=swap)
                found = trips(module)
                if found is not None:
                    assert found == int(Evaluator(module).run()), (start, step, bound)
                    checked += 1
    assert checked > 15


def test_subtraction_and_small_types() -> None:
    assert trips(loop(10, 1, 0, "GT", op="subtract")) == 10
    assert trips(loop(0, 1, 200, "LT", t="u8")) == 200
    assert trips(loop(100, 20, 127, "LT", t="s8")) is None, "it wraps round before the test fails"


@pytest.mark.parametrize(("step", "direction"), [(-1, "LT"), (0, "LT"), (2, "EQ"), (3, "NE")])
def test_what_has_no_simple_count(step: int, direction: str) -> None:
    assert trips(loop(4 if direction == "EQ" else 0, step, 4, direction)) is None
