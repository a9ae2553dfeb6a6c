"""The boxes of the index space that a kernel's outputs are computed in, each by loops of its own.

A box is all of some outputs of equal dimensions, or the part of them where one operand of a concatenation lies, or
every second element, where a pad has room between elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import TypeAlias

from heron.analysis.fusion.fusion import Fusion
from heron.analysis.fusion.in_step import loop_groups
from heron.analysis.indexing.expr import Const
from heron.analysis.indexing.hlo_maps import Index, from_memory, memory_order, memory_sizes
from heron.hlo.ir.shape import Shape
from heron.records import dataclass

Groups: TypeAlias = dict[Shape, list[int]]


@dataclass(frozen=True, slots=True)
class Piece:
    """A box of the index space of outputs `members`: as large as ``shape``, beginning at ``start``.

    ``whole``: the outputs' own shape. ``steps``: from one element to the next in each dimension; none are ones.
    ``is_edge``: it has few of the outputs' elements, for which short code matters more than fast code.
    """

    shape: Shape
    members: tuple[int, ...]
    whole: Shape
    start: tuple[int, ...]
    steps: tuple[int, ...] = ()
    is_edge: bool = False

    def index(self, inside: Index) -> Index:
        """The outputs' index of an index into the box."""
        steps = self.steps or (1,) * len(self.start)
        walked = [i * step if step > 1 else i for i, step in zip(inside, steps, strict=True)]
        return tuple(i + Const(s) if s else i for i, s in zip(walked, self.start, strict=True))

    def at(self, place: Index) -> Index:
        """The outputs' index of a place of the box in memory order."""
        return self.index(from_memory(self.shape, place))

    @property
    def row(self) -> int:
        """A number of elements that divides each stretch of the box that lies in one piece in memory, and its place."""
        if self.shape.dims == self.whole.dims:
            return self.shape.num_elements
        part, whole = memory_sizes(self.shape), memory_sizes(self.whole)
        first = [self.start[d] for d in memory_order(self.shape)]
        cut = max(k for k, (a, b) in enumerate(zip(part, whole, strict=True)) if a != b)
        return gcd(prod(part[cut:]), prod(whole[cut:]), first[cut] * prod(whole[cut + 1 :]))


def whole_pieces(fusion: Fusion) -> list[Piece]:
    """A piece for all outputs of equal dimensions that have something in common; empty outputs need none."""
    loops: dict[int, list[int]] = {}
    for n, loop in enumerate(loop_groups([o.instruction for o in fusion.outputs])):
        if fusion.outputs[n].shape.num_elements:
            loops.setdefault(loop, []).append(n)
    return [piece_of(fusion, members) for members in loops.values()]


def piece_of(fusion: Fusion, members: Sequence[int]) -> Piece:
    """All of outputs `members`, in the order the first lies in memory."""
    shape = fusion.outputs[members[0]].shape
    return Piece(shape, tuple(members), shape, (0,) * shape.rank)


def groups_of(fusion: Fusion) -> Groups:
    """Numbers of the outputs that share a loop, by the first one's shape; empty outputs need none."""
    groups: Groups = {}
    leaders: dict[tuple[int, ...], Shape] = {}
    for n, output in enumerate(fusion.outputs):
        if output.shape.num_elements:
            leader = leaders.setdefault(output.shape.dims, output.shape)
            groups.setdefault(leader, []).append(n)
    return groups
