"""Positions of a block kernel: where along each dimension a program is, and index expressions over them as tiles."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    IntegerAttr,
    i1,
    i32,
    i64,
)
from xdsl.ir import Block, SSAValue

from heron.analysis.blocks.config import power_of_two
from heron.analysis.blocks.tiling import used
from heron.analysis.indexing.expr import Add, Const, Dim, Expr, FloorDiv, Mod, Mul
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.map import Constraint
from heron.analysis.indexing.simplify import Simplifier, linear_terms, simplifier
from heron.codegen.ir.dialects.triton import (
    MakeRangeOp,
)
from heron.codegen.triton.tiles import Axis, Tile, TileBuilder
from heron.records import dataclass

Guard = tuple[Constraint, ...]
#: elements a matrix unit sums at least, of bytes
SHORTEST = 32


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a program along a dimension of ``size`` elements: a scalar, or a tile on the axis of that number.

    ``whole``: the tile holds the dimension. ``exact``: no element of a tile lies outside. ``start``: the first element,
    when that is not 0.
    """

    size: int
    tile: Tile
    whole: bool = False
    exact: bool = True
    start: SSAValue | None = None


class Positions:
    """The positions of one kernel, which index expressions name by `Dim`, and the builder of its tiles."""

    def __init__(self, block: Block) -> None:
        self.b = TileBuilder(block)
        self.positions: list[Position] = []
        self._simplifier: Simplifier = simplifier(())

    def _position(self, size: int, tile: int, order: float, place: SSAValue | None, step: int = 0) -> Expr:
        """A new position; ``place``: which tile, in units of `step` (the tile itself by default); None: the first."""
        b, n = self.b, len(self.positions)
        b.axes[n] = Axis(tile, order)
        base = None if place is None else b.op(arith.MuliOp, (place, b.integer(step or tile))) if step != 1 else place
        if tile == 1:
            value = Tile(base if base is not None else b.integer(0))
        else:
            bounds = {"end": IntegerAttr(tile, i32), "start": IntegerAttr(0, i32)}
            value = Tile(b.op(MakeRangeOp, (), b.type_of((n,), i32), bounds), (n,))
            if base is not None:
                value = b.each(arith.AddiOp, value, Tile(base))
        self.positions.append(Position(size, value, tile >= size and tile > 1, size % tile == 0, base))
        # a tile stays one, even if only its first place is wanted
        self._simplifier = simplifier(tuple((0, max(p.size - 1, len(p.tile.axes))) for p in self.positions))
        return Dim(n) if size > 1 or tile > 1 else Const(0)

    def _whole(self, size: int, beside: Sequence[Expr], order: float | None = None) -> Expr:
        """A position that runs over a whole dimension: one there is, unless `beside` has it already."""
        taken = used(tuple(beside))
        for n in reversed(range(len(self.positions))):
            p = self.positions[n]
            if p.whole and p.size == size and n not in taken:
                return Dim(n)
        with self.b.outside(0):
            last = 1e3 + len(self.positions)
            return self._position(size, max(SHORTEST, power_of_two(size)), last if order is None else order, None)

    def _axes(self, index: Sequence[Expr]) -> tuple[int, ...]:
        return self.b.ordered([n for n in used(tuple(index)) if self.positions[n].tile.axes])

    def _level(self, index: Sequence[Expr]) -> int:
        """The number of loops around the places of an index."""
        return max((self.b.level(self.positions[p].tile.value) for p in used(tuple(index))), default=0)

    def simplify(self, index: Sequence[Expr]) -> Index:
        return tuple(self._simplifier.simplify(e) for e in index)

    def place(self, e: Expr) -> Tile:
        """An index expression as a tile of i32."""
        match e:
            case Const():
                return Tile(self.b.integer(e.value))
            case Dim():
                return self.positions[e.index].tile
            case FloorDiv() | Mod():
                kind = arith.DivSIOp if isinstance(e, FloorDiv) else arith.RemSIOp
                return self.b.each(kind, self.place(e.lhs), self.place(e.rhs))
            case Mul():
                return self.b.each(arith.MuliOp, self.place(e.lhs), self.place(e.rhs))
            case Add():
                return self._sum(e)
        raise AssertionError(e)

    def _sum(self, e: Expr) -> Tile:
        """Terms along the same axes first, so that few ops are on large tiles."""
        terms, constant = linear_terms(e)
        parts: dict[tuple[int, ...], Tile] = {(): Tile(self.b.integer(constant))} if constant else {}
        for atom, factor in terms.items():
            term = self.place(atom)
            if factor != 1:
                term = self.b.each(arith.MuliOp, term, Tile(self.b.integer(factor)))
            parts[term.axes] = self._plus(parts.get(term.axes), term)
        total: Tile | None = None
        for axes in sorted(parts, key=len):
            total = self._plus(total, parts[axes])
        assert total is not None
        return total

    def _plus(self, a: Tile | None, b: Tile) -> Tile:
        return b if a is None else self.b.each(arith.AddiOp, a, b)

    def _compare(self, predicate: str, a: Tile, bound: int) -> Tile:
        properties = {"predicate": IntegerAttr({"ne": 1, "slt": 2, "sle": 3, "sge": 5}[predicate], i64)}
        other = Tile(self.b.integer(bound, a.element))
        return self.b.each(arith.CmpiOp, a, other, element=i1, properties=properties)

    def _mask(self, index: Sequence[Expr], guard: Guard) -> Tile | None:
        """The mask of indices inside the array where `guard` holds; None: everywhere."""
        b, mask = self.b, None
        tests: list[Tile] = []
        for n in sorted(used((*index, *(e for e, _, _ in guard)))):
            p = self.positions[n]
            if not p.exact:
                tests.append(self._compare("slt", p.tile, p.size))
        for e, lo, hi in guard:
            least, most = self._simplifier.range_of(e)
            if least < lo:
                tests.append(self._compare("sge", self.place(e), lo))
            if most > hi:
                tests.append(self._compare("sle", self.place(e), hi))
        for test in tests:
            mask = test if mask is None else b.each(arith.AndIOp, mask, test)
        return mask
