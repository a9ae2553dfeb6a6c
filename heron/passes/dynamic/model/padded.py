"""Padded values: arrays of the bound's size, of which the first elements in each dimension count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heron.analysis.dynamic_sizes import DynamicSizes, Place, Size, below
from heron.errors import HeronError
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import PRED, S32
from heron.passes.rewriting.building import array, scalar
from heron.passes.rewriting.expander import home
from heron.records import dataclass


class Numbers:
    """The sizes of one computation as ``s32[]`` of it, each made once and only where it is needed.

    ``values`` has what stands for instructions that were padded.
    """

    def __init__(self, c: Computation, found: DynamicSizes, values: dict[Instruction, Padded]) -> None:
        self.c, self.found, self.values = c, found, values
        self._made: dict[Size, Instruction] = {}

    def bring(self, source: Instruction, place: Place, x: Instruction) -> None:
        """`x` is the size that comes in with `source`."""
        self._made[self.found.algebra.of(source, place)] = x

    def __getitem__(self, size: Size) -> Instruction:
        for s in below(size, self._made):
            self._made[s] = self._make(s)
        return self._made[size]

    def _make(self, s: Size) -> Instruction:
        match s.op:
            case "number":
                return number(self.c, s.args[0])
            case "value":
                (x,) = s.args
                return self.values[x].x if x in self.values else x
            case "of":
                raise AssertionError(f"{s} was not brought in")
        return self.c.add(s.op, [self._made[p] for p in s.args])

    def static(self, x: Instruction) -> Padded:
        """A value of the program that has no dynamic dimension."""
        return Padded(x, {}, self)

    def padded(self, x: Instruction, i: Instruction) -> Padded:
        """`x` as what stands for `i`."""
        return Padded(x, self.found.of(i), self)


@dataclass(frozen=True, eq=False)
class Padded:
    """A value without dynamic dimensions, and the size of each dimension that was one."""

    x: Instruction
    sizes: dict[Place, Size]
    numbers: Numbers

    def size(self, d: int) -> Size | None:
        """The size of dimension `d` of an array; None when it is the static one."""
        return self.sizes.get(((), d))

    def number(self, d: int) -> Instruction:
        """The size of dimension `d` of an array as a value."""
        return self.number_at(((), d))

    def number_at(self, place: Place) -> Instruction:
        """The size of a dimension of a part as a value."""
        index, d = place
        size = self.sizes.get(place)
        return number(self.numbers.c, self.x.shape.at(index).dims[d]) if size is None else self.numbers[size]

    def dynamic_of(self, dims: Iterable[int]) -> list[int]:
        """The dimensions of an array in which some elements may be padding."""
        return [d for d in dims if (s := self.size(d)) is not None and s.number != self.x.shape.dims[d]]

    def also(self, sizes: dict[int, Size | None]) -> Padded:
        """The same with further dimensions of which only so much counts."""
        return Padded(self.x, {**{((), d): s for d, s in sizes.items() if s is not None}, **self.sizes}, self.numbers)

    def masked(self, dims: Iterable[int], fill: Instruction | object) -> Instruction:
        """The array with a scalar where it is beyond its size in any of `dims`."""
        dynamic = self.dynamic_of(dims)
        if not dynamic:
            return self.x
        c, s = home(self.x), self.x.shape
        value = fill if isinstance(fill, Instruction) else scalar(c, s.element_type, fill)
        return c.add("select", [self.inside(dynamic), self.x, spread(value, s.with_default_layout())], s)

    def inside(self, dims: Iterable[int]) -> Instruction:
        """A mask of the elements that are not padding, along these dimensions."""
        c, found = home(self.x), None
        where = array(S32, self.x.shape.dims)
        for d in self.dynamic_of(dims):
            here = c.add("iota", [], where, iota_dimension=d).lt(spread(self.number(d), where))
            found = here if found is None else found & here
        return spread(scalar(c, PRED, True), array(PRED, where.dims)) if found is None else found


def number(c: Computation, n: int) -> Instruction:
    """A constant size."""
    return scalar(c, S32, n)


def spread(x: Instruction, to: Shape) -> Instruction:
    """A scalar everywhere."""
    return home(x).add("broadcast", [x], to, dimensions=()) if to.rank else x


def chosen(p: Instruction, a: Instruction, b: Instruction) -> Instruction:
    """`a` where `p` holds, else `b`."""
    return home(a).add("select", [p, a, b])


def static(s: Shape) -> Shape:
    """The shape with every bound as the size."""
    if s.tuple_shapes is not None:
        return shapes.tuple_(tuple(static(p) for p in s.tuple_shapes))
    return shapes.array(s.element_type, s.dims, s.layout) if s.dynamic else s


def remade(i: Instruction, operands: Sequence[Instruction], **attrs: object) -> Instruction:
    """The same op on other operands, with static sizes."""
    return home(i).attach(i.clone(operands, static(i.shape), **attrs))


def refused(i: Instruction, why: str) -> HeronError:
    """The padder's error for an op without a rule."""
    return HeronError(
        "PASS020",
        f"'{i.opcode}' with sizes known at run time only cannot be given fixed ones",
        where=str(i),
        why=why,
        hint="make the sizes static before it, or rewrite it with ops that pass sizes on",
    )
