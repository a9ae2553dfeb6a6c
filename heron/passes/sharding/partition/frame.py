"""Frame: a computation that is being built, and the values that it has already."""

from __future__ import annotations

from collections.abc import Hashable

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.sharding.partition.part import Part


class Frame:
    """One computation of the new program.

    Attributes:
        computation: where instructions are added.
        known: scalars, masks and the like by what they are.
        versions: for each value the other shardings in which it is there already.
        parts: the leaves of each instruction of the old program.
        manual: the atoms of enclosing manual computations, for ops without operands.
    """

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.known: dict[Hashable, Instruction] = {}
        self.versions: dict[Instruction, dict[TensorSharding, Part]] = {}
        self.parts: dict[Instruction, list[Part]] = {}
        self.manual: frozenset[int] = frozenset()
