"""Tiles of products: a few rows by a few vectors of columns of the result, whose sums stay in registers."""

from __future__ import annotations

from heron.codegen.llvm.text import LINE, Function
from heron.codegen.native.float_gemm_form import Form
from heron.hlo.ir.types import BF16


class TileWriter(Function):
    """Writes the functions of one form's tiles, one for each shape."""

    def __init__(self, f: Form) -> None:
        super().__init__()
        self.f = f
        self.vector = f"<{f.lanes} x {f.sum}>"
        self.words = f"<{f.lanes} x {f.word}>"
        self.mask_type = f"<{f.lanes} x i1>"
        #: elements a group of the panel is made of, side by side
        self.elements = f"<{f.lanes * f.step} x {f.stored}>"
        self.part = f"<{f.lanes} x {f.stored}>"

        #: rows of a tile: as many as there are registers for, and what the rows left over at the end are cut into
        self.heights = (f.rows, 4, 2, 1)
        self.shapes = [(rows, vectors) for vectors in (f.vectors, 1) for rows in self.heights]
        self.signature = "ptr, i64, i64, ptr, i64, i64, ptr, i64, i1, i64"

    def tiles_text(self) -> str:
        """The functions of tiles."""
        return "\n".join(self.tile(*shape) for shape in self.shapes)

    def tile_name(self, rows: int, vectors: int) -> str:
        return f"@{self.f.tiles}.{rows}x{vectors}"

    @property
    def sum_name(self) -> str:
        """A vector of sums as it stands in an intrinsic's name."""
        return f"v{self.f.lanes}f{8 * self.f.word_bytes}"

    # -- a tile --------------------------------------------------------------------------------------------------------
    def tile(self, rows: int, vectors: int) -> str:
        """A function that adds a stretch's products to a tile of the result, or puts them there; distances in bytes."""
        f = self.f
        sums = [[self.slot(self.vector) for _ in range(vectors)] for _ in range(rows)]
        for slot in (s for row in sums for s in row):
            self.line(f"store {self.vector} zeroinitializer, ptr {slot}, align 64")
        places = [self.at("%a", self.integer("mul", r, "%a.row"), "i8") if r else "%a" for r in range(rows)]
        for place, _ in self.results(sums):
            self.fetch_early(place, is_written=True)
        with self.loop(0, "%groups", LINE // f.word_bytes) as first:
            offset = self.integer("mul", first, "%a.group")
            for r in range(rows, 2 * rows):  # of the next tile, if there is one
                below = self.integer("add", offset, self.integer("mul", r, "%a.row"))
                self.fetch_early(self.value(f"getelementptr i8, ptr %a, i64 {below}"))
            last = self.least("%groups", self.integer("add", first, LINE // f.word_bytes))
            self.products(places, sums, first, last)
        self.keep(sums)
        pointers = "ptr %a, i64 %a.row, i64 %a.group, ptr %b, i64 %b.group, i64 %groups, ptr %c, i64 %c.row"
        return self.function(f"void {self.tile_name(rows, vectors)}({pointers}, i1 %add, i64 %columns) nounwind")

    def products(self, places: list[str], sums: list[list[str]], first: str, last: str) -> None:
        """Add the products of groups `first` to `last` to a tile's sums; ``places``: where its rows of the left are."""
        f, vectors = self.f, len(sums[0])
        with self.loop(first, last) as g:
            offset = self.integer("mul", g, "%a.group")
            b = self.at("%b", self.integer("mul", g, "%b.group"), "i8")
            columns = [
                self.value(f"load {self.vector}, ptr {self.at(b, v * f.lanes, f.word)}, align 4")
                for v in range(vectors)
            ]
            for place, row in zip(places, sums, strict=True):
                one = self.value(
                    f"load {f.sum}, ptr {self.at(place, offset, 'i8')}, align {min(4, f.element.byte_size)}"
                )
                spread = self.spread(one)
                for slot, column in zip(row, columns, strict=True):
                    self.line(f"store {self.vector} {self.multiply(slot, spread, column)}, ptr {slot}, align 64")

    def spread(self, one: str) -> str:
        """A group's bits in all lanes."""
        first = self.value(f"insertelement {self.vector} poison, {self.f.sum} {one}, i64 0")
        lanes = f"<{self.f.lanes} x i32> zeroinitializer"
        return self.value(f"shufflevector {self.vector} {first}, {self.vector} poison, {lanes}")

    def multiply(self, slot: str, row: str, column: str) -> str:
        """The sum in a slot, with a group's products added."""
        total = self.value(f"load {self.vector}, ptr {slot}, align 64")
        if self.f.element is not BF16:
            given = f"{self.vector} {row}, {self.vector} {column}, {self.vector} {total}"
            return self.value(f"call {self.vector} @llvm.fma.{self.sum_name}({given})")
        halves = f"<{2 * self.f.lanes} x bfloat>"
        a, b = (self.value(f"bitcast {self.vector} {x} to {halves}") for x in (row, column))
        return self.value(
            f"call {self.vector} @llvm.x86.avx512bf16.dpbf16ps.512({self.vector} {total}, {halves} {a}, {halves} {b})"
        )

    def results(self, sums: list[list[str]]) -> list[tuple[str, str]]:
        """The address of each vector of a tile's result, and the slot of its sums."""
        f = self.f
        places: list[tuple[str, str]] = []
        for r, row in enumerate(sums):
            line = self.at("%c", self.integer("mul", r, "%c.row"), "i8") if r else "%c"
            places += [(self.at(line, v * f.lanes, f.word), slot) for v, slot in enumerate(row)]
        return places

    def keep(self, sums: list[list[str]]) -> None:
        """Store the columns that a tile has, or add them to what is there.

        Processors before AVX-512 take as long for a masked store as for a dozen of others.
        """
        places = self.results(sums)
        is_whole = self.value(f"icmp uge i64 %columns, {len(sums[0]) * self.f.lanes}")
        with self.when(is_whole):
            self.keep_whole(places)
        with self.unless(is_whole):
            self.keep_part(sums, places)

    def keep_whole(self, places: list[tuple[str, str]]) -> None:
        """As `keep`, where the tile has all of its columns."""
        with self.when("%add"):
            for place, slot in places:
                old = self.value(f"load {self.vector}, ptr {place}, align 4")
                total = self.value(f"load {self.vector}, ptr {slot}, align 64")
                self.line(
                    f"store {self.vector} {self.value(f'fadd {self.vector} {old}, {total}')}, ptr {slot}, align 64"
                )
        for place, slot in places:
            total = self.value(f"load {self.vector}, ptr {slot}, align 64")
            self.line(f"store {self.vector} {total}, ptr {place}, align 4")

    def keep_part(self, sums: list[list[str]], places: list[tuple[str, str]]) -> None:
        """As `keep`, of any number of columns."""
        masks = [f"{self.mask_type} {self.lanes_from(v)}" for v in range(len(sums[0]))] * len(sums)
        with self.when("%add"):
            for (place, slot), mask in zip(places, masks, strict=True):
                given = f"ptr {place}, i32 4, {mask}, {self.vector} zeroinitializer"
                old = self.value(f"call {self.vector} @llvm.masked.load.{self.sum_name}.p0({given})")
                total = self.value(f"load {self.vector}, ptr {slot}, align 64")
                total = self.value(f"fadd {self.vector} {old}, {total}")
                self.line(f"store {self.vector} {total}, ptr {slot}, align 64")
        for (place, slot), mask in zip(places, masks, strict=True):
            total = self.value(f"load {self.vector}, ptr {slot}, align 64")
            given = f"{self.vector} {total}, ptr {place}, i32 4, {mask}"
            self.line(f"call void @llvm.masked.store.{self.sum_name}.p0({given})")

    def lanes_from(self, vector: int) -> str:
        """A mask of the columns that a tile has in a vector."""
        return self.lanes_below(self.f.lanes, self.left("%columns", vector))

    def left(self, columns: str, v: int) -> str:
        """The number of columns from vector `v` on."""
        return self.value(f"call i64 @llvm.usub.sat.i64(i64 {columns}, i64 {v * self.f.lanes})")

    def lanes_below(self, lanes: int, count: str) -> str:
        """A mask of the first `count` of some lanes."""
        kind = f"<{lanes} x i64>"
        one = self.value(f"insertelement {kind} poison, i64 {count}, i64 0")
        all_ = self.value(f"shufflevector {kind} {one}, {kind} poison, <{lanes} x i32> zeroinitializer")
        return self.value(f"icmp ult {kind} <{', '.join(f'i64 {n}' for n in range(lanes))}>, {all_}")
