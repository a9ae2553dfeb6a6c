"""Code of products of f32, f64 and bf16 matrices: blocks of rows by panels of columns, cut into tiles."""

from __future__ import annotations

from heron.codegen.llvm.code_cache import CodeCache, shared_cache
from heron.codegen.llvm.declarations import declared
from heron.codegen.llvm.jit import Jit
from heron.codegen.native import common_code
from heron.codegen.native.float_gemm_form import FIELDS, GROUPS, Form
from heron.codegen.native.float_gemm_tile import TileWriter
from heron.codegen.turning import rounds
from heron.outcome import beside
from heron.runtime.object_code import Object

#: rows up to which columns are read where they lie: to rearrange them takes longer than it saves
_FEW = 48
#: tiles whose rows are copied at once, where they do not lie as they are multiplied
_STRIPS = 8


def address(f: Form, cache: CodeCache | None) -> int:
    """The address of a form's function: ``void f(ptr args, i64 lo, i64 hi)`` does work items lo to hi, where ``args``
    points to lhs, rhs, out and the `FIELDS`."""
    return common_code.linked(f.name, lambda: _compile(f, cache or shared_cache()), f)


def _compile(f: Form, cache: CodeCache) -> Object:
    if f.is_unit:
        from heron.codegen.native.matrix_unit_gemm import MatrixUnitWriter

        return Jit(level=1, cache=cache, shaped=True).add(MatrixUnitWriter(f).product_text(), f.name, exports=[f.name])
    if f.is_complex:
        from heron.codegen.native.complex_gemm import ComplexProductWriter

        writer: ProductWriter = ComplexProductWriter(f)
    else:
        writer = ProductWriter(f)
    tiles, product = writer.tiles_text(), writer.product_text()
    jit = Jit(level=1, cache=cache, shaped=True)
    compiled = beside(lambda: jit.compile(tiles, f"{f.tiles}.tiles"))
    return jit.add(product, f.name, exports=[f.name], others=(o.result() for o in (compiled,)))


class ProductWriter(TileWriter):
    """Writes the function of one form that is called."""

    #: groups that `pack_row` puts into the panel
    packed_groups = 1

    def product_text(self) -> str:
        """The function that is called, and a table of those it calls."""
        names = [self.tile_name(*shape) for shape in self.shapes]
        tiles = declared(*(f"void {name}({self.signature})" for name in names))
        table = f"@tiles = internal constant [{len(names)} x ptr] [{', '.join(f'ptr {name}' for name in names)}]"
        return "\n".join([tiles, table, self.product()])

    # -- the product ---------------------------------------------------------------------------------------------------
    def product(self) -> str:
        f = self.f
        for number, name in enumerate(("%lhs", "%rhs", "%out", "%sizes")):
            self.line(f"{name}.at = getelementptr ptr, ptr %args, i64 {number}")
            self.line(f"{name} = load ptr, ptr {name}.at")
        for number, name in enumerate(FIELDS):
            self.line(f"%{name}.at = getelementptr i64, ptr %sizes, i64 {number}")
            self.line(f"%{name} = load i64, ptr %{name}.at")
        self.panel = self.slot(f"[{GROUPS * f.columns} x {f.word}]")
        self.strips = self.slot(f"[{_STRIPS * GROUPS * 8} x {f.word}]")
        panels = self.integer("udiv", self.integer("add", "%n", f.columns - 1), f.columns)
        blocks = self.integer("udiv", self.integer("sub", self.integer("add", "%m", "%block"), 1), "%block")
        with self.loop("%lo", "%hi") as item:
            panel, rest = self.integer("urem", item, panels), self.integer("udiv", item, panels)
            block, batch = self.integer("urem", rest, blocks), self.integer("udiv", rest, blocks)
            column = self.integer("mul", panel, f.columns)
            columns = self.least(f.columns, self.integer("sub", "%n", column))
            first = self.integer("mul", block, "%block")
            last = self.least("%m", self.integer("add", first, "%block"))
            lhs = self.at("%lhs", self.integer("mul", batch, "%lhs.batch"), f.stored)
            rhs = self.at("%rhs", self.integer("mul", batch, "%rhs.batch"), f.stored)
            rhs = self.at(rhs, self.integer("mul", column, "%rhs.column"), f.stored)
            out = self.at("%out", self.integer("add", self.integer("mul", batch, "%out.batch"), column), f.word)
            place = self.slot("i64")
            self.line(f"store i64 0, ptr {place}")
            with self.while_below(place, self.at_least_one("%k")) as k:  # of nothing the sum is 0
                length = self.length(k)
                self.stretch(lhs, rhs, out, columns, first, last, k, length)
                self.line(f"store i64 {self.integer('add', k, self.at_least_one(length))}, ptr {place}")
        return self.function(f"void @{f.name}(ptr %args, i64 %lo, i64 %hi) nounwind")

    def at_least_one(self, n: str) -> str:
        return self.value(f"call i64 @llvm.umax.i64(i64 {n}, i64 1)")

    def length(self, k: str) -> str:
        """The elements of the stretch of the summed dimension that begins at `k`.

        The rest of a group is a stretch of its own: all rows would be copied otherwise, to end with zeros.
        """
        step = self.f.step
        length = self.least(GROUPS * step, self.integer("sub", "%k", k))
        if step == 1:
            return length
        whole = self.integer("sub", length, self.integer("urem", length, step))
        in_rows = self.value("icmp eq i64 %lhs.k, 1")
        cut = self.value(f"and i1 {in_rows}, {self.value(f'icmp ne i64 {whole}, 0')}")
        return self.value(f"select i1 {cut}, i64 {whole}, i64 {length}")

    def stretch(self, lhs: str, rhs: str, out: str, columns: str, first: str, last: str, k: str, length: str) -> None:
        """Add the products of one stretch of the summed dimension to the panel's columns of a block of rows."""
        f = self.f
        groups = self.integer("udiv", self.integer("add", length, f.step - 1), f.step)
        is_whole = self.value(f"icmp eq i64 {columns}, {f.columns}")
        begun = self.value(f"icmp ne i64 {self.integer('or', k, '%add')}, 0")
        start = self.at(rhs, self.integer("mul", k, "%rhs.k"), f.stored)
        in_place = self.in_place(is_whole, first, last)
        with self.unless(in_place):
            self.pack_columns(start, columns, length, groups, is_whole)
        b = self.value(f"select i1 {in_place}, ptr {start}, ptr {self.panel}")
        b_group = self.value(f"select i1 {in_place}, i64 {self.bytes_of('%rhs.k')}, i64 {f.columns * f.word_bytes}")
        c_row = self.integer("mul", "%out.row", f.word_bytes)
        lhs = self.at(lhs, self.integer("mul", k, "%lhs.k"), f.stored)
        apart = self.integer("or", self.integer("sub", "%lhs.k", 1), self.integer("urem", length, f.step))
        copied = self.value(f"icmp ne i64 {apart}, 0")
        # where rows lie: in place, if groups are whole and one after the other, else in strips of 8 rows to a group
        a_row = self.value(f"select i1 {copied}, i64 {f.word_bytes}, i64 {self.bytes_of('%lhs.row')}")
        a_group = self.value(f"select i1 {copied}, i64 {8 * f.word_bytes}, i64 {f.word_bytes}")
        with self.loop(first, last, f.rows * _STRIPS) as chunk:
            start = self.at(lhs, self.integer("mul", chunk, "%lhs.row"), f.stored)
            end = self.least(last, self.integer("add", chunk, f.rows * _STRIPS))
            with self.when(copied):
                self.pack_rows(start, self.integer("sub", end, chunk), length, groups)
            a_next = self.integer("mul", f.rows, self.bytes_of("%lhs.row"))
            a_next = self.value(f"select i1 {copied}, i64 {8 * GROUPS * f.word_bytes}, i64 {a_next}")
            base = self.value(f"select i1 {copied}, ptr {self.strips}, ptr {start}")
            self.tiles(chunk, end, (base, a_next, a_row, a_group), (b, b_group), (out, c_row), (columns, groups, begun))

    def tiles(
        self,
        chunk: str,
        end: str,
        left: tuple[str, str, str, str],
        right: tuple[str, str],
        result: tuple[str, str],
        extent: tuple[str, str, str],
    ) -> None:
        """The tiles of rows `chunk` to `end`. Distances in bytes: of the left matrix from a tile to the next, a row to
        the next, a group to the next; of the right one a group to the next; of the result a row to the next."""
        f = self.f
        (base, a_next, a_row, a_group), (b, b_group), (out, c_row) = left, right, result
        columns, groups, begun = extent
        is_wide = self.value(f"icmp ugt i64 {columns}, {f.columns // 2}")
        place = self.slot("i64")
        self.line(f"store i64 {chunk}, ptr {place}")
        with self.while_below(place, end) as row:
            shape, rows = self.height(self.integer("sub", end, row))
            self.line(f"store i64 {self.integer('add', row, rows)}, ptr {place}")
            inside = self.integer("sub", row, chunk)
            number, r = self.integer("udiv", inside, f.rows), self.integer("urem", inside, f.rows)
            a = self.at(base, self.integer("mul", number, a_next), "i8")
            a = self.at(a, self.integer("mul", r, a_row), "i8")
            c = self.at(out, self.integer("mul", row, "%out.row"), f.word)

            def call(shape: str, b: str, c: str, columns: str, a: str = a) -> None:
                tile = self.value(f"load ptr, ptr {self.at('@tiles', shape, 'ptr')}")
                left = f"ptr {a}, i64 {a_row}, i64 {a_group}"
                right = f"ptr {b}, i64 {b_group}, i64 {groups}"
                self.line(f"call void {tile}({left}, {right}, ptr {c}, i64 {c_row}, i1 {begun}, i64 {columns})")

            # a narrow tile has too few sums to keep the processor busy: half of a wide one takes no longer
            with self.when(is_wide):
                call(shape, b, c, columns)
            with self.unless(is_wide), self.loop(0, columns, f.lanes) as v:
                narrow = self.integer("add", shape, len(self.heights))
                call(narrow, self.at(b, v, f.word), self.at(c, v, f.word), self.integer("sub", columns, v))

    def height(self, left: str) -> tuple[str, str]:
        """The number and the rows of the highest tile that the rows left fill."""
        shape, rows = str(len(self.heights) - 1), "1"
        for n in range(len(self.heights) - 2, -1, -1):
            fits = self.value(f"icmp uge i64 {left}, {self.heights[n]}")
            shape = self.value(f"select i1 {fits}, i64 {n}, i64 {shape}")
            rows = self.value(f"select i1 {fits}, i64 {self.heights[n]}, i64 {rows}")
        return shape, rows

    def in_place(self, is_whole: str, first: str, last: str) -> str:
        """Whether the right matrix is read where it lies."""
        if self.f.step > 1:
            return "false"
        in_rows = self.value("icmp eq i64 %rhs.column, 1")
        few = self.value(f"icmp ule i64 {self.integer('sub', last, first)}, {_FEW}")
        return self.value(f"and i1 {is_whole}, {self.value(f'and i1 {in_rows}, {few}')}")

    def masked_load(self, place: str, lanes: int, mask: str) -> str:
        kind = f"<{lanes} x {self.f.stored}>"
        return self.value(
            f"call {kind} @llvm.masked.load.v{lanes}{self.f.stored}.p0"
            f"(ptr {place}, i32 {self.f.element.byte_size}, <{lanes} x i1> {mask}, {kind} zeroinitializer)"
        )

    def together(self, rows: list[str], lanes: int) -> str:
        """Rows of the summed dimension with the elements of each group side by side."""
        if len(rows) == 1:
            return rows[0]
        count, stored = lanes, self.f.stored
        while len(rows) > 2:  # rows of halves side by side, then one shuffle
            side_by_side = ", ".join(f"i32 {n}" for n in range(2 * count))
            kind = f"<{count} x {stored}>"
            rows = [
                self.value(f"shufflevector {kind} {a}, {kind} {b}, <{2 * count} x i32> <{side_by_side}>")
                for a, b in zip(rows[::2], rows[1::2], strict=True)
            ]
            count *= 2
        kind, step = f"<{count} x {stored}>", self.f.step
        order = ", ".join(f"i32 {s * lanes + lane}" for lane in range(lanes) for s in range(step))
        return self.value(f"shufflevector {kind} {rows[0]}, {kind} {rows[1]}, <{step * lanes} x i32> <{order}>")

    # -- rows of the left matrix -----------------------------------------------------------------------------------
    def pack_rows(self, start: str, rows: str, length: str, groups: str) -> None:
        """Copy a stretch of some rows into strips, one for each tile."""
        f = self.f
        side_by_side = self.value("icmp eq i64 %lhs.row, 1")
        is_full = "false" if f.step > 1 else self.value(f"icmp eq i64 {rows}, {f.rows * _STRIPS}")
        with self.when(side_by_side), self.when(is_full), self.loop(0, groups) as g:
            self.pack_full(self.at(start, self.integer("mul", g, "%lhs.k"), f.stored), g)
        is_partial = self.value(f"xor i1 {is_full}, true")
        with self.when(side_by_side), self.when(is_partial):
            strips = self.integer("udiv", rows, f.rows)
            done = self.integer("mul", strips, f.rows)
            rest = self.lanes_below(8, self.integer("sub", rows, done))
            with self.loop(0, groups) as g:
                with self.loop(0, strips) as strip:
                    self.pack_strip(start, strip, self.integer("mul", strip, f.rows), g, length, self.lanes_of_strip)
                with self.when(self.value(f"icmp ne i64 {done}, {rows}")):
                    self.pack_strip(start, strips, done, g, length, rest)
        with self.unless(side_by_side), self.loop(0, groups) as g, self.loop(0, rows) as row:
            place = self.at(start, self.integer("mul", row, "%lhs.row"), f.stored)
            strip, r = self.integer("udiv", row, f.rows), self.integer("urem", row, f.rows)
            self.fetch_group(place, "%lhs.k", self.at(self.strips, self.at_strip(strip, g, r), f.word), g, length)

    def pack_full(self, start: str, g: str) -> None:
        """Copy a group of as many rows as strips have room for."""
        f = self.f
        places = [self.at(start, strip * f.rows, f.stored) for strip in range(_STRIPS)]
        rows = [self.masked_load(place, 8, self.lanes_of_strip) for place in places]
        for strip, row in enumerate(rows):
            target = self.at(self.strips, self.at_strip(str(strip), g, 0), f.word)
            self.line(f"store <8 x {f.stored}> {row}, ptr {target}, align 4")

    def pack_strip(self, start: str, strip: str, row: str, g: str, length: str, wanted: str) -> None:
        """Copy a group of the rows of a strip that are `wanted`, from `row` on."""
        f = self.f
        parts: list[str] = []
        for s in range(f.step):
            n, mask = self.integer("add", self.integer("mul", g, f.step), s), wanted
            if s:
                there = self.value(f"icmp ult i64 {n}, {length}")
                mask = self.value(f"select i1 {there}, <8 x i1> {wanted}, <8 x i1> zeroinitializer")
            place = self.at(self.at(start, self.integer("mul", n, "%lhs.k"), f.stored), row, f.stored)
            parts.append(self.masked_load(place, 8, mask))
        target = self.at(self.strips, self.at_strip(strip, g, 0), f.word)
        self.line(f"store <{8 * f.step} x {f.stored}> {self.together(parts, 8)}, ptr {target}, align 4")

    @property
    def lanes_of_strip(self) -> str:
        """The mask of a strip's rows, among the 8 that it has room for."""
        return f"<{', '.join(f'i1 {int(n < self.f.rows)}' for n in range(8))}>"

    def at_strip(self, strip: str, g: str, r: str | int) -> str:
        group = self.integer("add", self.integer("mul", strip, GROUPS), g)
        return self.integer("add", self.integer("mul", group, 8), r)

    def bytes_of(self, elements: str) -> str:
        return self.integer("mul", elements, self.f.element.byte_size)

    def fetch_group(self, place: str, distance: str, target: str, g: str, length: str) -> None:
        """One group, element by element, 0 for those behind the end."""
        f = self.f
        for s in range(f.step):
            n = self.integer("add", self.integer("mul", g, f.step), s)
            target_s = self.at(target, s, f.stored)
            there = self.value(f"icmp ult i64 {n}, {length}")
            with self.when(there):
                one = self.value(f"load {f.stored}, ptr {self.at(place, self.integer('mul', n, distance), f.stored)}")
                self.line(f"store {f.stored} {one}, ptr {target_s}")
            with self.unless(there):
                self.line(f"store {f.stored} 0, ptr {target_s}")

    # -- columns of the right matrix -------------------------------------------------------------------------------
    def pack_columns(self, start: str, columns: str, length: str, groups: str, is_whole: str) -> None:
        """Put a stretch of the right matrix into the panel, group by group."""
        in_rows = self.value("icmp eq i64 %rhs.column, 1")
        with self.when(in_rows), self.loop(0, groups, self.packed_groups) as g:
            with self.when(is_whole):
                self.pack_row(start, g, length, ["splat (i1 true)"] * self.f.vectors)
            with self.unless(is_whole):
                masks = [self.lanes_below(self.f.lanes, self.left(columns, v)) for v in range(self.f.vectors)]
                self.pack_row(start, g, length, masks)
        with self.unless(in_rows):
            self.pack_crosswise(start, columns, length, groups)

    def pack_row(self, start: str, g: str, length: str, masks: list[str]) -> None:
        f = self.f
        for v, mask in enumerate(masks):
            parts: list[str] = []
            for s in range(f.step):
                n = self.integer("add", self.integer("mul", g, f.step), s)
                place = self.at(self.at(start, self.integer("mul", n, "%rhs.k"), f.stored), v * f.lanes, f.stored)
                shown = f"{self.mask_type} {mask}"
                if s:
                    there = self.value(f"icmp ult i64 {n}, {length}")
                    mask = self.value(f"select i1 {there}, {shown}, {self.mask_type} zeroinitializer")
                parts.append(self.masked_load(place, f.lanes, mask))
            target = self.at(self.panel, self.integer("add", self.integer("mul", g, f.columns), v * f.lanes), f.word)
            self.line(f"store {self.elements} {self.together(parts, f.lanes)}, ptr {target}, align 4")

    def pack_crosswise(self, start: str, columns: str, length: str, groups: str) -> None:
        """Pack columns whose groups are contiguous: squares of them are transposed in registers, others one by one."""
        f, side = self.f, self.f.lanes
        in_columns = self.value("icmp eq i64 %rhs.k, 1")
        whole_groups = self.integer("udiv", length, f.step)
        with self.loop(0, columns, side) as column, self.loop(0, groups, side) as g:
            fits = self.value(f"icmp ule i64 {self.integer('add', column, side)}, {columns}")
            ends = self.value(f"icmp ule i64 {self.integer('add', g, side)}, {whole_groups}")
            square = self.value(f"and i1 {in_columns}, {self.value(f'and i1 {fits}, {ends}')}")
            with self.when(square):
                self.turn(start, column, g)
            with self.unless(square):
                last_column = self.least(columns, self.integer("add", column, side))
                last_group = self.least(groups, self.integer("add", g, side))
                with self.loop(column, last_column) as c, self.loop(g, last_group) as one:
                    place = self.at(start, self.integer("mul", c, "%rhs.column"), f.stored)
                    target = self.at(self.panel, self.integer("add", self.integer("mul", one, f.columns), c), f.word)
                    self.fetch_group(place, "%rhs.k", target, one, length)

    def turn(self, start: str, column: str, g: str) -> None:
        """A square of groups: columns in, rows out."""
        f, side = self.f, self.f.lanes
        rows: list[str] = []
        for n in range(side):
            offset = self.integer("mul", self.integer("add", column, n), "%rhs.column")
            offset = self.integer("add", offset, self.integer("mul", g, f.step))
            rows.append(
                self.value(f"load {self.words}, ptr {self.at(start, offset, f.stored)}, align {f.element.byte_size}")
            )
        for n, row in enumerate(self.turned(rows, self.words)):
            target = self.integer("add", self.integer("mul", self.integer("add", g, n), f.columns), column)
            self.line(f"store {self.words} {row}, ptr {self.at(self.panel, target, f.word)}, align 4")

    def turned(self, rows: list[str], kind: str) -> list[str]:
        """As many vectors of that type as one has elements, transposed."""
        side = len(rows)
        for shuffles in rounds(side, 8 * self.f.lanes * self.f.word_bytes // side):
            rows = [
                self.value(
                    f"shufflevector {kind} {rows[a]}, {kind} {rows[b]}, "
                    f"<{side} x i32> <{', '.join(f'i32 {n}' for n in order)}>"
                )
                for a, b, order in shuffles
            ]
        return rows
