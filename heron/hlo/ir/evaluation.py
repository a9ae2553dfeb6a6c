"""Values of instructions, and the services an op's `evaluate` may ask of the evaluator that runs the program.

The language states these needs as a protocol, so that it need not import its evaluator (`heron.evaluator`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np

from heron.records import dataclass

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.shape import Shape

#: an array, a tuple of values, or None for a token
Value: TypeAlias = np.ndarray | tuple["Value", ...] | None
#: numbers of the devices of a group, in the group's order
Members = tuple[int, ...]

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Device:
    """Partition `partition` of replica `replica`; `number` counts all devices, partitions fastest."""

    replica: int
    partition: int
    number: int

    def __str__(self) -> str:
        return f"replica {self.replica}, partition {self.partition}"


class Evaluation(Protocol):
    """The evaluator, as the meanings of ops see it."""

    #: the device this evaluation computes for
    device: Device
    #: counter of 128 bits from which `rng` draws
    rng_state: int

    # -- computations ------------------------------------------------------------------------------------------------
    def call(self, computation: Computation, *values: Any) -> Any:
        """The value of `computation` on those parameters."""
        ...

    def order(self, computation: Computation) -> list[Instruction]:
        """Instructions, operands first."""
        ...

    def is_batchable(self, computation: Computation) -> bool:
        """Whether a scalar computation may run on whole arrays."""
        ...

    def call_library(self, i: Instruction, operands: Sequence[Any]) -> Any:
        """The value of a custom call. Raises EVAL001 for an unknown target, EVAL010 for one that does not fit."""
        ...

    # -- devices -----------------------------------------------------------------------------------------------------
    def group(self, i: Instruction) -> Members | None:
        """The devices of this one's group in a collective, itself included; None when it is in no group.

        Raises EVAL004 for ids beyond the devices there are.
        """
        ...

    def own_group(self, i: Instruction) -> Members:
        """Like `group`; raises EVAL004 when this device is in no group."""
        ...

    def exchange(self, i: Instruction, members: Members, value: _T, work: Callable[[list[_T]], _R]) -> _R:
        """``work(values)`` of the values all members bring, in their order; done once for all of them.

        Raises EVAL006 when the devices wait forever.
        """
        ...

    def permuted_pairs(self, i: Instruction) -> list[tuple[int, int]]:
        """The (source, target) devices of a collective-permute. Raises EVAL004 for ids that no device has."""
        ...

    # -- host and channels -------------------------------------------------------------------------------------------
    def infeed(self, shape: Shape) -> Any:
        """The host's next value, of `shape`. Raises EVAL002, EVAL003 when it does not fit, EVAL007 without one."""
        ...

    def outfeed(self, value: Any) -> None:
        """Hand a value to the host."""
        ...

    def send(self, i: Instruction, value: Any) -> None:
        """Hand `value` over to its receiver. Never waits."""
        ...

    def begin_receive(self, i: Instruction) -> np.ndarray:
        """Begin to receive; gives the ticket for `finish_receive`."""
        ...

    def finish_receive(self, i: Instruction, ticket: np.ndarray, zeros: Any) -> Any:
        """Wait for the value sent; `zeros` for a device nobody sends to. Raises EVAL006, EVAL007."""
        ...
