"""permutation-sort-expander on sorts by places, of every rank, type and comparison: values stay."""

from __future__ import annotations

from itertools import product

import pytest

from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.checks import ValueCheck
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get

LESS = """{name} {{
  a = {key}[] parameter(0)
  b = {key}[] parameter(1)
  c = {carried}[] parameter(2)
  d = {carried}[] parameter(3)
  ROOT l = pred[] compare({operands}), direction={direction}
}}
"""


def program(dims: str, along: int, index: str, carried: str, operands: str, direction: str) -> str:
    return f"""HloModule m

{LESS.format(name="by_value", key="f32", carried=index, operands="a, b", direction="LT")}
{LESS.format(name="by_place", key=index, carried=carried, operands=operands, direction=direction)}
ENTRY main {{
  x = f32{dims} parameter(0)
  y = {carried}{dims} parameter(1)
  it = {index}{dims} iota(), iota_dimension={along}
  s = (f32{dims}, {index}{dims}) sort(x, it), dimensions={{{along}}}, is_stable=true, to_apply=by_value
  p = {index}{dims} get-tuple-element(s), index=1
  ROOT r = ({index}{dims}, {carried}{dims}) sort(p, y), dimensions={{{along}}}, to_apply=by_place
}}
"""


SHAPES = [("[7]", 0), ("[3,5]", 0), ("[3,5]", 1), ("[2,3,4]", 1), ("[1,4]", 0), ("[3,0]", 0)]


@pytest.mark.parametrize(("dims", "along"), SHAPES)
def test_values(dims: str, along: int) -> None:
    orders = [("a, b", "LT", True), ("b, a", "GT", True), ("a, b", "GT", False)]
    for index, carried, (operands, direction, is_ascending) in product(("s32", "u8", "s64"), ("f32", "pred"), orders):
        module = parse(program(dims, along, index, carried, operands, direction))
        verify(module)
        values = ValueCheck(module)
        step = get("permutation-sort-expander")
        assert PassContext().run_pass(step, module) == is_ascending
        verify(module)
        values.after(step.name, module)
        assert not PassContext().run_pass(step, module)
