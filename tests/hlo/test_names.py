"""Names are counted as XLA counts them; tests/hlo/text compares them through whole programs."""

from __future__ import annotations

import pytest

from heron.hlo.ir.names import Names

CASES = {
    "a a a": "a a.1 a.2",
    "a.1 a a": "a.1 a a.2",
    "a.7 a.7 a.7 a.7": "a.7 a.0 a.1 a.2",
    "a a.0 a.00": "a a.1 a.2",
    "a.0 a": "a.0 a.1",
    "a.01 a.1": "a.1 a.0",
    "a. a. .1 .1": "a. a..1 .1 .1.1",
    "a.-05 a.-5": "a.-5 a.0",
    "a.9223372036854775807 a.9223372036854775808": "a.9223372036854775807 a.9223372036854775808",
    "a.b a.b.2 a.b.2": "a.b a.b.2 a.b.1",
    "a.1 a.1.0 a.1.0 a": "a.1 a.1.0 a.1.1 a",
    "a.1.0 a.1": "a.1.0 a.1",
}


@pytest.mark.parametrize("wanted", CASES)
def test_names(wanted: str) -> None:
    names = Names()
    assert [names.take(w) for w in wanted.split()] == CASES[wanted].split()


def test_a_copy_goes_on_by_itself() -> None:
    names = Names()
    names.take("a")
    copy = names.copy()
    assert (names.take("a"), copy.take("a"), names.take("a")) == ("a.1", "a.1", "a.2")


def test_many_of_one_name() -> None:
    names = Names()
    assert len({names.take("a") for _ in range(20_000)}) == 20_000
