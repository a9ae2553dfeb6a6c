"""Code of products of complex matrices: those of matrices of their parts, which tiles of real ones multiply.

The left matrix and the result are read as real ones of twice as many columns, where they lie. Of each element ``r + i``
of the right matrix the panel has two rows of two: ``r i`` and ``-i r``. The parts of a sum are those of the products
added up; an infinite one stays infinite.
"""

from __future__ import annotations

from heron.codegen.llvm.values import Value
from heron.codegen.native.float_gemm_code import ProductWriter
from heron.codegen.native.float_gemm_form import Form


class ComplexProductWriter(ProductWriter):
    """Writes the function of one form that is called; sizes and steps are those of parts."""

    packed_groups = 2

    def __init__(self, f: Form) -> None:
        super().__init__(f)
        #: the parts of 8 rows of the left matrix
        self.rows_of_parts = f"<16 x {f.stored}>"
        #: the elements of a register
        self.pairs = f"<{f.lanes // 2} x i{2 * f.element.bits}>"

    def in_place(self, is_whole: str, first: str, last: str) -> str:
        return "false"

    # -- rows of the left matrix ---------------------------------------------------------------------------------------
    def pack_rows(self, start: str, rows: str, length: str, groups: str) -> None:
        f = self.f
        side_by_side = self.value("icmp eq i64 %lhs.row, 2")
        with self.when(side_by_side), self.loop(0, groups, 2) as g, self.loop(0, rows, f.rows) as row:
            mask = self.lanes_below(16, self.integer("mul", self.integer("sub", rows, row), 2))
            place = self.at(start, self.integer("mul", g, "%lhs.k"), f.stored)
            both = self.masked_load(self.at(place, self.integer("mul", row, 2), f.stored), 16, mask)
            strip = self.integer("udiv", row, f.rows)
            target = self.at(self.strips, self.at_strip(strip, g, 0), f.word)
            apart = ", ".join(f"i32 {2 * n + part}" for part in range(2) for n in range(8))
            self._store(self._shuffled(self.rows_of_parts, both, 16, apart), self.rows_of_parts, target)
        with self.unless(side_by_side), self.loop(0, groups, 2) as g, self.loop(0, rows) as row:
            place = self.at(start, self.integer("mul", row, "%lhs.row"), f.stored)
            place = self.at(place, self.integer("mul", g, "%lhs.k"), f.stored)
            strip, r = self.integer("udiv", row, f.rows), self.integer("urem", row, f.rows)
            target = self.at(self.strips, self.at_strip(strip, g, r), f.word)
            for n, part in enumerate(self._element(place)):
                self.store(f.stored, part, self.at(target, 8 * n, f.word))

    # -- columns of the right matrix -----------------------------------------------------------------------------------
    def pack_row(self, start: str, g: str, length: str, masks: list[str]) -> None:
        f = self.f
        for v, mask in enumerate(masks):
            place = self.at(self.at(start, self.integer("mul", g, "%rhs.k"), f.stored), v * f.lanes, f.stored)
            self.put(self.masked_load(place, f.lanes, mask), g, v * f.lanes)

    def put(self, row: str, g: str, column: str | int) -> None:
        """Put a register of parts into the panel: as it is, and below that times i."""
        f = self.f
        target = self.at(self.panel, self.integer("add", self.integer("mul", g, f.columns), column), f.word)
        self._store(row, self.part, target)
        turned = self._shuffled(self.part, row, f.lanes, ", ".join(f"i32 {n ^ 1}" for n in range(f.lanes)))
        first = ", ".join(f"i1 {'true' if n % 2 == 0 else 'false'}" for n in range(f.lanes))
        negative = self._negative(turned, self.part, self.vector)
        turned = self.value(f"select <{f.lanes} x i1> <{first}>, {self.part} {negative}, {self.part} {turned}")
        self._store(turned, self.part, self.at(target, f.columns, f.word))

    def pack_crosswise(self, start: str, columns: str, length: str, groups: str) -> None:
        """As the real one: a square has as many elements a side as a register."""
        side = self.f.lanes
        in_columns = self.value("icmp eq i64 %rhs.k, 1")
        with self.loop(0, columns, side) as column, self.loop(0, groups, side) as g:
            fits = self.value(f"icmp ule i64 {self.integer('add', column, side)}, {columns}")
            ends = self.value(f"icmp ule i64 {self.integer('add', g, side)}, {groups}")
            square = self.value(f"and i1 {in_columns}, {self.value(f'and i1 {fits}, {ends}')}")
            with self.when(square):
                self.turn(start, column, g)
            with self.unless(square):
                last_column = self.least(columns, self.integer("add", column, side))
                last_group = self.least(groups, self.integer("add", g, side))
                with self.loop(column, last_column, 2) as c, self.loop(g, last_group, 2) as one:
                    self._put_element(start, c, one)

    def turn(self, start: str, column: str, g: str) -> None:
        rows: list[str] = []
        for n in range(self.f.lanes // 2):
            offset = self.integer("mul", self.integer("add", column, 2 * n), "%rhs.column")
            place = self.at(start, self.integer("add", offset, g), self.f.stored)
            rows.append(self.value(f"load {self.pairs}, ptr {place}, align {self.f.element.byte_size}"))
        for n, row in enumerate(self.turned(rows, self.pairs)):
            parts = self.value(f"bitcast {self.pairs} {row} to {self.part}")
            self.put(parts, self.integer("add", g, 2 * n), column)

    def _put_element(self, start: str, column: str, g: str) -> None:
        f = self.f
        place = self.at(start, self.integer("mul", column, "%rhs.column"), f.stored)
        re, im = self._element(self.at(place, self.integer("mul", g, "%rhs.k"), f.stored))
        target = self.at(self.panel, self.integer("add", self.integer("mul", g, f.columns), column), f.word)
        below = self.at(target, f.columns, f.word)
        for n, part in enumerate((re, im)):
            self.store(f.stored, part, self.at(target, n, f.word))
        for n, part in enumerate((self._negative(im, f.stored, f.sum), re)):
            self.store(f.stored, part, self.at(below, n, f.word))

    # -- values --------------------------------------------------------------------------------------------------------
    def _element(self, place: str) -> tuple[Value, Value]:
        return self.load(self.f.stored, place), self.load(self.f.stored, self.at(place, 1, self.f.stored))

    def _negative(self, bits: str, stored: str, numbers: str) -> str:
        x = self.value(f"bitcast {stored} {bits} to {numbers}")
        return self.value(f"bitcast {numbers} {self.value(f'fneg {numbers} {x}')} to {stored}")

    def _shuffled(self, kind: str, x: str, count: int, order: str) -> str:
        return self.value(f"shufflevector {kind} {x}, {kind} poison, <{count} x i32> <{order}>")

    def _store(self, x: str, kind: str, place: str) -> None:
        self.line(f"store {kind} {x}, ptr {place}, align 4")
