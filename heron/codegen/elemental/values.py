"""The values of elements: one scalar, a complex number as its two parts, or the values of a tuple's elements."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from xdsl.ir import SSAValue


class Pair(NamedTuple):
    """A complex value, kept as its parts."""

    re: SSAValue
    im: SSAValue


Value: TypeAlias = "SSAValue | Pair | tuple[Value, ...]"


def scalar_of(value: Value) -> SSAValue:
    """A value that is neither complex nor a tuple."""
    assert not isinstance(value, tuple)
    return value


def pair_of(value: Value) -> Pair:
    """A value that is complex."""
    assert isinstance(value, Pair)
    return value


def tuple_of(value: Value) -> tuple[Value, ...]:
    """The values of a tuple's elements."""
    assert isinstance(value, tuple) and not isinstance(value, Pair)
    return value
