"""Orders of dimensions in memory, slowest first, and row-major arrays of the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.layout import layout
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.passes.rewriting.building import array, reshape, transpose
from heron.passes.rewriting.expander import home

#: dimensions as they lie in memory, the slowest first
Order = tuple[int, ...]


def order(shape: Shape) -> Order:
    """The dimensions in the order of memory, slowest first."""
    return tuple(range(shape.rank)) if shape.layout is None else shape.layout.minor_to_major[::-1]


def inverse(places: Sequence[int]) -> list[int]:
    """The new place of each dimension: the inverse permutation."""
    return [places.index(d) for d in range(len(places))]


@cache
def is_default(shape: Shape) -> bool:
    """Whether everything in it is row-major."""
    return shape is shape.with_default_layout()


@cache
def is_plain(shape: Shape) -> bool:
    """Whether layouts say an order of dimensions and nothing else: no tiles, no memory space."""
    return all(s.layout is None or s.layout is layout(s.layout.minor_to_major) for _, s in shape.leaves())


def in_order(shape: Shape, dims: Order) -> Shape:
    """The array shape with its dimensions in that order in memory."""
    return shape.with_layout(layout(dims[::-1]))


def same_place(shape: Shape, a: Order, b: Order) -> bool:
    """Whether both orders place all elements alike: dimensions of size 1 do not count."""
    return a == b or [d for d in a if shape.dims[d] != 1] == [d for d in b if shape.dims[d] != 1]


@cache
def stored(shape: Shape) -> Shape:
    """The row-major array of the same bytes: the dimensions in the order of memory."""
    return array(shape.element_type, [shape.dims[d] for d in order(shape)])


@cache
def is_laid_out(shape: Shape) -> bool:
    """Whether anything in it is said to be in another than row-major order, in tiles, or in another memory."""
    return any(s.layout is not None and not s.layout.is_default for _, s in shape.leaves())


def has_layouts(module: Module) -> bool:
    """Whether anything `is_laid_out`."""
    sound: set[Shape] = set()
    for i in module.instructions():
        if i.shape in sound:
            continue
        if is_laid_out(i.shape):
            return True
        sound.add(i.shape)
    return False


def transposed(x: Instruction, places: Sequence[int]) -> Instruction:
    """Row-major `x` transposed, in one step where it is a transpose itself; a reshape where no element moves."""
    if list(places) == list(range(len(places))):
        return x
    moved = [d for d in places if x.shape.dims[d] != 1]
    if moved == sorted(moved):
        return viewed(x, [x.shape.dims[d] for d in places])
    while x.opcode == "transpose" and is_default(x.operands[0].shape):
        places = [x.attrs["dimensions"][d] for d in places]
        x = x.operands[0]
    return transpose(x, places)


def viewed(x: Instruction, dims: Sequence[int]) -> Instruction:
    """Row-major `x` reshaped, in one step where it is a reshape itself."""
    while x.opcode == "reshape" and is_default(x.operands[0].shape):
        x = x.operands[0]
    return reshape(x, dims)


class Rows:
    """Row-major arrays of the bytes of a computation's values, each made once."""

    def __init__(self) -> None:
        self._made: dict[Instruction, Instruction] = {}

    def of(self, x: Instruction) -> Instruction:
        """The bytes of `x` as a row-major array, dimension n being ``order(x.shape)[n]`` of `x`."""
        wanted = stored(x.shape)
        if x.shape is wanted:
            return x
        if x.opcode == "bitcast" and x.operands[0].shape is wanted:
            return x.operands[0]
        made = self._made.get(x)
        if made is None or made.parent is None:
            made = self._made[x] = home(x).add("bitcast", [x], wanted, like=x)
        return made

    def ordered(self, x: Instruction, dims: Sequence[int]) -> Instruction:
        """`x` as a row-major array whose dimension n is ``dims[n]`` of `x`; transposed where its bytes are not that."""
        return transposed(self.of(x), [order(x.shape).index(d) for d in dims])


def laid(rows: Instruction, dims: Sequence[int] | None, shape: Shape) -> Instruction:
    """A value of `shape` from a row-major array whose dimension n is its dimension ``dims[n]`` (None: its n-th)."""
    at = list(range(shape.rank) if dims is None else dims)
    rows = transposed(rows, [at.index(d) for d in order(shape)])
    return rows if rows.shape is shape else home(rows).add("bitcast", [rows], shape, like=rows)
