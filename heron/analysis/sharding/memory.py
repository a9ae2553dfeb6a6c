"""Memory of a computation's values on one device, before anything is fused or scheduled."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod

import numpy as np

from heron.analysis.sharding.choice import Choice
from heron.hlo.facts import updated_operands
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding.atoms import AtomicMesh, Axes, TensorSharding


class Timeline:
    """The bytes that a device has while it runs instructions in an order, each value from its definition to its last
    use. Values without a user stay to the end. The state of a loop is there from the beginning, and a value that is
    updated where it lies counts once.

    Attributes:
        alive: the bytes of values at each place of the order.
        extra: the bytes that the instruction at each place needs beside them.
    """

    def __init__(self, order: Sequence[Instruction]) -> None:
        self._place = {i: n for n, i in enumerate(order)}
        self._first = {i: 0 if _is_carried(i) else n for i, n in self._place.items()}
        self._behind = dict.fromkeys(order, len(order))
        for n, i in enumerate(order):
            self._behind.update(dict.fromkeys(i.operands, n + 1))
        #: for updates the operand in whose memory they are done, if it takes any
        self._inside: dict[Instruction, Instruction] = {}
        for n in range(len(order) - 1, -1, -1):
            updated = updated_operands(order[n])
            if len(updated) == 1 and self._behind[updated[0]] == n + 1 and updated[0].opcode != "parameter":
                self._behind[updated[0]] = self._behind[order[n]]
                self._inside[order[n]] = updated[0]
        self._sizes: dict[Instruction, float] = {}
        self.alive = np.zeros(len(order))
        self.extra = np.zeros(len(order))

    def fill(self, sizes: Mapping[Instruction, float]) -> None:
        """Give these values their bytes; all others have none."""
        steps = np.zeros(len(self.alive) + 1)
        self._sizes = dict(sizes)
        for i, size in sizes.items():
            if not self._is_inside(i):
                steps[self._first[i]] += size
                steps[self._behind[i]] -= size
        self.alive = np.cumsum(steps[:-1])

    def put(self, i: Instruction, size: float) -> None:
        """Give a value other bytes."""
        if not self._is_inside(i):
            self.alive[self._first[i] : self._behind[i]] += size - self._sizes.get(i, 0.0)
        self._sizes[i] = size

    def _is_inside(self, i: Instruction) -> bool:
        return i in self._inside and self._sizes.get(self._inside[i], 0.0) > 0

    def need(self, i: Instruction, size: float) -> None:
        """Give an instruction other bytes that it needs beside values."""
        self.extra[self._place[i]] = size

    @property
    def peak(self) -> float:
        """The most bytes at a time."""
        return float((self.alive + self.extra).max(initial=0.0))


def _is_carried(i: Instruction) -> bool:
    return i.opcode == "get-tuple-element" and i.operands[0].opcode == "parameter"


class Held:
    """The bytes that a device has in the values of a computation, and in what operands are resharded to.

    Attributes:
        has: the sharding of each array value; None where it takes no memory.
        moved: the values that are resharded for a user.
        choices: the shardings in which ops are computed.
    """

    def __init__(
        self,
        order: Sequence[Instruction],
        mesh: AtomicMesh,
        has: Mapping[Instruction, TensorSharding | None],
        moved: Mapping[Instruction, float],
        choices: Mapping[Instruction, Choice],
    ) -> None:
        self.mesh, self.has, self.moved, self.choices = mesh, has, moved, choices
        self.line = Timeline(order)
        self._sizes: dict[tuple[Shape, tuple[Axes, ...]], float] = {}

    def fill(self, has_parameters: bool = True, called: Mapping[Instruction, float] | None = None) -> float:
        """Count all values anew, with or without parameters; the most bytes at a time. ``called``: bytes of what loops,
        branches and calls run."""
        self.line.fill(
            {
                i: self._size(i, has)
                for i, has in self.has.items()
                if has is not None and (has_parameters or i.opcode != "parameter")
            }
        )
        self._note_copies({u for i in self.moved for u in i.users})
        for i, size in (called or {}).items():
            self.line.need(i, size)
        return self.line.peak

    def refill(self, changed: Collection[Instruction], turned: Collection[Instruction]) -> float:
        """The most bytes at a time once `changed` values have other shardings, and values that were not resharded are,
        or the other way round: those `turned`."""
        for i in changed:
            has = self.has.get(i)
            if has is not None:
                self.line.put(i, self._size(i, has))
        self._note_copies({*changed, *(u for i in (*changed, *turned) for u in i.users)})
        return self.line.peak

    def _note_copies(self, users: Iterable[Instruction]) -> None:
        for user in users:
            if user in self.choices:
                needs = zip(user.operands, self.choices[user].operands, strict=True)
                copies = [self._size(o, n) for o, n in needs if o in self.moved and n != self.has[o]]
                self.line.need(user, sum(copies))

    def _size(self, i: Instruction, sharding: TensorSharding) -> float:
        """The bytes of a device's part of an array value."""
        key = i.shape, sharding.dims
        found = self._sizes.get(key)
        if found is None:
            found = prod(self.mesh.local_dims(i.shape.dims, sharding)) * i.shape.element_type.bits / 8
            self._sizes[key] = found
        return found
