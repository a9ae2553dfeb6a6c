"""Index expressions: interning, folding operators, text, evaluation."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from heron.analysis.indexing import Add, Const, Dim, FloorDiv, Mod, Mul, Sym
from heron.errors import HeronError

d0, d1, s0 = Dim(0), Dim(1), Sym(0)


def test_interned() -> None:
    assert Dim(0) is d0
    assert Add(d0, d1) is Add(Dim(0), Dim(1))
    assert d0 * 4 + 1 is Dim(0) * 4 + 1
    assert d0 != s0
    assert pickle.loads(pickle.dumps((d0 * 4 + s0) // 3)) is (d0 * 4 + s0) // 3


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (d0 * 4 + s0, "d0 * 4 + s0"),
        ((d0 + s0) // 4, "(d0 + s0) floordiv 4"),
        ((d0 // 4) % 8, "(d0 floordiv 4) mod 8"),
        (d0 - d1, "d0 - d1"),
        (d0 - d1 * 3, "d0 - d1 * 3"),
        (d0 - (d1 + 1) * 3, "d0 - (d1 + 1) * 3"),
        (d0 - 5, "d0 - 5"),
        (-d0, "-d0"),
        (d0 * -2, "d0 * -2"),
        (Const(-3), "-3"),
    ],
)
def test_text(expr: object, text: str) -> None:
    assert repr(expr) == text


def test_folding() -> None:
    assert d0 + 0 is d0
    assert d0 * 1 is d0
    assert d0 * 0 is Const(0)
    assert d0 + 2 + 3 is d0 + 5
    assert d0 * 2 * 3 is d0 * 6
    assert d0 * 8 // 4 is d0 * 2
    assert d0 * 8 % 4 is Const(0)
    assert 3 - d0 is Add(Mul(d0, Const(-1)), Const(3))
    assert Const(-1) // 4 == Const(-1)
    assert Const(-1) % 4 == Const(3)


def test_evaluate_arrays() -> None:
    x = np.arange(12)
    np.testing.assert_array_equal(((d0 * 3 + s0) // 4 % 5).evaluate([x], [1]), (x * 3 + 1) // 4 % 5)


def test_substitute_and_variables() -> None:
    e = FloorDiv(d0 * 4 + s0, Const(8)) + Mod(d1, Const(3))
    assert e.variables() == {d0, d1, s0}
    assert e.substitute([d1, None], [Const(2)]) is FloorDiv(d1 * 4 + 2, Const(8)) + Mod(d1, Const(3))


def test_errors() -> None:
    with pytest.raises(HeronError, match="GEN101"):
        d0 * d1
    with pytest.raises(HeronError, match="GEN102"):
        d0 // 0
    with pytest.raises(HeronError, match="GEN102"):
        d0 % d1
