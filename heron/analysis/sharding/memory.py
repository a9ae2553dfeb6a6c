"""Memory of a computation's values on one device, before anything is fused or scheduled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding.atoms import AtomicMesh, Axes, TensorSharding


class LocalSizes:
    """Bytes of the parts of arrays, each computed once."""

    def __init__(self, mesh: AtomicMesh) -> None:
        self.mesh = mesh
        self._found: dict[tuple[Shape, tuple[Axes, ...]], float] = {}

    def of(self, i: Instruction, sharding: TensorSharding) -> float:
        """The bytes of a device's part of an array value."""
        key = i.shape, sharding.dims
        found = self._found.get(key)
        if found is None:
            found = prod(self.mesh.local_dims(i.shape.dims, sharding)) * i.shape.element_type.bits / 8
            self._found[key] = found
        return found


def last_used(order: Sequence[Instruction]) -> list[list[Instruction]]:
    """For each instruction the operands that none behind it uses."""
    seen: set[Instruction] = set()
    found: list[list[Instruction]] = []
    for i in reversed(order):
        found.append([o for o in dict.fromkeys(i.operands) if o not in seen])
        seen.update(i.operands)
    return found[::-1]


def peak_bytes(
    order: Sequence[Instruction],
    ends: Sequence[Sequence[Instruction]],
    sizes: Mapping[Instruction, float],
    extra: Mapping[Instruction, float],
) -> float:
    """The most bytes that a device has at a time when it runs the instructions in this order.

    `ends` is `last_used` of the order, `sizes` the bytes of each value, none for one that is left out. `extra` has what
    some instructions need beside operands and result.
    """
    alive = peak = 0.0
    for i, dead in zip(order, ends, strict=True):
        alive += sizes.get(i, 0.0)
        if alive + extra.get(i, 0.0) > peak:
            peak = alive + extra.get(i, 0.0)
        for o in dead:
            alive -= sizes.get(o, 0.0)
    return peak
