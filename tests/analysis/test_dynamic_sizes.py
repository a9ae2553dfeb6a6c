"""Formulas of sizes: what simplifying makes of them has the same value, and lies in the range that is known."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.analysis.dynamic_sizes import DynamicSizes, Size, below
from heron.analysis.dynamic_sizes.size import Algebra
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import array
from heron.hlo.ir.types import F32
from heron.hlo.text import parse

BOUNDS = (1, 4, 9)


def atoms(algebra: Algebra) -> list[Size]:
    c = Module("m").add_computation(Computation("e"), entry=True)
    x = c.add_parameter(0, array(F32, BOUNDS, None, (True, True, True)), "x")
    return [algebra.of(x, ((), d)) for d in range(3)]


def value_of(size: Size, values: tuple[int, ...]) -> int:
    known: dict[Size, int] = {}
    for s in below(size):
        if s.op == "number":
            known[s] = s.args[0]
        elif s.op == "of":
            known[s] = values[s.args[1][1]]
        else:
            a, b = (known[p] for p in s.parts)
            known[s] = {
                "add": a + b,
                "subtract": a - b,
                "multiply": a * b,
                "divide": a // b if b else 0,
                "maximum": max(a, b),
                "minimum": min(a, b),
            }[s.op]
    return known[size]


@given(st.data(), st.tuples(*(st.integers(0, n) for n in BOUNDS)))
@settings(max_examples=200, derandomize=True)
def test_simplified_formulas_have_the_same_value(data: st.DataObject, values: tuple[int, ...]) -> None:
    algebra = Algebra()
    made = [(s, n) for s, n in zip(atoms(algebra), values, strict=True)]
    for _ in range(data.draw(st.integers(1, 8))):
        a, m = data.draw(st.sampled_from(made))
        b, n = data.draw(st.one_of(st.sampled_from(made), st.integers(0, 6).map(lambda k: (algebra.number(k), k))))
        k = data.draw(st.integers(1, 5))
        made.append(
            data.draw(
                st.sampled_from(
                    [
                        (a + b, m + n),
                        (a - b, m - n),
                        (a * b, m * n),
                        (a.at_least(b), max(m, n)),
                        (a.at_most(b), min(m, n)),
                        (a.at_least(0) // k, max(m, 0) // k),
                        ((a * k).at_least(0) // k, max(m, 0)),
                    ]
                )
            )
        )
    for s, n in made:
        assert value_of(s, values) == n, str(s)
        assert (s.least is None or s.least <= n) and (s.most is None or n <= s.most), f"{s} is {n}"


def test_equal_formulas_are_one() -> None:
    x, y, z = atoms(Algebra())
    assert (x + 1) + y is y + (x + 1) and (x + 2) - 2 is x and (x * 6) // 3 is x * 2 and z - z is x.algebra.number(0)
    assert x.at_least(0) is x and x.at_most(9) is x and y.at_most(3) is not y


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("ROOT r = f32[<=13] pad(x, z), padding=1_1_1", "x[0] + %x[0] - 1"),
        ("ROOT r = f32[<=3] slice(x), slice={[1:6:2]}", "(%x[0] - minimum(%x[0], 1) + 1) / 2"),
        ("ROOT r = f32[<=2] reduce-window(x, z), window={size=4 stride=2}, to_apply=add", "maximum(%x[0] - 2, 0) / 2"),
        ("y = f32[<=6,2] broadcast(x), dimensions={0} ROOT r = f32[<=12] reshape(y)", "%x[0] * 2"),
    ],
)
def test_text(body: str, says: str) -> None:
    module = parse(f"""HloModule m
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
ENTRY e {{ x = f32[<=6] parameter(0) z = f32[] constant(0) {body} }}""")
    found = DynamicSizes(module)
    assert says in str(found.size(module.entry.root, 0))


def test_long_formulas_are_not_written_out() -> None:
    size: Any = atoms(Algebra())[1]
    for _ in range(100):
        size = size + size * size
    assert str(size) == "..." and len(list(below(size))) < 250
