"""A tiling in the native program: cut to this machine's registers, written as tables, handed to the threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from math import ceil, prod
from typing import TYPE_CHECKING

from heron.codegen.native import tile_code
from heron.codegen.native.share import write_range
from heron.codegen.native.tables import write_numbers, write_table
from heron.codegen.native.tile_code import DRIVER, LOOPS, MOST_ROWS, SUMMED, Tile
from heron.hlo.ir.types import ElementType
from heron.records import dataclass
from heron.runtime.strided import Rows, Step, Tiling

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter
    from heron.runtime.thunks import ConvolutionThunk

#: multiplications a thread takes at a time, at least
_PORTION = 1 << 18
#: bytes of the right array that a tile reads again from the first, and from the second cache; the cycles of a vector
#: from beyond them
_FIRST, _SECOND = 1 << 15, 1 << 20
_FROM_SECOND, _FROM_THIRD = 3.0, 6.0
#: bytes of a vector that is loaded, or multiplied and added, in a cycle: two of half as many take no longer; the cycles
#: of a load of one element into all lanes
_BYTES, _ELEMENT = 64, 0.5
#: work items from which on each does all tiles of rows
_ITEMS = 64


@dataclass(frozen=True, slots=True)
class Cut:
    """A tiling on this machine. ``vectors`` and ``last``: of the columns of a tile, and of the last one."""

    lanes: int
    tiles: int
    vectors: int
    last: int
    rows: tuple[Rows, ...]
    cycles: float  # estimated, for one thread


def cut(t: Tiling, element: ElementType) -> Cut:
    """The shape of tiles that takes the fewest cycles."""
    made = _quickest(t, element)
    most = tile_code.rows_for(made.vectors)
    return replace(made, rows=tuple(chain.from_iterable(_parts(rows, most) for rows in t.rows)))


def cycles(t: Tiling, element: ElementType) -> float:
    """The estimated cycles in one thread."""
    return _quickest(t, element).cycles


def _quickest(t: Tiling, element: ElementType) -> Cut:
    lanes = tile_code.lanes(element)
    every = max(1, ceil(t.columns / lanes))
    # as even as can be, for up to so many
    widths = dict.fromkeys(ceil(every / ceil(every / most)) for most in range(1, 5) if tile_code.rows_for(most))
    return min((_cut(t, element, lanes, every, vectors) for vectors in widths), key=lambda c: c.cycles)


def _fetch(size: int) -> float:
    """The cycles in which a vector of the right array comes, of which a tile reads so many bytes."""
    return 0.0 if size <= _FIRST else _FROM_SECOND if size <= _SECOND else _FROM_THIRD


def _cut(t: Tiling, element: ElementType, lanes: int, every: int, vectors: int) -> Cut:
    """A cut into tiles of so many vectors; its rows are still to be cut."""
    tiles = ceil(every / vectors)
    last = every - (tiles - 1) * vectors
    *outer, inner = t.loops
    # what a step of the rows costs beyond its products, and how often they are done
    times = prod(loop.products for loop in outer)
    inner_steps = inner.products
    cycles, parts = 0.0, 0
    vector = lanes * element.byte_size / _BYTES  # cycles
    summed = prod(loop.longest for loop in t.loops) * max((len(rows.steps) for rows in t.rows), default=0)
    fetch = 0.0 if t.lanewise else _fetch(summed * vectors * lanes * element.byte_size)
    for rows in t.rows:
        count = len(rows.outs)
        here = ceil(count / tile_code.rows_for(vectors))
        height = count / max(1, here)
        # a step goes by with each tile that has one of the rows it adds to
        taken = sum(
            [n * ((stop * here - 1) // count - start * here // count + 1) for (start, stop), n in rows.spans.items()]
        )
        begin = (10 + 3 * height) * len(inner.walk)
        for width, number in ((vectors, tiles - 1), (last, 1)):
            # sums of one product after the other wait 4 cycles, and longer where there are two a cycle to be ready for
            wait = 4 if vector == 1 else 6
            loads = width * vector + height * (width * vector if t.lanewise else _ELEMENT)
            each = max(height * width * vector, wait, loads, width * fetch * vector)
            cycles += number * taken * (begin + each * inner_steps)
        parts += here
    tile_calls = parts * tiles * prod(len(loop.walk) for loop in t.loops)
    return Cut(lanes, tiles, vectors, last, (), cycles * times + 60 * tile_calls)


def _ranges(count: int, most: int) -> list[tuple[int, int]]:
    """`count` rows in tiles of nearly the same number of them."""
    parts = ceil(count / most)
    return [(n * count // parts, (n + 1) * count // parts) for n in range(parts)]


def _parts(rows: Rows, most: int) -> Iterator[Rows]:
    """Tiles of nearly the same number of rows, without the steps that add to none of them."""
    for start, stop in _ranges(len(rows.outs), most):
        steps = ((rhs, lhs[start:stop]) for rhs, lhs in rows.steps)
        yield Rows(rows.outs[start:stop], tuple([s for s in steps if s[1].count(None) < stop - start]))


def write_convolution(w: ProgramWriter, thunk: ConvolutionThunk) -> None:
    """Fill the result, shared by the threads where it is large."""
    t, element = thunk.products, thunk.element_type
    combinations = prod(len(loop.walk) for loop in t.loops)
    if not combinations or not t.columns or not t.rows:
        return
    made = cut(t, element)
    each = len(made.rows) if combinations * made.tiles >= _ITEMS else 1
    groups = ceil(len(made.rows) / each)
    items = groups * combinations * made.tiles
    work = prod(loop.longest for loop in t.loops) * max(len(r.steps) for r in t.rows)
    work *= made.vectors * made.lanes * each * max(len(r.outs) for r in made.rows)
    w.declare(DRIVER, f"void @{DRIVER}(ptr, i64, i64)", tile_code.driver_address)
    job = _Tables(w, t, element, made).job(each, groups)
    write_range(
        w, DRIVER, [*map(w.pointer, (thunk.lhs, thunk.rhs, thunk.out)), job], items, max(1, _PORTION // max(1, work))
    )


class _Tables:
    """Writes the tables of one tiling; see `tile_code` for what is in them."""

    def __init__(self, w: ProgramWriter, t: Tiling, element: ElementType, made: Cut) -> None:
        self.w, self.t, self.element, self.cut = w, t, element, made
        self.size = element.byte_size
        self.functions: dict[tuple[int, int, bool], str] = {}

    def job(self, each: int, groups: int) -> str:
        t, made = self.t, self.cut
        summed = t.loops[-SUMMED:]
        steps = summed[0].longest
        chunk = min(t.chunk, max(1, steps))
        width = made.vectors * made.lanes * self.size
        words: list[int | str] = [loop.lhs * self.size for loop in summed]
        words += [loop.rhs * self.size for loop in summed]
        words += [t.columns - (-(-t.columns // made.lanes) - 1) * made.lanes]
        words += [max(1, ceil(steps / chunk)), chunk, len(made.rows), each, groups]
        words += [made.tiles, width, width if t.lanewise else 0]
        words.append(self.rows())
        assert len(t.loops) == LOOPS
        for loop in t.loops:
            words += [len(loop.walk), write_numbers(self.w, "steps", [n for s in loop.walk for n in self.step(s)])]
        return write_table(self.w, "job", words)

    def step(self, s: Step) -> tuple[int, int, int, int]:
        return s.out * self.size, s.lhs * self.size, s.rhs * self.size, s.count

    def rows(self) -> str:
        words: list[int | str] = []
        for rows in self.cut.rows:
            words += [self.function(rows, last=False), self.function(rows, last=True), len(rows.steps)]
            start = min([place for _, lhs in rows.steps for place in lhs if place is not None], default=0)
            words.append(write_numbers(self.w, "places", self.places(rows, start)))
            words.append(start * self.size)
            outs = [out * self.size for out in rows.outs]
            words += outs + [0] * (MOST_ROWS - len(outs))
        return write_table(self.w, "rows", words)

    def places(self, rows: Rows, start: int) -> list[int]:
        size, found = self.size, []
        for rhs, lhs in rows.steps:
            found.append(rhs * size)
            found += [-1 if place is None else (place - start) * size for place in lhs]
        return found

    def function(self, rows: Rows, last: bool) -> str:
        key = len(rows.outs), len(rows.steps), last
        if key not in self.functions:
            self.functions[key] = self._function(rows, last)
        return self.functions[key]

    def _function(self, rows: Rows, last: bool) -> str:
        made = self.cut
        if not last and made.tiles == 1:
            return "@" + DRIVER  # never called
        masked = last and self.t.columns % made.lanes != 0
        loops = [loop.longest for loop in self.t.loops[-SUMMED:]]
        cut = tile_code.cut_for(loops[-1], len(rows.steps) * prod(loops))
        vectors = made.last if last else made.vectors
        tile = Tile(self.element, len(rows.outs), vectors, masked, self.t.lanewise, cut)
        self.w.declare(tile.name, f"void @{tile.name}({', '.join(['ptr'] * 6)})", partial(tile_code.address, tile))
        return "@" + tile.name
