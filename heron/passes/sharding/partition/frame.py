"""Frame: a computation that is being built, and the values that it has already."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.sharding.partition.part import Part

#: a value, the shape of the array that it is a share of, and the manual atoms around
View: TypeAlias = tuple[Instruction, Shape, frozenset[int]]


class Frame:
    """One computation of the new program.

    Attributes:
        computation: where instructions are added.
        known: scalars, masks and the like by what they are.
        versions: for each value that was resharded all the shardings in which it is there.
        origins: for each value made by resharding the part that it was made from in the beginning.
        parts: the leaves of each instruction of the old program.
        manual: the atoms of enclosing manual computations, for ops without operands.
    """

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.known: dict[Hashable, Instruction] = {}
        self.versions: dict[View, dict[TensorSharding, Part]] = {}
        self.origins: dict[View, Part] = {}
        self.parts: dict[Instruction, list[Part]] = {}
        self.manual: frozenset[int] = frozenset()
