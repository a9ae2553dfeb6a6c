"""Builds the rule of an op factor by factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from heron.analysis.sharding.rule import Dims, Factor, FactorKind, OpRule
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape

#: for each array the dimension that has a factor, None for an array without it; one number stands for all arrays
Where: TypeAlias = "int | None | Sequence[int | None]"


class RuleBuilder:
    """Collects the factors of an op with arrays of these dimensions."""

    def __init__(self, operands: Sequence[Sequence[int]], results: Sequence[Sequence[int]]) -> None:
        self.operands, self.results = operands, results
        self._factors: list[Factor] = []
        self._operands: list[list[list[int]]] = [[[] for _ in dims] for dims in operands]
        self._results: list[list[list[int]]] = [[[] for _ in dims] for dims in results]

    @staticmethod
    def of(i: Instruction) -> RuleBuilder:
        """A builder for the arrays of `i`."""
        operands = [dims for o in i.operands for dims in array_dims(o.shape)]
        return RuleBuilder(operands, array_dims(i.shape))

    def add(
        self,
        size: int,
        operands: Where,
        results: Where,
        kind: FactorKind = FactorKind.PASS_THROUGH,
        *,
        is_blocked: bool = False,
        reducer: str = "",
        is_positional: bool = False,
    ) -> RuleBuilder:
        """Add a factor, minor to those that its dimensions have so far.

        `operands` and `results` say for each array which dimension has it; one number stands for all arrays but
        scalars. A factor of size 1 joins only dimensions that have none.
        """
        number = len(self._factors)
        self._factors.append(Factor(size, kind, is_blocked, reducer, is_positional))
        for arrays, where in ((self._operands, operands), (self._results, results)):
            places = [where] * len(arrays) if where is None or isinstance(where, int) else where
            for array, d in zip(arrays, places, strict=True):
                if d is not None and array and (size != 1 or not array[d]):
                    array[d].append(number)
        return self

    def same(
        self,
        dims: Sequence[int],
        kinds: Sequence[FactorKind] | FactorKind = FactorKind.PASS_THROUGH,
        *,
        is_blocked: bool = False,
        is_positional: bool = False,
    ) -> RuleBuilder:
        """Add one factor for each dimension, the same in all arrays. Others than pass-through may be blocked."""
        for d, size in enumerate(dims):
            kind = kinds if isinstance(kinds, FactorKind) else kinds[d]
            passes = kind is FactorKind.PASS_THROUGH
            self.add(size, d, d, kind, is_blocked=is_blocked and not passes, is_positional=is_positional)
        return self

    def build(self) -> OpRule:
        """The rule. A dimension without factors gets one of its own that must stay whole."""
        for arrays, shapes in ((self._operands, self.operands), (self._results, self.results)):
            for array, dims in zip(arrays, shapes, strict=True):
                for d, numbers in enumerate(array):
                    if not numbers:
                        numbers.append(len(self._factors))
                        kind = FactorKind.PASS_THROUGH if dims[d] == 1 else FactorKind.NEED_REPLICATION
                        self._factors.append(Factor(dims[d], kind))
        return OpRule(tuple(self._factors), _frozen(self._operands), _frozen(self._results))


def _frozen(arrays: list[list[list[int]]]) -> tuple[Dims, ...]:
    return tuple(tuple(map(tuple, array)) for array in arrays)


def array_dims(shape: Shape) -> list[tuple[int, ...]]:
    """The dimensions of every array in a shape; tokens have none and are left out."""
    if shape.is_array:
        return [shape.dims]
    return [s.dims for _, s in shape.leaves() if s.is_array]
