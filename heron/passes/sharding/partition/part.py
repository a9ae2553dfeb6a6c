"""Part: one device's share of an array, with the array's shape and sharding."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, row_major
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """The share of an array that each device has.

    Attributes:
        value: the share, in the program being built. Its dimensions are those of the array divided by the number of
            parts and rounded up. Elements of the last parts beyond the array's end are arbitrary.
        shape: the array's shape. Inside a manual computation it is local along the manual axes.
        sharding: the atoms along each dimension, closed. With unreduced atoms the value is a summand.
    """

    value: Instruction
    shape: Shape
    sharding: TensorSharding

    @property
    def dims(self) -> tuple[int, ...]:
        """The sizes of the whole array."""
        return self.shape.dims

    @property
    def local_dims(self) -> tuple[int, ...]:
        """The sizes of the share."""
        return self.value.shape.dims

    def is_uneven(self, dim: int, mesh: AtomicMesh) -> bool:
        """Whether the last parts along a dimension have elements beyond the array's end."""
        return self.local_dims[dim] * mesh.size(self.sharding.dims[dim]) != self.dims[dim]


def local_shape(shape: Shape, sharding: TensorSharding, mesh: AtomicMesh) -> Shape:
    """The shape of one device's share, in the default layout. Tokens and the like keep their shape."""
    if not shape.is_array:
        return shape
    return row_major(shape.element_type, *mesh.local_dims(shape.dims, sharding))


def moved(axes: Sequence[int], wanted: Sequence[int]) -> int:
    """The number of atoms that two lists have in common at their beginning."""
    n = 0
    while n < len(axes) and n < len(wanted) and axes[n] == wanted[n]:
        n += 1
    return n
