"""The generator of programs (`heron.fuzz.programs`) as a Hypothesis strategy, which makes a failing program smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from heron.fuzz.choices import Choices
from heron.fuzz.programs import ALL_TYPES, Program, program
from heron.hlo.ir.types import ElementType

__all__ = ["ALL_TYPES", "Program", "programs"]

T = TypeVar("T")


class _Drawn(Choices):
    """Choices by Hypothesis."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def one_of(self, options: Sequence[T]) -> T:
        return self._draw(st.sampled_from(options))

    def several(self, options: Sequence[T], least: int, most: int, unique: bool = False) -> list[T]:
        return self._draw(st.lists(st.sampled_from(options), min_size=least, max_size=most, unique=unique))

    def shuffled(self, values: Sequence[T]) -> list[T]:
        return self._draw(st.permutations(values))

    def flag(self) -> bool:
        return self._draw(st.booleans())


@st.composite
def programs(draw: Callable[[Any], Any], types: tuple[ElementType, ...] = ALL_TYPES, max_ops: int = 12) -> Program:
    """A module with inputs for its parameters; its element types are some of `types`, and s32, pred and f32."""
    return program(_Drawn(draw), types, max_ops)
