"""The state of a program being made: its values, and the facts that are known about each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from math import prod
from typing import Any

import numpy as np

from heron.fuzz.choices import Choices
from heron.hlo.builder import Builder
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import BF16, F16, F32, F64, PRED, ElementType
from heron.records import dataclass

MAX_ELEMENTS = 4096
SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 33)
#: bits of integers a float type holds exactly
_MANTISSA = {F64: 53, F32: 24, F16: 11, BF16: 8}


@dataclass(frozen=True)
class Facts:
    """The largest magnitude a value can have and the largest error; without error a float is an integer."""

    bound: float
    error: float = 0.0


@dataclass
class State:
    """A program being made."""

    choices: Choices
    b: Builder
    types: tuple[ElementType, ...]
    values: list[Instruction] = field(default_factory=list)
    facts: dict[Instruction, Facts] = field(default_factory=dict)

    def integer(self, low: int, high: int) -> int:
        return self.choices.integer(low, high)

    def one_of(self, choices: Any) -> Any:
        return self.choices.one_of(choices)

    def dimensions(self, max_rank: int = 4) -> tuple[int, ...]:
        """Sizes of up to so many dimensions, of `MAX_ELEMENTS` at most together."""
        return _bounded(self.choices.several(SIZES, 0, max_rank))

    def pick(self, kinds: str = "", exact: bool = False, fits: Callable[[Instruction], bool] | None = None) -> Any:
        """A value of one of the kinds, favouring recent ones; None when there is none."""
        found = [
            v
            for v in self.values
            if (not kinds or v.shape.element_type.kind in kinds.split())
            and not (exact and self.facts[v].error)
            and (fits is None or fits(v))
        ]
        return self.one_of(found[::-1]) if found else None

    def like(self, x: Instruction, exact: bool = False) -> Instruction:
        """A value of the shape of `x`, often another one."""
        return self.pick(exact=exact, fits=lambda v: v.shape is x.shape) or x

    def keep(self, x: Instruction, bound: float, error: float = 0.0) -> Instruction:
        """Note the facts of `x`, which is the outcome of a step."""
        self.facts[x] = Facts(min(bound, top(x.shape.element_type)), error)
        return x

    def add(self, opcode: str, operands: list[Instruction], bound: float, error: float = 0.0, **attrs: Any) -> Any:
        return self.keep(self.b.computation.add(opcode, operands, **attrs), bound, error)

    def within(self, x: Instruction, limit: float) -> Instruction:
        """`x`, clamped when its magnitude could be above `limit`."""
        facts, element_type = self.facts[x], x.shape.element_type
        if facts.bound <= limit:
            return x
        low = self.b.constant(-int(limit) if element_type.is_signed else 0, element_type)
        high = self.b.constant(int(limit), element_type)
        return self.add("clamp", [low, x, high], int(limit), facts.error)

    def parameter(self, number: int, index: ElementType | None = None) -> np.ndarray:
        """Add a parameter, or a small scalar of the type `index`; gives an array for it."""
        element_type, dims = index or self.one_of(self.types), () if index else self.dimensions()
        p = self.b.parameter(number, row_major(element_type, *dims))
        self.values.append(self.keep(p, 1 if element_type is PRED else 20))
        if index:
            return np.asarray(self.integer(-2, 6), index.dtype)
        return random_input(np.random.default_rng(self.integer(0, 2**16)), element_type, dims)


def top(element_type: ElementType) -> float:
    """More than any magnitude of an integer type; of a float type infinity."""
    return float("inf") if element_type.is_float else 2.0**element_type.bits


def exact_limit(element_type: ElementType) -> float:
    """Up to which magnitude integers are exact; integer types wrap, which is exact as well."""
    return 2.0 ** _MANTISSA[element_type] if element_type in _MANTISSA else float("inf")


def epsilon(element_type: ElementType) -> float:
    """A few units in the last place of 1."""
    return 8 * 2.0 ** (1 - _MANTISSA[element_type])


def _bounded(sizes: list[int]) -> tuple[int, ...]:
    while prod(sizes) > MAX_ELEMENTS:
        sizes = sizes[:-1]
    return tuple(sizes)


def random_input(rng: np.random.Generator, element_type: ElementType, dims: tuple[int, ...]) -> np.ndarray:
    if element_type is PRED:
        return rng.random(dims) < 0.5
    low = -20 if element_type.is_signed else 0
    return np.asarray(rng.integers(low, 21, dims)).astype(element_type.dtype)
