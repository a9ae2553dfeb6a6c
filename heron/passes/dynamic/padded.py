"""Padded values: arrays of the bound's size, of which the first elements in each dimension count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from heron.errors import HeronError
from heron.hlo import shape as shapes
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.shape import Shape, ShapeIndex
from heron.hlo.types import PRED, S32
from heron.passes.building import array, scalar
from heron.passes.expand.expander import home

#: a dimension of a part of a value
Place = tuple[ShapeIndex, int]


@dataclass(frozen=True)
class Padded:
    """A value without dynamic dimensions, and the size, an ``s32[]``, of each dimension that was one."""

    x: Instruction
    sizes: dict[Place, Instruction] = field(default_factory=dict)

    def size(self, d: int) -> Instruction | None:
        """The size of dimension `d` of an array; None when it is the static one."""
        return self.sizes.get(((), d))

    def size_or_bound(self, d: int) -> Instruction:
        """The size of dimension `d` of an array as a value."""
        found = self.size(d)
        return number(home(self.x), self.x.shape.dims[d]) if found is None else found

    def dynamic_of(self, dims: Iterable[int]) -> list[int]:
        """Those of the dimensions whose size is known at run time only."""
        return [d for d in dims if ((), d) in self.sizes]

    def masked(self, dims: Iterable[int], fill: Instruction | object) -> Instruction:
        """The array with a scalar where it is beyond its size in any of `dims`."""
        dynamic = self.dynamic_of(dims)
        if not dynamic:
            return self.x
        c, s = home(self.x), self.x.shape
        value = fill if isinstance(fill, Instruction) else scalar(c, s.element_type, fill)
        other = c.add("broadcast", [value], s.with_default_layout(), dimensions=())
        return c.add("select", [self.inside(dynamic), self.x, other], s)

    def inside(self, dims: Sequence[int]) -> Instruction:
        """Which elements count, looking at these dimensions."""
        c, found = home(self.x), None
        where = array(S32, self.x.shape.dims)
        for d in dims:
            limit = c.add("broadcast", [self.size_or_bound(d)], where, dimensions=())
            here = c.add("iota", [], where, iota_dimension=d).lt(limit)
            found = here if found is None else found & here
        if found is None:
            return spread(scalar(c, PRED, True), array(PRED, where.dims))
        return found


def of_array(x: Instruction, sizes: dict[int, Instruction | None]) -> Padded:
    """An array with the sizes of some of its dimensions."""
    return Padded(x, {((), d): size for d, size in sizes.items() if size is not None})


def number(c: Computation, n: int) -> Instruction:
    """A constant size."""
    return scalar(c, S32, n)


def spread(x: Instruction, to: Shape) -> Instruction:
    """A scalar everywhere."""
    return home(x).add("broadcast", [x], to, dimensions=()) if to.rank else x


def least(a: Instruction, b: Instruction) -> Instruction:
    return home(a).add("minimum", [a, b])


def greatest(a: Instruction, b: Instruction) -> Instruction:
    return home(a).add("maximum", [a, b])


def chosen(p: Instruction, a: Instruction, b: Instruction) -> Instruction:
    return home(a).add("select", [p, a, b])


def static(s: Shape) -> Shape:
    """The shape with every bound as the size."""
    if s.tuple_shapes is not None:
        return shapes.tuple_(tuple(static(p) for p in s.tuple_shapes))
    return shapes.array(s.element_type, s.dims, s.layout) if s.dynamic else s


def dynamic_places(s: Shape) -> list[Place]:
    """The dynamic dimensions of all parts."""
    return [(index, d) for index, part in s.leaves() for d, marked in enumerate(part.dynamic) if marked]


def refused(i: Instruction, why: str) -> HeronError:
    """What the padder says of an op it has no rule for."""
    return HeronError(
        "PASS020",
        f"'{i.opcode}' with sizes known at run time only cannot be given fixed ones",
        where=str(i),
        why=why,
        hint="make the sizes static before it, or rewrite it with ops that pass sizes on",
    )
