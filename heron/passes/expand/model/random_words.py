"""Building arithmetic on words of 32 and 64 bits, for the generators of random bits."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import PRED, U32, U64, ElementType
from heron.passes.rewriting.building import array, reshape, splat


class Words:
    """Adds to one computation; new instructions get the metadata of `like`. All arithmetic wraps around."""

    def __init__(self, c: Computation, like: Instruction | None) -> None:
        self.c, self.like = c, like

    # -- elementwise -------------------------------------------------------------------------------------------------
    def op(self, opcode: str, x: Instruction, y: Instruction) -> Instruction:
        return self.c.add(opcode, [x, y], x.shape, like=self.like)

    def add(self, x: Instruction, y: Instruction) -> Instruction:
        return self.op("add", x, y)

    def xor(self, x: Instruction, y: Instruction) -> Instruction:
        return self.op("xor", x, y)

    def less(self, x: Instruction, y: Instruction) -> Instruction:
        return self.c.add("compare", [x, y], array(PRED, x.shape.dims), like=self.like, direction="LT")

    def constant(self, like: Instruction, value: int) -> Instruction:
        """`value` in the type and dimensions of `like`."""
        return splat(self.c, like.shape, value % (1 << like.shape.element_type.bits))

    def convert(self, x: Instruction, t: ElementType) -> Instruction:
        if x.shape.element_type is t:
            return x
        return self.c.add("convert", [x], array(t, x.shape.dims), like=self.like)

    def shifted(self, opcode: str, x: Instruction, bits: int) -> Instruction:
        return self.op(opcode, x, self.constant(x, bits))

    def rotated(self, x: Instruction, left: int) -> Instruction:
        up = self.shifted("shift-left", x, left)
        return self.op("or", up, self.shifted("shift-right-logical", x, x.shape.element_type.bits - left))

    def halves(self, x: Instruction) -> tuple[Instruction, Instruction]:
        """Lower and upper 32 bits of u64."""
        return self.convert(x, U32), self.convert(self.shifted("shift-right-logical", x, 32), U32)

    def whole(self, low: Instruction, high: Instruction) -> Instruction:
        """u64 from its halves."""
        return self.op("or", self.convert(low, U64), self.shifted("shift-left", self.convert(high, U64), 32))

    def product(self, x: Instruction, factor: int) -> Instruction:
        """All 64 bits of u32 times a constant."""
        wide = self.convert(x, U64)
        return self.op("multiply", wide, self.constant(wide, factor))

    # -- arrays ------------------------------------------------------------------------------------------------------
    def spread(self, x: Instruction, dims: Sequence[int]) -> Instruction:
        """A scalar everywhere."""
        if not dims:
            return x
        return self.c.add("broadcast", [x], array(x.shape.element_type, dims), like=self.like, dimensions=())

    def iota(self, t: ElementType, size: int) -> Instruction:
        return self.c.add("iota", [], array(t, (size,)), like=self.like, iota_dimension=0)

    def interleaved(self, parts: Sequence[Instruction], d: int) -> Instruction:
        """Equal arrays merged along a dimension: one element of each in turn.

        By selects, not a concatenate: all parts are then computed at one index, and what they share only once.
        """
        dims, count, t = parts[0].shape.dims, len(parts), parts[0].shape.element_type
        wide = array(t, (*dims[: d + 1], count, *dims[d + 1 :]))
        kept = tuple(n for n in range(wide.rank) if n != d + 1)
        spread = [self.c.add("broadcast", [p], wide, like=self.like, dimensions=kept) for p in parts]
        which = self.c.add("iota", [], array(U32, wide.dims), like=self.like, iota_dimension=d + 1)
        merged = spread[-1]
        for n in reversed(range(count - 1)):
            here = self.less(which, self.constant(which, n + 1))
            merged = self.c.add("select", [here, spread[n], merged], wide, like=self.like)
        return reshape(merged, (*dims[:d], dims[d] * count, *dims[d + 1 :]))

    def concatenate(self, parts: Sequence[Instruction], d: int) -> Instruction:
        if len(parts) == 1:
            return parts[0]
        dims = list(parts[0].shape.dims)
        dims[d] = sum(p.shape.dims[d] for p in parts)
        shape = array(parts[0].shape.element_type, dims)
        return self.c.add("concatenate", parts, shape, like=self.like, dimensions=(d,))

    def first(self, x: Instruction, dims: Sequence[int]) -> Instruction:
        """The first elements in every dimension."""
        if x.shape.dims == tuple(dims):
            return x
        window = tuple((0, n, 1) for n in dims)
        return self.c.add("slice", [x], array(x.shape.element_type, dims), like=self.like, slice=window)

    # -- states: vectors of u32 or u64 as a list of u64 scalars ------------------------------------------------------
    def unpacked(self, state: Instruction) -> list[Instruction]:
        """The state's 64-bit words; of two 32-bit ones the lower comes first."""
        t = state.shape.element_type
        elements = [
            reshape(self.c.add("slice", [state], array(t, (1,)), like=self.like, slice=((n, n + 1, 1),)), ())
            for n in range(state.shape.num_elements)
        ]
        if t is U64:
            return elements
        return [self.whole(low, high) for low, high in zip(elements[::2], elements[1::2], strict=True)]

    def packed(self, words: Sequence[Instruction], shape: Shape) -> Instruction:
        """Words as a state of that shape."""
        elements = words if shape.element_type is U64 else [half for word in words for half in self.halves(word)]
        return self.concatenate([reshape(e, (1,)) for e in elements], 0)
