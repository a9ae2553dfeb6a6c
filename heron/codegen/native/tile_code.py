"""Sums of products kept in registers: the code convolutions share, compiled once in a process.

A tile is some rows by some vectors of columns of the result. Its function goes through everything that is summed with
the tile in registers: it loads vectors of the right array and multiplies each with one element a row of the left one.
Where a row's elements lie is in a table, as is which of them are padding: those are read from a page of zeros.
Long sums are cut into partial ones, so that they keep their digits: the registers are emptied every so many products.

`Job` says where in the table of 64-bit words that describes one convolution each thing is, `Row` the same for the
record of a tile of rows; all offsets are bytes.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from itertools import chain

from heron.codegen.llvm.code_cache import CodeCache
from heron.codegen.llvm.jit import host
from heron.codegen.llvm.text import Function
from heron.codegen.native import common_code
from heron.hlo.ir.types import ElementType
from heron.records import dataclass

#: loops whose position decides which tile it is, and those of them, the last ones, along which is summed
LOOPS, SUMMED = 6, 4
#: rows of the largest tile, and bytes of zeros to read padding from
MOST_ROWS, ZEROS = 12, 1 << 15
#: about so many products are summed one after the other, and the sums of those
PARTIAL = 256
DRIVER = "heron_tiles"


class Job(IntEnum):
    """Words of a job."""

    LHS_STEPS = 0  # for each summed loop, bytes from step to step
    RHS_STEPS = SUMMED
    LAST_LANES = 2 * SUMMED  # columns in the last vector
    CHUNKS = LAST_LANES + 1  # parts the first summed loop is cut into, and its steps in one
    CHUNK = CHUNKS + 1
    TILES = CHUNK + 1  # of rows, how many one work item does, and how many such groups there are
    TILES_EACH = TILES + 1
    GROUPS = TILES_EACH + 1
    COLUMN_TILES = GROUPS + 1
    COLUMN_BYTES = COLUMN_TILES + 1  # from one tile of columns to the next in rhs and out
    COLUMN_LHS_BYTES = COLUMN_BYTES + 1  # and in lhs
    ROWS = COLUMN_LHS_BYTES + 1  # the address of the records of tiles of rows
    LOOPS = ROWS + 1  # for each loop the number of positions and the address of their steps: out, lhs, rhs, count


class Row(IntEnum):
    """Words of the record of a tile of rows."""

    FUNCTION = 0  # for all tiles of columns but the last, then for that
    STEPS = 2  # how many, and their address: each an offset into rhs, then one into lhs for each row, -1 for zeros
    STEPS_AT = 3
    LHS = 4  # an offset that is in none of the steps' own, so that tiles inside an array share theirs
    OUT = 5  # an offset for each row
    WORDS = OUT + MOST_ROWS


class Cut(StrEnum):
    """The loop in which long sums are cut into partial ones: none, the innermost, the one around a row's steps."""

    NONE = ""
    INNERMOST = "i"
    STEPS = "s"


def cut_for(innermost: int, products: int) -> Cut:
    """The loop in which to cut sums of so many products, where the innermost loop has so many."""
    if products < 2 * PARTIAL:
        return Cut.NONE
    return Cut.INNERMOST if innermost >= PARTIAL else Cut.STEPS


@dataclass(frozen=True, slots=True)
class Tile:
    """``vectors`` of columns in each of ``rows``. ``masked``: of the last vector only some lanes are columns;
    ``lanewise``: column n is multiplied with element n of the left array, not all with one. ``cut``: where long sums
    are cut.
    """

    element: ElementType
    rows: int
    vectors: int
    masked: bool
    lanewise: bool
    cut: Cut = Cut.NONE

    @property
    def name(self) -> str:
        marks = "m" * self.masked + "l" * self.lanewise + self.cut
        return f"heron_tile_{self.element.name}_{self.rows}x{self.vectors}{marks}"


def lanes(element: ElementType) -> int:
    """Elements of a vector on this machine."""
    return host().width // element.bits


def rows_for(vectors: int) -> int:
    """Rows of a tile of that many vectors so that sums, a row of the right array and an element of the left fit into
    this machine's registers; 0 when none do.
    """
    sums = (30 if host().width == 512 else 14) - vectors
    # every row has a pointer as well
    return max(0, min(8 if vectors > 1 else MOST_ROWS, sums // vectors))


def address(tile: Tile, cache: CodeCache | None) -> int:
    """The address of a tile's function: ``void f(ptr job, ptr counts, ptr row, ptr lhs, ptr rhs, ptr out)``, where
    ``counts`` has the steps of each summed loop, and whether to add to what is there.
    """
    return common_code.address_of(tile.name, lambda: _TileWriter(tile).text(), lanes(tile.element), cache=cache)


def driver_address(cache: CodeCache | None) -> int:
    """The address of ``void heron_tiles(ptr args, i64 lo, i64 hi)``, which does work items: ``args`` points to lhs,
    rhs, out and a job.
    """
    return common_code.address_of(DRIVER, lambda: _DriverWriter().text(), cache=cache)


class _Words(Function):
    """Reads words of tables."""

    def word(self, table: str, n: int, kind: str = "i64") -> str:
        return self.value(f"load {kind}, ptr {self.at(table, n, 'i64')}, align 8")

    def bytes(self, base: str, offset: str | int) -> str:
        return self.at(base, offset, "i8")


class _TileWriter(_Words):
    def __init__(self, tile: Tile) -> None:
        super().__init__()
        self.tile = tile
        self.lanes = lanes(tile.element)
        self.scalar = "float" if tile.element.bits == 32 else "double"
        self.vector = f"<{self.lanes} x {self.scalar}>"
        self.suffix = f"v{self.lanes}f{tile.element.bits}"
        self.width = self.lanes * tile.element.byte_size

    def text(self) -> str:
        t = self.tile
        self.mask = self._mask() if t.masked else ""
        sums = [[self.slot(self.vector) for _ in range(t.vectors)] for _ in range(t.rows)]
        outs = [self.bytes("%out", self.word("%row", Row.OUT + r)) for r in range(t.rows)]
        for slot in chain.from_iterable(sums):
            self.line(f"store {self.vector} zeroinitializer, ptr {slot}")
        if t.cut is not Cut.NONE:
            self.partial = [self.slot(self.vector) for _ in chain.from_iterable(sums)]
            self.products, self.parts = self.slot("i64"), self.slot("i64")
            for count in (self.products, self.parts):
                self.line(f"store i64 0, ptr {count}")
        lhs, rhs = "%lhs", "%rhs"
        counts = [self.word("%counts", n) for n in range(SUMMED)]
        left = [self.word("%job", Job.LHS_STEPS + n) for n in range(SUMMED)]
        right = [self.word("%job", Job.RHS_STEPS + n) for n in range(SUMMED)]
        steps, table = self.word("%row", Row.STEPS), self.word("%row", Row.STEPS_AT, "ptr")
        with self.loop(0, counts[0]) as a:
            lhs0, rhs0 = self._moved(lhs, a, left[0]), self._moved(rhs, a, right[0])
            with self.loop(0, counts[1]) as b:
                lhs1, rhs1 = self._moved(lhs0, b, left[1]), self._moved(rhs0, b, right[1])
                with self.loop(0, counts[2]) as c:
                    lhs2, rhs2 = self._moved(lhs1, c, left[2]), self._moved(rhs1, c, right[2])
                    with self.loop(0, steps) as s:
                        step = self.at(table, self.integer("mul", s, 1 + t.rows), "i64")
                        rows = [self._row(lhs2, self.word(step, 1 + r)) for r in range(t.rows)]
                        start = self.bytes(rhs2, self.word(step, 0))
                        place = rows, start, left[3], right[3]
                        if t.cut is not Cut.INNERMOST:
                            self._add_all(sums, "0", counts[3], *place)
                        else:
                            with self.loop(0, counts[3], PARTIAL) as part:
                                end = self.least(counts[3], self.integer("add", part, PARTIAL))
                                self._add_all(sums, part, end, *place)
                                self._put_by(sums)
                    if t.cut is Cut.STEPS:
                        self._count_products(sums, self.integer("mul", steps, counts[3]))
        self._end(sums, outs)
        for line, out in zip(sums, outs, strict=True):
            for v, slot in enumerate(line):
                self._store(self.value(f"load {self.vector}, ptr {slot}"), self.bytes(out, v * self.width), v)
        head = f"define void @{t.name}(ptr %job, ptr %counts, ptr %row, ptr %lhs, ptr %rhs, ptr %out) nounwind {{"
        zeros = f"@zeros = private constant [{ZEROS + 64 * t.vectors} x i8] zeroinitializer, align 64"
        return "\n".join([zeros, head, "entry:", *self.slots, *self.lines, "  ret void", "}"])

    def _mask(self) -> str:
        """The lanes of the last vector that are columns."""
        kind = f"<{self.lanes} x i64>"
        one = self.value(f"insertelement {kind} poison, i64 {self.word('%job', Job.LAST_LANES)}, i64 0")
        every = self.value(f"shufflevector {kind} {one}, {kind} poison, <{self.lanes} x i32> zeroinitializer")
        return self.value(f"icmp ult {kind} <{', '.join(f'i64 {n}' for n in range(self.lanes))}>, {every}")

    def _count_products(self, sums: list[list[str]], more: str) -> None:
        """Put the sums by once they are of many products: of ``more`` again."""
        products = self.integer("add", self.value(f"load i64, ptr {self.products}"), more)
        self.line(f"store i64 {products}, ptr {self.products}")
        with self.when(self.value(f"icmp uge i64 {products}, {PARTIAL}")):
            self._put_by(sums)
            self.line(f"store i64 0, ptr {self.products}")

    def _put_by(self, sums: list[list[str]]) -> None:
        """Add the sums to those that were put by, and begin new ones."""
        parts = self.value(f"load i64, ptr {self.parts}")
        with self.when(self.value(f"icmp ne i64 {parts}, 0")):
            self._add_partial(sums)
        for slot, place in zip(chain.from_iterable(sums), self.partial, strict=True):
            self.line(f"store volatile {self.vector} {self.value(f'load {self.vector}, ptr {slot}')}, ptr {place}")
            self.line(f"store {self.vector} zeroinitializer, ptr {slot}")
        self.line(f"store i64 {self.integer('add', parts, 1)}, ptr {self.parts}")

    def _end(self, sums: list[list[str]], outs: list[str]) -> None:
        """Add to the sums the ones put by, and those that are there from the steps before."""
        if self.tile.cut is not Cut.NONE:
            with self.when(self.value(f"icmp ne i64 {self.value(f'load i64, ptr {self.parts}')}, 0")):
                self._add_partial(sums)
        with self.when(self.value(f"icmp ne i64 {self.word('%counts', SUMMED)}, 0")):
            for line, out in zip(sums, outs, strict=True):
                for v, slot in enumerate(line):
                    self._add_to(slot, self._load(self.bytes(out, v * self.width), v))

    def _add_partial(self, sums: list[list[str]]) -> None:
        for slot, place in zip(chain.from_iterable(sums), self.partial, strict=True):
            # volatile: sums that are seldom needed take no registers
            self._add_to(slot, self.value(f"load volatile {self.vector}, ptr {place}"))

    def _add_to(self, slot: str, value: str) -> None:
        total = self.value(f"fadd {self.vector} {self.value(f'load {self.vector}, ptr {slot}')}, {value}")
        self.line(f"store {self.vector} {total}, ptr {slot}")

    def _moved(self, place: str, n: str, step: str) -> str:
        return self.bytes(place, self.integer("mul", n, step))

    def _row(self, lhs: str, offset: str) -> str:
        is_padding = self.value(f"icmp slt i64 {offset}, 0")
        return self.value(f"select i1 {is_padding}, ptr @zeros, ptr {self.bytes(lhs, offset)}")

    def _add_all(
        self, sums: list[list[str]], first: str, end: str, rows: list[str], start: str, left: str, right: str
    ) -> None:
        """Add the products of the innermost loop from `first` to `end`."""
        with self.loop(first, end) as k:
            shift = self.integer("mul", k, left)
            self._add(sums, [self.bytes(row, shift) for row in rows], self._moved(start, k, right))

    def _add(self, sums: list[list[str]], rows: list[str], start: str) -> None:
        columns = [self._load(self.bytes(start, v * self.width), v) for v in range(self.tile.vectors)]
        for line, row in zip(sums, rows, strict=True):
            every = "" if self.tile.lanewise else self._every(row)
            for v, slot in enumerate(line):
                element = self._load(self.bytes(row, v * self.width), v) if self.tile.lanewise else every
                old = self.value(f"load {self.vector}, ptr {slot}")
                args = f"{self.vector} {element}, {self.vector} {columns[v]}, {self.vector} {old}"
                total = self.value(f"call {self.vector} @llvm.fmuladd.{self.suffix}({args})")
                self.line(f"store {self.vector} {total}, ptr {slot}")

    def _every(self, place: str) -> str:
        """The element at a place, in all lanes."""
        element = self.value(f"load {self.scalar}, ptr {place}, align {self.tile.element.byte_size}")
        one = self.value(f"insertelement {self.vector} poison, {self.scalar} {element}, i64 0")
        return self.value(
            f"shufflevector {self.vector} {one}, {self.vector} poison, <{self.lanes} x i32> zeroinitializer"
        )

    def _is_masked(self, v: int) -> bool:
        return self.tile.masked and v == self.tile.vectors - 1

    def _load(self, place: str, v: int) -> str:
        align = self.tile.element.byte_size
        if not self._is_masked(v):
            return self.value(f"load {self.vector}, ptr {place}, align {align}")
        args = f"ptr align {align} {place}, <{self.lanes} x i1> {self.mask}, {self.vector} zeroinitializer"
        return self.value(f"call {self.vector} @llvm.masked.load.{self.suffix}.p0({args})")

    def _store(self, value: str, place: str, v: int) -> None:
        align = self.tile.element.byte_size
        if not self._is_masked(v):
            self.line(f"store {self.vector} {value}, ptr {place}, align {align}")
            return
        args = f"{self.vector} {value}, ptr align {align} {place}, <{self.lanes} x i1> {self.mask}"
        self.line(f"call void @llvm.masked.store.{self.suffix}.p0({args})")


class _DriverWriter(_Words):
    def text(self) -> str:
        self.arrays = lhs, rhs, out, job = [self.word("%args", n, "ptr") for n in range(4)]
        self.counts = self.slot(f"[{SUMMED + 1} x i64]")
        self.job = job
        with self.loop(0, self.word(job, Job.CHUNKS)) as chunk, self.loop("%lo", "%hi") as item:
            self._item(chunk, item)
        head = f"define void @{DRIVER}(ptr %args, i64 %lo, i64 %hi) nounwind {{"
        return "\n".join([head, "entry:", *self.slots, *self.lines, "  ret void", "}"])

    def _item(self, chunk: str, item: str) -> None:
        job, places = self.job, self.arrays[:3]
        rest, group = self._split(item, self.word(job, Job.GROUPS))
        for n in reversed(range(LOOPS)):
            rest, position = self._split(rest, self.word(job, Job.LOOPS + 2 * n))
            step = self.at(self.word(job, Job.LOOPS + 2 * n + 1, "ptr"), self.integer("mul", position, 4), "i64")
            places = [self.bytes(place, self.word(step, field)) for place, field in zip(places, (1, 2, 0), strict=True)]
            if n >= LOOPS - SUMMED:
                self._count(n - LOOPS + SUMMED, self.word(step, 3))
        lhs, rhs, out = places
        column = self.integer("mul", rest, self.word(job, Job.COLUMN_BYTES))
        rhs, out = self.bytes(rhs, column), self.bytes(out, column)
        lhs = self.bytes(lhs, self.integer("mul", rest, self.word(job, Job.COLUMN_LHS_BYTES)))
        is_last = self.value(f"icmp eq i64 {self.integer('add', rest, 1)}, {self.word(job, Job.COLUMN_TILES)}")
        which = self.value(f"zext i1 {is_last} to i64")
        begin, all_steps = self.integer("mul", chunk, self.word(job, Job.CHUNK)), self.word(self.counts, 0)
        any_left = self.value(f"icmp ult i64 {begin}, {all_steps}")
        is_first = self.value(f"icmp eq i64 {chunk}, 0")
        with self.when(self.value(f"or i1 {any_left}, {is_first}")):
            self._count(0, self.least(self.word(job, Job.CHUNK), self.integer("sub", all_steps, begin)))
            self._count(SUMMED, chunk)
            lhs = self.bytes(lhs, self.integer("mul", begin, self.word(job, Job.LHS_STEPS)))
            rhs = self.bytes(rhs, self.integer("mul", begin, self.word(job, Job.RHS_STEPS)))
            each = self.word(job, Job.TILES_EACH)
            first = self.integer("mul", group, each)
            with self.loop(first, self.least(self.integer("add", first, each), self.word(job, Job.TILES))) as n:
                row = self.at(self.word(job, Job.ROWS, "ptr"), self.integer("mul", n, Row.WORDS), "i64")
                function = self.value(f"load ptr, ptr {self.at(row, which, 'i64')}, align 8")
                start = self.bytes(lhs, self.word(row, Row.LHS))
                args = ", ".join(f"ptr {a}" for a in (job, self.counts, row, start, rhs, out))
                self.line(f"call void {function}({args})")

    def _split(self, n: str, size: str) -> tuple[str, str]:
        return self.integer("udiv", n, size), self.integer("urem", n, size)

    def _count(self, n: int, count: str) -> None:
        self.line(f"store i64 {count}, ptr {self.at(self.counts, n, 'i64')}, align 8")
