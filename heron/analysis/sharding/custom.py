"""Custom calls whose code for one device comes from outside: a framework's functions that partition them.

A framework puts a `CustomPartitioner` under the name of a custom call's target into `PARTITIONERS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.sharding import Sharding
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class LocalCall:
    """A custom call for one device.

    Attributes:
        module: the computation on local operands. Its collectives are over the devices of the whole mesh.
        operands: the shardings in which it takes the operands.
        result: the sharding in which it gives the result, a tuple sharding for a tuple.
    """

    module: Module
    operands: tuple[Sharding, ...]
    result: Sharding


class CustomPartitioner(Protocol):
    """The functions of a framework for calls of one target. Shardings are those of whole arrays."""

    def partition(self, call: Instruction, operands: Sequence[Sharding], result: Sharding) -> LocalCall:
        """The call for one device, where its operands and its result shall be sharded so."""
        ...

    def infer(self, call: Instruction, operands: Sequence[Sharding]) -> Sharding | None:
        """The result's sharding that follows from the operands' ones, if any does."""
        ...

    def from_user(self, call: Instruction, result: Sharding) -> Sharding:
        """The sharding to give the call, where its user wants this one."""
        ...


#: by the target of the custom call
PARTITIONERS: dict[str, CustomPartitioner] = {}
