"""The choices that a generator of programs makes: from random numbers here, from Hypothesis in tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Choices(ABC):
    """A source of choices."""

    @abstractmethod
    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""

    @abstractmethod
    def one_of(self, options: Sequence[T]) -> T:
        """One of the options."""

    @abstractmethod
    def several(self, options: Sequence[T], least: int, most: int, unique: bool = False) -> list[T]:
        """So many of the options, in any order; each once at most if `unique`."""

    @abstractmethod
    def shuffled(self, values: Sequence[T]) -> list[T]:
        """The values in another order."""

    @abstractmethod
    def flag(self) -> bool:
        """Yes or no."""


class RandomChoices(Choices):
    """Choices by random numbers; the same for the same seed."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def one_of(self, options: Sequence[T]) -> T:
        return self._random.choice(options)

    def several(self, options: Sequence[T], least: int, most: int, unique: bool = False) -> list[T]:
        if unique:
            return self._random.sample(options, self.integer(least, min(most, len(options))))
        return [self.one_of(options) for _ in range(self.integer(least, most))]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        return self._random.sample(values, len(values))

    def flag(self) -> bool:
        return self._random.random() < 0.5
