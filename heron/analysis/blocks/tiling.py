"""From a tile of a result to the tiles of all it is computed from.

A program of a block kernel computes a tile of the result: along every dimension some elements that lie side by side.
The part that it needs of any other value follows from that value's index, an expression over *variables*: places in the
result (`d0`, `d1`, …), and for every product a place in its sum, for every reduction one in its row. Where each
dimension of the value goes along at most one variable by a constant step, the elements needed are a tile themselves,
with an offset, a size and a stride; anything else is refused with a reason.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Literal, NamedTuple

from heron.analysis.indexing.expr import Const, Dim, Expr, FloorDiv, Mod
from heron.analysis.indexing.hlo_maps import Index, moves_elements, operand_index
from heron.analysis.indexing.simplify import Simplifier, linear_terms, simplifier
from heron.hlo.facts import contracts, is_leaf
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass

#: numbers that one element may hold
PACKED = 8


class Variable(NamedTuple):
    """The variables of indices: places in the result, in the sum of a product, in a reduced row."""

    size: int
    kind: Literal["result", "sum", "row"]


#: block kernels count the elements of an array in 32 bits, a sign among them
_MOST_ELEMENTS = (1 << 31) - 1


class Refusal(NamedTuple):
    """Why a value cannot be computed tile by tile."""

    instruction: Instruction
    why: str


class Side(NamedTuple):
    """One dimension of a tile: elements ``offset``, ``offset + stride``, … , ``size`` of them."""

    offset: Expr
    size: int
    stride: int


@dataclass
class Tiling:
    """Every value that `root` is computed from, as far as ``inside`` goes, with the indices it is needed at.

    ``whole``: dimensions of the result that a tile holds whole: rows that are reduced may lie along them.
    """

    root: Instruction
    inside: Container[Instruction]
    whole: frozenset[int] = frozenset()
    variables: list[Variable] = field(default_factory=list)
    values: dict[Instruction, list[Index]] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    _simplifier: Simplifier = field(default_factory=lambda: simplifier(()))

    def __post_init__(self) -> None:
        index = tuple(self._new(n, "result") for n in self.root.shape.dims)
        self._address(self.root)
        self._need(self.root, index)

    @property
    def products(self) -> list[tuple[Instruction, Index]]:
        """The products inside, each as often as it is needed at another index."""
        return [(i, index) for i, ways in self.values.items() if i.opcode == "dot" for index in ways]

    def simplify(self, index: Sequence[Expr]) -> Index:
        return tuple(self._simplifier.simplify(e) for e in index)

    def tile(
        self, i: Instruction, index: Index, sizes: Sequence[int], packed: bool = False
    ) -> tuple[Side, ...] | Refusal:
        """The tile of `i` at one of its indices, when tiles have `sizes` along the variables (1: a single place).

        The offset is that of the tile whose places along the variables begin where the variables are. ``packed``: also
        where several elements of the result come from one, as of a byte with two numbers, and begin with it.
        """
        sides: list[Side] = []
        for d, e in enumerate(index):
            terms, _ = linear_terms(e)
            tiled = [a for a in terms if any(sizes[v] > 1 for v in used((a,)))]
            if len(tiled) > 1:
                return Refusal(i, f"dimension {d} goes along {len(tiled)} dimensions of the tile: {e}")
            if tiled and packed and (size := _packed(tiled[0], sizes)):
                sides.append(Side(e, size, terms[tiled[0]]))
                continue
            if tiled and not isinstance(tiled[0], Dim):
                return Refusal(i, f"dimension {d} does not go in equal steps: {e}")
            size = sizes[tiled[0].index] if tiled and isinstance(tiled[0], Dim) else 1
            sides.append(Side(e, size, terms[tiled[0]] if tiled else 1))
        return tuple(sides)

    def place_of(self, i: Instruction, whole: frozenset[int] | None = None) -> Index | None:
        """The index, in a tile, of a value that is also a result: each of its elements is in one tile only. None if
        there is no such index. ``whole``: the dimensions that tiles hold whole, by default those of the tiling."""
        held = self.whole if whole is None else whole
        rest = {d for d, n in enumerate(self.root.shape.dims) if n != 1} - held
        for way in self.values.get(i, ()):
            plain = all(isinstance(e, Dim) and e.index < self.root.shape.rank or e == Const(0) for e in way)
            full = all(e != Const(0) or n == 1 for e, n in zip(way, i.shape.dims, strict=True))
            if plain and full and rest <= used(way):
                return way
        return None

    # -- walking -------------------------------------------------------------------------------------------------------
    def _new(self, size: int, kind: Literal["result", "sum", "row"]) -> Expr:
        self.variables.append(Variable(size, kind))
        self._simplifier = simplifier(tuple((0, max(0, v.size - 1)) for v in self.variables))
        return Dim(len(self.variables) - 1) if size != 1 else Const(0)

    def _need(self, i: Instruction, index: Index) -> None:
        ways = self.values.setdefault(i, [])
        if index in ways:
            return
        ways.append(index)
        if i not in self.inside or is_leaf(i):
            self._address(i)
            return
        match i.opcode:
            case "dot":
                self._need_factors(i, index)
            case "reduce":
                self._need_rows(i, index)
            case "concatenate":
                self._need_parts(i, index)
            case _ if moves_elements(i) and not i.op.is_elementwise:
                self._need(i.operands[0], self.simplify(operand_index(i, 0, index)))
            case _ if i.op.is_elementwise:
                for o in i.operands:
                    self._need(o, index if o.shape.dims == i.shape.dims else ())
            case _:
                self.refusals.append(Refusal(i, f"'{i.opcode}' is not computed tile by tile"))

    def _address(self, i: Instruction) -> None:
        """Refuse an array in memory that has more elements than a block kernel can count."""
        if i.shape.is_array and i.shape.num_elements > _MOST_ELEMENTS:
            why = f"it has {i.shape.num_elements:,} elements, and a block kernel counts up to {_MOST_ELEMENTS:,}"
            self.refusals.append(Refusal(i, why))

    def _need_factors(self, i: Instruction, index: Index) -> None:
        if len(i.operands) != 2 or len(i.lhs_contracting_dims) != 1:
            self.refusals.append(Refusal(i, "a product on tiles is of two arrays, along one dimension each"))
            return
        lhs, rhs = i.operands[:2]
        batch, m, n = split(i, index)
        rows = any(holds_rows(o, self.inside) for o in (lhs, rhs))
        k = self._new(lhs.shape.dims[i.lhs_contracting_dims[0]], "row" if rows else "sum")
        self._need(lhs, self.simplify(factor_index(i, 0, batch, k, m)))
        self._need(rhs, self.simplify(factor_index(i, 1, batch, k, n)))

    def _need_rows(self, i: Instruction, index: Index) -> None:
        if len(i.operands) != 2:
            self.refusals.append(Refusal(i, "a reduction on tiles is of one array"))
            return
        source, kept = i.operands[0], iter(index)
        full: list[Expr] = []
        for d, n in enumerate(source.shape.dims):  # two rows of one size are two variables
            full.append(self._row(n, (*index, *full)) if d in i.dimensions else next(kept))
        self._need(source, tuple(full))
        self._need(i.operands[1], ())

    def _row(self, size: int, beside: Index) -> Expr:
        """A place in a row: the sum's that the row is for, where there is one, so that both use the same tile."""
        taken = used(beside)
        for n in reversed(range(len(self.variables))):
            v = self.variables[n]
            if v.size == size and (v.kind == "row" or n in self.whole) and n not in taken:
                return Dim(n)
        return self._new(size, "row")

    def _need_parts(self, i: Instruction, index: Index) -> None:
        d, start = i.dimensions[0], 0
        least, most = self._simplifier.range_of(index[d])
        for o in i.operands:
            first, start = start, start + o.shape.dims[d]
            if first <= most and least < start:
                here = self._simplifier.simplify(index[d] - first)
                self._need(o, (*index[:d], here, *index[d + 1 :]))


def whole_dims(dims: Sequence[int], tiles: Sequence[int]) -> frozenset[int]:
    """The dimensions that tiles hold whole."""
    return frozenset(d for d, (n, t) in enumerate(zip(dims, tiles, strict=True)) if t >= n)


def _packed(e: Expr, sizes: Sequence[int]) -> int:
    """The number of values of ``d // n`` or ``d % n`` in a tile along d, for a small n that divides the tile; 0 for
    another expression."""
    if not isinstance(e, (FloorDiv, Mod)) or not isinstance(e.lhs, Dim) or not isinstance(e.rhs, Const):
        return 0
    n, size = e.rhs.value, sizes[e.lhs.index]
    if n > PACKED or size % n:
        return 0
    return size // n if isinstance(e, FloorDiv) else n


def holds_rows(i: Instruction, inside: Container[Instruction]) -> bool:
    """Whether a value is computed from whole rows: by a reduction or another product."""
    seen: set[Instruction] = set()
    stack = [i]
    while stack:
        at = stack.pop()
        if at in seen or at not in inside:
            continue
        seen.add(at)
        if contracts(at):
            return True
        stack += at.operands
    return False


@lru_cache(maxsize=1 << 14)
def used(index: Index) -> frozenset[int]:
    """The variables in an index."""
    return frozenset(v.index for e in index for v in e.variables() if isinstance(v, Dim))


def split(dot: Instruction, index: Index) -> tuple[Index, Index, Index]:
    """The index of a product in its parts: batch, rows and columns."""
    nb = len(dot.lhs_batch_dims)
    rows = dot.operands[0].shape.rank - nb - len(dot.lhs_contracting_dims)
    return index[:nb], index[nb : nb + rows], index[nb + rows :]


def factor_index(dot: Instruction, n: int, batch: Sequence[Expr], k: Expr, free: Sequence[Expr]) -> Index:
    """The index of operand `n` of a product that sums over one dimension."""
    batch_dims, (k_dim,) = (
        (dot.lhs_batch_dims, dot.lhs_contracting_dims) if n == 0 else (dot.rhs_batch_dims, dot.rhs_contracting_dims)
    )
    given = dict(zip(batch_dims, batch, strict=True)) | {k_dim: k}
    rest = iter(free)
    return tuple(given[d] if d in given else next(rest) for d in range(dot.operands[n].shape.rank))
