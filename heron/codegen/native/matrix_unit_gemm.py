"""Code of products of bf16, s8 and u8 matrices by a processor's matrix unit (AMX).

An instruction of the unit multiplies 16 rows by 16 columns: of each row and column 16 groups of 4 bytes along the
summed dimension, two bf16 or four bytes. Its sums are a tile of 16 by 16. Two by two tiles are summed at a time, so
that each tile of an operand is loaded for two instructions. The right matrix is packed as for other products. Rows of
the left one are read where they lie if their groups are whole and contiguous, else from a copy; the groups that are
left over at the end of a stretch are read from a copy with zeros behind them. A stretch goes on from the sums of the
one before.

Source: Intel's instruction reference, LDTILECFG, TILELOADD, TDPBF16PS, TDPBSSD.
"""

from __future__ import annotations

from heron.codegen.native.float_gemm_code import ProductWriter
from heron.codegen.native.float_gemm_form import GROUPS
from heron.hlo.ir.types import BF16, S8, U8, ElementType

_MULTIPLY: dict[ElementType, str] = {BF16: "tdpbf16ps", S8: "tdpbssd", U8: "tdpbuud"}
#: rows of a tile, groups of its rows, and bytes of those
SIDE, _BYTES = 16, 64
#: tiles of sums in a row and in a column, and the first tiles of the left and of the right matrix
_SQUARE, _LEFT, _RIGHT = 2, 4, 6


class MatrixUnitWriter(ProductWriter):
    """Writes the function of one form."""

    def product_text(self) -> str:
        f = self.f
        self.high, self.wide = _SQUARE * SIDE, _SQUARE * f.lanes
        self.configuration = self.slot(f"[{_BYTES} x i8]")
        self.sums = self.slot(f"[{self.high * self.wide} x {f.word}]")
        self.ends = self.slot(f"[{self.high * SIDE} x {f.word}]")
        self.kind, self.add, self.kind_name = (
            (self.words, "add", f"v{f.lanes}i32") if f.sum == "i32" else (self.vector, "fadd", self.sum_name)
        )
        return self.product()

    def length(self, k: str) -> str:
        return self.least(GROUPS * self.f.step, self.integer("sub", "%k", k))

    def stretch(self, lhs: str, rhs: str, out: str, columns: str, first: str, last: str, k: str, length: str) -> None:
        f = self.f
        groups = self.integer("udiv", self.integer("add", length, f.step - 1), f.step)
        rest = self.integer("urem", groups, SIDE)
        whole = self.integer("sub", groups, rest)
        begun = self.value(f"icmp ne i64 {k}, 0")
        adds = self.value("icmp ne i64 %add, 0")
        self.pack(self.at(rhs, self.integer("mul", k, "%rhs.k"), f.stored), columns, length, groups, whole)
        lhs = self.at(lhs, self.integer("mul", k, "%lhs.k"), f.stored)
        apart = self.integer("or", self.integer("sub", "%lhs.k", 1), self.integer("urem", length, f.step))
        copied = self.value(f"icmp ne i64 {apart}, 0")
        a_row = self.value(f"select i1 {copied}, i64 {GROUPS * f.word_bytes}, i64 {self.bytes_of('%lhs.row')}")
        end_row = self.value(f"select i1 {copied}, i64 {GROUPS * f.word_bytes}, i64 {_BYTES}")
        with self.loop(first, last, self.high) as row:
            rows = self.least(self.high, self.integer("sub", last, row))
            self.configure(rows)
            start = self.at(lhs, self.integer("mul", row, "%lhs.row"), f.stored)
            with self.when(copied):
                self.copy_rows(start, rows, length, groups, whole)
            with self.unless(copied):
                self.copy_ends(start, rows, rest, whole)
            a = self.value(f"select i1 {copied}, ptr {self.strips}, ptr {start}")
            end = self.value(f"select i1 {copied}, ptr {self.at(self.strips, whole, f.word)}, ptr {self.ends}")
            c = self.at(out, self.integer("mul", row, "%out.row"), f.word)
            is_high = self.value(f"icmp ugt i64 {rows}, {SIDE}")
            left, extent = ((a, a_row), (end, end_row)), (whole, rest)
            with self.loop(0, columns, self.wide) as column:
                here = self.least(self.wide, self.integer("sub", columns, column))
                with self.when(is_high):
                    self.square(2, left, extent, self.at(c, column, f.word), column, rows, here, (begun, adds))
                with self.unless(is_high):
                    self.square(1, left, extent, self.at(c, column, f.word), column, rows, here, (begun, adds))
        self.line("call void @llvm.x86.tilerelease()")

    def pack(self, start: str, columns: str, length: str, groups: str, whole: str) -> None:
        """Pack the panel; behind its last group zeros up to a multiple of 16."""
        f = self.f
        left_over = self.at(self.panel, self.integer("mul", whole, f.columns), f.word)
        with self.when(self.value(f"icmp ne i64 {whole}, {groups}")):
            self.clear(left_over, SIDE * f.columns * f.word_bytes)
        self.pack_columns(start, columns, length, groups, self.value(f"icmp eq i64 {columns}, {f.columns}"))

    # -- tiles -------------------------------------------------------------------------------------------------------
    def configure(self, rows: str) -> None:
        """Say how large the tiles are where the sums have so many rows."""
        upper = self.least(rows, SIDE)
        lower = self.value(f"call i64 @llvm.usub.sat.i64(i64 {rows}, i64 {SIDE})")
        lower = self.value(f"call i64 @llvm.umax.i64(i64 {lower}, i64 1)")  # tiles that nothing uses have a size, too
        heights = [upper, upper, lower, lower, upper, lower, SIDE, SIDE]
        self.clear(self.configuration, _BYTES)
        self.line(f"store i8 1, ptr {self.configuration}")
        for n, height in enumerate(heights):
            self.line(f"store i16 {_BYTES}, ptr {self.at(self.configuration, 16 + 2 * n, 'i8')}")
            height = height if isinstance(height, int) else self.value(f"trunc i64 {height} to i8")
            self.line(f"store i8 {height}, ptr {self.at(self.configuration, 48 + n, 'i8')}")
        self.line(f"call void @llvm.x86.ldtilecfg(ptr {self.configuration})")

    def square(
        self,
        high: int,
        left: tuple[tuple[str, str], tuple[str, str]],
        extent: tuple[str, str],
        c: str,
        column: str,
        rows: str,
        columns: str,
        there: tuple[str, str],
    ) -> None:
        """The sums of `high` by two tiles. ``left``: the left matrix's rows and their distance in bytes, and those of
        the end of a stretch; ``extent``: the groups of both; ``there``: whether what is there are sums of an earlier
        stretch, and whether it is added at the end."""
        (begun, adds), (whole, rest) = there, extent
        (a, a_row), (end, end_row) = left
        in_place = self.value(f"icmp eq i64 {columns}, {self.wide}")
        in_place = self.value(f"and i1 {in_place}, {self.value(f'xor i1 {adds}, true')}")
        with self.when(self.value(f"and i1 {begun}, {self.value(f'xor i1 {in_place}, true')}")):
            self.fetch_columns(c, rows, columns)
        sums = self.value(f"select i1 {in_place}, ptr {c}, ptr {self.sums}")
        distance = self.integer("mul", "%out.row", self.f.word_bytes)
        distance = self.value(f"select i1 {in_place}, i64 {distance}, i64 {self.wide * self.f.word_bytes}")
        with self.when(begun):
            self.each_sum(high, "tileloadd64", sums, distance)
        with self.unless(begun):
            for n in range(high * _SQUARE):
                self.line(f"call void @llvm.x86.tilezero(i8 {n})")
        with self.loop(0, whole, SIDE) as g:
            self.products(high, self.at(a, g, self.f.word), a_row, g, column)
        with self.when(self.value(f"icmp ne i64 {rest}, 0")):
            self.products(high, end, end_row, whole, column)
        self.each_sum(high, "tilestored64", sums, distance)
        with self.unless(in_place):
            self.keep_columns(c, rows, columns, self.value(f"and i1 {adds}, {self.value(f'xor i1 {begun}, true')}"))

    def each_sum(self, high: int, instruction: str, place: str, distance: str) -> None:
        """Load or store the tiles of sums; rows lie `distance` bytes apart."""
        for r in range(high):
            line = self.at(place, self.integer("mul", distance, r * SIDE), "i8") if r else place
            for v in range(_SQUARE):
                at = self.at(line, v * self.f.lanes, self.f.word)
                self.line(f"call void @llvm.x86.{instruction}(i8 {r * _SQUARE + v}, ptr {at}, i64 {distance})")

    def products(self, high: int, a: str, a_row: str, g: str, column: str) -> None:
        """Add the products of 16 groups, those of the panel from `g` on."""
        f = self.f
        panel = self.at(self.panel, self.integer("add", self.integer("mul", g, f.columns), column), f.word)
        for r in range(high):
            at = self.at(a, self.integer("mul", a_row, r * SIDE), "i8") if r else a
            self.line(f"call void @llvm.x86.tileloadd64(i8 {_LEFT + r}, ptr {at}, i64 {a_row})")
        for v in range(_SQUARE):
            at = self.at(panel, v * f.lanes, f.word)
            self.line(f"call void @llvm.x86.tileloadd64(i8 {_RIGHT + v}, ptr {at}, i64 {f.columns * f.word_bytes})")
            for r in range(high):
                tiles = f"i8 {r * _SQUARE + v}, i8 {_LEFT + r}, i8 {_RIGHT + v}"
                self.line(f"call void @llvm.x86.{_MULTIPLY[f.element]}({tiles})")

    def fetch_columns(self, c: str, rows: str, columns: str) -> None:
        """Read those sums that are columns of the result."""
        f = self.f
        with self.loop(0, rows) as r, self.loop(0, columns, f.lanes) as column:
            place, mask = self.place_of(c, r, column, columns)
            old = self.value(f"call {self.kind} {self.load_of(place, mask)}")
            self.line(f"store {self.kind} {old}, ptr {self.sum_at(r, column)}, align 64")

    def keep_columns(self, c: str, rows: str, columns: str, adds: str) -> None:
        """Store those sums that are columns of the result, or add them to what is there."""
        f = self.f
        with self.loop(0, rows) as r, self.loop(0, columns, f.lanes) as column:
            place, mask = self.place_of(c, r, column, columns)
            total = self.value(f"load {self.kind}, ptr {self.sum_at(r, column)}, align 64")
            old = self.value(f"call {self.kind} {self.load_of(place, mask)}")
            more = self.value(f"{self.add} {self.kind} {old}, {total}")
            total = self.value(f"select i1 {adds}, {self.kind} {more}, {self.kind} {total}")
            given = f"{self.kind} {total}, ptr {place}, i32 4, {self.mask_type} {mask}"
            self.line(f"call void @llvm.masked.store.{self.kind_name}.p0({given})")

    def place_of(self, c: str, r: str, column: str, columns: str) -> tuple[str, str]:
        """The address of a vector of the result, and its lanes that are columns."""
        line = self.at(c, self.integer("mul", r, "%out.row"), self.f.word)
        return self.at(line, column, self.f.word), self.lanes_below(self.f.lanes, self.integer("sub", columns, column))

    def load_of(self, place: str, mask: str) -> str:
        given = f"ptr {place}, i32 4, {self.mask_type} {mask}, {self.kind} zeroinitializer"
        return f"@llvm.masked.load.{self.kind_name}.p0({given})"

    def sum_at(self, r: str, column: str) -> str:
        return self.at(self.sums, self.integer("add", self.integer("mul", r, self.wide), column), self.f.word)

    # -- rows of the left matrix -------------------------------------------------------------------------------------
    def clear(self, place: str, size: int) -> None:
        self.line(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {size}, i1 false)")

    def copy_ends(self, start: str, rows: str, rest: str, whole: str) -> None:
        """Copy the groups left over at the end of rows, with zeros behind them."""
        f = self.f
        with self.when(self.value(f"icmp ne i64 {rest}, 0")):
            mask = self.lanes_below(SIDE, rest)
            with self.loop(0, rows) as r:
                place = self.at(start, self.integer("mul", r, "%lhs.row"), f.stored)
                given = f"ptr {self.at(place, whole, f.word)}, i32 {f.element.byte_size}, {self.mask_type} {mask}"
                name = f"@llvm.masked.load.v{SIDE}i32.p0"
                words = self.value(f"call {self.words} {name}({given}, {self.words} zeroinitializer)")
                target = self.at(self.ends, self.integer("mul", r, SIDE), f.word)
                self.line(f"store {self.words} {words}, ptr {target}, align 64")

    def copy_rows(self, start: str, rows: str, length: str, groups: str, whole: str) -> None:
        """Copy a stretch of rows, each a sequence of groups with zeros behind them up to a multiple of 16."""
        f = self.f
        in_order = self.value("icmp eq i64 %lhs.k, 1")
        with self.when(in_order), self.loop(0, rows) as r:
            target = self.at(self.strips, self.integer("mul", r, GROUPS), f.word)
            with self.when(self.value(f"icmp ne i64 {whole}, {groups}")):
                self.line(f"store {self.words} zeroinitializer, ptr {self.at(target, whole, f.word)}, align 64")
            place = self.at(start, self.integer("mul", r, "%lhs.row"), f.stored)
            size = self.bytes_of(length)
            self.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {place}, i64 {size}, i1 false)")
        with self.unless(in_order), self.loop(0, groups, SIDE) as g, self.loop(0, rows, SIDE) as row:
            part = self.at(start, self.integer("mul", row, "%lhs.row"), f.stored)
            strips = self.at(self.strips, self.integer("add", self.integer("mul", row, GROUPS), g), f.word)
            self.copy_square(part, strips, self.least(SIDE, self.integer("sub", rows, row)), length, groups, g)

    def copy_square(self, start: str, strips: str, rows: str, length: str, groups: str, g: str) -> None:
        """Copy up to 16 groups of up to 16 rows: whole squares of rows side by side are transposed in registers."""
        f = self.f
        side_by_side = self.value("icmp eq i64 %lhs.row, 1")
        ends = self.integer("mul", self.integer("add", g, SIDE), f.step)
        inside = self.value(f"icmp ule i64 {ends}, {length}")
        is_high = self.value(f"icmp eq i64 {rows}, {SIDE}")
        is_square = self.value(f"and i1 {side_by_side}, {self.value(f'and i1 {inside}, {is_high}')}")
        with self.when(is_square):
            lines: list[str] = []
            for n in range(SIDE):
                parts: list[str] = []
                for s in range(f.step):
                    k = self.integer("add", self.integer("mul", self.integer("add", g, n), f.step), s)
                    place = self.at(start, self.integer("mul", k, "%lhs.k"), f.stored)
                    parts.append(self.value(f"load {self.part}, ptr {place}, align {f.element.byte_size}"))
                lines.append(self.value(f"bitcast {self.elements} {self.together(parts, f.lanes)} to {self.words}"))
            for r, line in enumerate(self.turned(lines, self.words)):
                self.line(f"store {self.words} {line}, ptr {self.at(strips, r * GROUPS, f.word)}, align 64")
        with self.unless(is_square):
            here = self.least(SIDE, self.integer("sub", groups, g))
            with self.loop(0, rows) as r:
                target = self.at(strips, self.integer("mul", r, GROUPS), f.word)
                self.line(f"store {self.words} zeroinitializer, ptr {target}, align 64")
                place = self.at(start, self.integer("mul", r, "%lhs.row"), f.stored)
                with self.loop(0, here) as n:
                    self.fetch_group(place, "%lhs.k", self.at(target, n, f.word), self.integer("add", g, n), length)
