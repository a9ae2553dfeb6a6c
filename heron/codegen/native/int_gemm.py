"""Products of narrow integers, which BLAS has none of: s8, u8 and s16 matrices, summed modulo 2**32.

Columns of the right matrix are taken in panels that a work item rearranges on its stack so that one machine instruction
multiplies and adds groups of 4 bytes along the summed dimension: four s8 with VNNI's ``vpdpbusd``, two s16 with
``pmaddwd``. Six rows and a panel are kept in registers while the groups go by. Work items are panels of one matrix of
the batch; a sum never crosses work items, and integers have one sum whatever the order.

``vpdpbusd`` takes unsigned bytes times signed ones: the left matrix is read as a + 128, and 128 times the sum of each
column of the right one taken off again.

Source: Intel's instruction reference, VPDPBUSD and PMADDWD; the blocking is that of Goto and van de Geijn, "Anatomy of
high-performance matrix multiplication", ACM TOMS 34(3), 2008.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from heron.codegen.llvm.code_cache import CodeCache
from heron.codegen.llvm.jit import host
from heron.codegen.llvm.text import LINE, Function
from heron.codegen.native import common_code
from heron.codegen.native.share import write_range
from heron.hlo.ir.types import S8, S16, S32, U8, U32, ElementType
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter
    from heron.runtime.thunks import GemmThunk

OPERANDS, RESULTS = (S8, U8, S16), (S32, U32)
#: rows done at a time, and groups of 4 bytes along the summed dimension in a panel: 64 KiB at 512 bits
_ROWS, _GROUPS = 6, 256
#: multiplications from which on threads share a product
_SHARED = 1 << 18


@dataclass(frozen=True, slots=True)
class Form:
    """The product kernel of one element type. ``lanes``: sums in a vector; ``vectors``: vectors in a panel's width."""

    element: ElementType
    lanes: int
    vectors: int
    vnni: bool

    @property
    def name(self) -> str:
        return f"heron_gemm_{self.element.name}"

    @property
    def step(self) -> int:
        """Elements along the summed dimension in a group."""
        return 4 if self.vnni else 2

    @property
    def columns(self) -> int:
        return self.lanes * self.vectors

    @property
    def stored(self) -> str:
        """LLVM's type of an operand's element."""
        return f"i{self.element.bits}"

    @property
    def packed(self) -> str:
        """LLVM's type of an element in a group."""
        return "i8" if self.vnni else "i16"


def form(element: ElementType) -> Form | None:
    """This machine's product kernel for matrices of that type; None without an instruction for it."""
    features = set(host().features.split(","))
    if element not in OPERANDS or not {"+avx2"} <= features:
        return None
    wide = {"+avx512bw", "+avx512f"} <= features
    vnni = element is S8 and (wide and "+avx512vnni" in features)
    return Form(element, *((16, 4) if wide else (8, 2)), vnni)


def multiplies(operands: ElementType, result: ElementType) -> bool:
    """Whether `write_int_gemm` can do a product of those types here."""
    return result in RESULTS and form(operands) is not None


def write_int_gemm(w: ProgramWriter, t: GemmThunk) -> None:
    """Call the product of a thunk, shared by the threads where it is large."""
    f = form(t.operand_type)
    assert f is not None
    w.declare(f.name, f"void @{f.name}(ptr, i64, i64)", partial(address, f))
    symbol = w.name("@heron_product_")
    left = (1, t.m) if t.lhs_transposed else (t.k, 1)
    right = (1, t.k) if t.rhs_transposed else (t.n, 1)
    sizes = ", ".join(f"i64 {n}" for n in (t.m, t.n, t.k, *left, *right))
    w.declared.variable(f"{symbol} = private unnamed_addr constant [7 x i64] [{sizes}]")
    items = t.batch * -(-t.n // f.columns)
    grain = max(1, _SHARED // max(1, t.m * t.k * f.columns))
    write_range(w, f.name, [*map(w.pointer, (t.lhs, t.rhs, t.out)), symbol], items, grain)


def address(f: Form, cache: CodeCache | None) -> int:
    """The address of a form's function: ``void f(ptr args, i64 lo, i64 hi)`` does work items lo to hi, where ``args``
    points to lhs, rhs, out and seven i64: m, n, k, and in elements how far apart lie lhs's rows, its summed elements,
    rhs's summed elements and its columns.
    """
    return common_code.address_of(f.name, lambda: _Writer(f).text(), f, cache=cache)


class _Writer(Function):
    """Writes the function of one form."""

    def __init__(self, f: Form) -> None:
        super().__init__()
        self.f = f
        self.vector = f"<{f.lanes} x i32>"
        self.group = f"<{f.lanes * f.step} x {f.packed}>"

    # -- the product -------------------------------------------------------------------------------------------------
    def text(self) -> str:
        f = self.f
        names = "%m %n %k %lhs.row %lhs.k %rhs.k %rhs.column".split()
        for number, name in enumerate(("%lhs", "%rhs", "%out", "%sizes")):
            self.line(f"{name}.at = getelementptr ptr, ptr %args, i64 {number}")
            self.line(f"{name} = load ptr, ptr {name}.at")
        for number, name in enumerate(names):
            self.line(f"{name}.at = getelementptr i64, ptr %sizes, i64 {number}")
            self.line(f"{name} = load i64, ptr {name}.at")
        self.panel = self.slot(f"[{_GROUPS * f.columns} x i32]")
        self.tile = self.slot(f"[{_ROWS * _GROUPS * f.step} x {f.stored}]")
        self.first = self.slot(f"[{f.vectors} x {self.vector}]")
        self.totals = self.slot(f"[{_ROWS * f.vectors} x {self.vector}]")
        self.sums = [[self.slot(self.vector) for _ in range(f.vectors)] for _ in range(_ROWS)]
        panels = self.integer("udiv", self.integer("add", "%n", f.columns - 1), f.columns)
        with self.loop("%lo", "%hi") as item:
            batch, panel = self.integer("udiv", item, panels), self.integer("urem", item, panels)
            column = self.integer("mul", panel, f.columns)
            columns = self.least(f.columns, self.integer("sub", "%n", column))
            with self.loop(0, "%k", _GROUPS * f.step) as k:
                self.block(batch, column, columns, k)
        return self.function(f"void @{f.name}(ptr %args, i64 %lo, i64 %hi) nounwind")

    @property
    def instruction(self) -> str:
        wide = self.f.lanes == 16
        if self.f.vnni:
            return f"llvm.x86.avx512.vpdpbusd.{512 if wide else 256}"
        return "llvm.x86.avx512.pmaddw.d.512" if wide else "llvm.x86.avx2.pmadd.wd"

    def mask(self, columns: str, v: str) -> str:
        """The columns of vector `v` that the matrix has."""
        lanes = self.f.lanes
        kind = f"<{lanes} x i32>"
        start = self.value(f"trunc i64 {self.integer('mul', v, lanes)} to i32")
        at = self.value(f"add {kind} {self.repeated(start)}, <{', '.join(f'i32 {n}' for n in range(lanes))}>")
        count = self.value(f"trunc i64 {columns} to i32")
        return self.value(f"icmp ult {kind} {at}, {self.repeated(count)}")

    def repeated(self, word: str) -> str:
        """An i32 in all lanes of a vector."""
        kind = self.vector
        one = self.value(f"insertelement {kind} poison, i32 {word}, i64 0")
        return self.value(f"shufflevector {kind} {one}, {kind} poison, <{self.f.lanes} x i32> zeroinitializer")

    def block(self, batch: str, column: str, columns: str, k: str) -> None:
        """Add the products of one stretch of the summed dimension to the panel's columns of the result."""
        f = self.f
        length = self.least(_GROUPS * f.step, self.integer("sub", "%k", k))
        matrix = self.integer("mul", batch, self.integer("mul", "%k", "%n"))
        start = self.integer("add", self.integer("mul", k, "%rhs.k"), self.integer("mul", column, "%rhs.column"))
        self.pack(self.at("%rhs", self.integer("add", matrix, start), f.stored), columns, length)
        groups = self.integer("udiv", self.integer("add", length, f.step - 1), f.step)
        is_first = self.value(f"icmp eq i64 {k}, 0")
        rows_before = self.integer("mul", batch, "%m")
        lhs = self.at("%lhs", self.integer("mul", rows_before, "%k"), f.stored)
        out = self.at("%out", self.integer("add", self.integer("mul", rows_before, "%n"), column), "i32")
        with self.loop(0, "%m", _ROWS) as row:
            rows = self.least(_ROWS, self.integer("sub", "%m", row))
            start = self.integer("add", self.integer("mul", row, "%lhs.row"), self.integer("mul", k, "%lhs.k"))
            is_last = self.value(f"icmp uge i64 {self.integer('add', row, _ROWS)}, %m")
            base, distance = self.rows_of(self.at(lhs, start, f.stored), rows, length, is_last)
            for v in range(f.vectors):
                first = self.sum_at(self.at(self.first, v, self.vector))
                for r in range(_ROWS):
                    self.line(f"store {self.vector} {first}, ptr {self.sums[r][v]}, align 64")
            last = self.integer("sub", rows, 1)
            places = [self.at(base, self.integer("mul", self.least(r, last), distance), f.stored) for r in range(_ROWS)]
            self.fetch_results(self.at(out, self.integer("mul", row, "%n"), "i32"))
            line = LINE // (f.step * f.element.byte_size)
            with self.loop(0, groups, line) as begin:
                self.fetch_rows(base, distance, self.integer("mul", begin, f.step))
                with self.loop(begin, self.least(groups, self.integer("add", begin, line))) as g:
                    offset = self.integer("mul", g, f.step)
                    self.multiply([self.at(place, offset, f.stored) for place in places], g)
            for n, slot in enumerate(chain(*self.sums)):
                total = self.at(self.totals, n, self.vector)
                self.line(f"store {self.vector} {self.sum_at(slot)}, ptr {total}, align 64")
            with self.loop(0, rows) as r, self.loop(0, f.vectors) as v:
                total = self.at(self.totals, self.integer("add", self.integer("mul", r, f.vectors), v), self.vector)
                target = self.integer(
                    "add", self.integer("mul", self.integer("add", row, r), "%n"), self.integer("mul", v, f.lanes)
                )
                self.keep(self.at(out, target, "i32"), total, self.mask(columns, v), is_first)

    def fetch_results(self, start: str) -> None:
        """Ask early for what a tile will be added to or put into."""
        for r in range(_ROWS):
            for v in range(self.f.vectors):
                place = self.integer("add", self.integer("mul", r, "%n"), v * self.f.lanes)
                self.fetch_early(self.value(f"getelementptr i32, ptr {start}, i64 {place}"), is_written=True)

    def fetch_rows(self, base: str, distance: str, offset: str) -> None:
        """Ask early for the rows of the next tile, if there is one, from an element on."""
        for r in range(_ROWS, 2 * _ROWS):
            place = self.integer("add", offset, self.integer("mul", r, distance))
            self.fetch_early(self.value(f"getelementptr {self.f.stored}, ptr {base}, i64 {place}"))

    def clear(self, place: str, size: int) -> None:
        self.line(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {size}, i1 false)")

    def sum_at(self, slot: str) -> str:
        return self.value(f"load {self.vector}, ptr {slot}, align 64")

    def rows_of(self, start: str, rows: str, length: str, is_last: str) -> tuple[str, str]:
        """The address and distance of the left matrix's rows: in place if each is a sequence of groups, else in a copy
        padded with zeros.

        A last group that is not whole ends with elements of the next row, times zeros of the panel. Behind the last row
        there are none: rows at the end of the matrix are copied.
        """
        f = self.f
        stride = _GROUPS * f.step
        left = self.value(f"select i1 {is_last}, i64 {self.integer('urem', length, f.step)}, i64 0")
        apart = self.value(f"or i64 {left}, {self.integer('sub', '%lhs.k', 1)}")
        apart = self.value(f"icmp ne i64 {apart}, 0")
        with self.when(apart):
            self.clear(self.tile, _ROWS * stride * f.element.bits // 8)
            with self.loop(0, length) as n, self.loop(0, rows) as r:
                place = self.integer("add", self.integer("mul", n, "%lhs.k"), self.integer("mul", r, "%lhs.row"))
                element = self.value(f"load {f.stored}, ptr {self.at(start, place, f.stored)}")
                target = self.integer("add", self.integer("mul", r, stride), n)
                self.line(f"store {f.stored} {element}, ptr {self.at(self.tile, target, f.stored)}")
        base = self.value(f"select i1 {apart}, ptr {self.tile}, ptr {start}")
        return base, self.value(f"select i1 {apart}, i64 {stride}, i64 %lhs.row")

    def multiply(self, places: list[str], g: str) -> None:
        """Add group `g` of the panel times the group of each row."""
        f = self.f
        panel = self.at(self.panel, self.integer("mul", g, f.columns), "i32")
        columns = [
            self.value(f"load {self.group}, ptr {self.at(panel, v * f.lanes, 'i32')}, align 4")
            for v in range(f.vectors)
        ]
        for r, place in enumerate(places):
            few = self.value(f"load <{f.step} x {f.stored}>, ptr {place}, align {f.element.bits // 8}")
            word = self.value(f"bitcast <{f.step} x {f.packed}> {self.widened(few, f.step)} to i32")
            if f.vnni:
                word = self.value(f"xor i32 {word}, {_BIAS}")
            row = self.spread(word)
            for v, column in enumerate(columns):
                self.add(self.sums[r][v], row, column)

    def spread(self, word: str) -> str:
        """A group repeated over a vector."""
        return self.value(f"bitcast {self.vector} {self.repeated(word)} to {self.group}")

    def add(self, slot: str, row: str, column: str) -> None:
        total = self.sum_at(slot)
        if self.f.vnni:
            total = self.value(
                f"call {self.vector} @{self.instruction}"
                f"({self.vector} {total}, {self.group} {row}, {self.group} {column})"
            )
        else:
            product = self.value(f"call {self.vector} @{self.instruction}({self.group} {row}, {self.group} {column})")
            total = self.value(f"add {self.vector} {total}, {product}")
        self.line(f"store {self.vector} {total}, ptr {slot}, align 64")

    def widened(self, elements: str, count: int) -> str:
        """`count` elements as they lie in a group."""
        f = self.f
        if f.stored == f.packed:
            return elements
        extend = "sext" if f.element.is_signed else "zext"
        return self.value(f"{extend} <{count} x {f.stored}> {elements} to <{count} x {f.packed}>")

    def keep(self, place: str, total: str, mask: str, is_first: str) -> None:
        kind, lanes = self.vector, self.f.lanes
        # what earlier stretches of the summed dimension gave; nothing the first time
        before = self.value(f"select i1 {is_first}, <{lanes} x i1> zeroinitializer, <{lanes} x i1> {mask}")
        old = self.value(
            f"call {kind} @llvm.masked.load.v{lanes}i32.p0"
            f"(ptr {place}, i32 4, <{lanes} x i1> {before}, {kind} zeroinitializer)"
        )
        total = self.value(f"add {kind} {self.sum_at(total)}, {old}")
        self.line(
            f"call void @llvm.masked.store.v{lanes}i32.p0({kind} {total}, ptr {place}, i32 4, <{lanes} x i1> {mask})"
        )

    # -- the panel ---------------------------------------------------------------------------------------------------
    def pack(self, start: str, columns: str, length: str) -> None:
        """Rearrange a stretch of the right matrix by groups, and find what its sums begin with."""
        f = self.f
        groups = self.integer("udiv", self.integer("add", length, f.step - 1), f.step)
        in_rows = self.value("icmp eq i64 %rhs.column, 1")
        in_columns = self.value("icmp eq i64 %rhs.k, 1")
        self.clear(self.first, f.columns * 4)
        with self.loop(0, groups) as g, self.loop(0, f.vectors) as v:
            k = self.integer("mul", g, f.step)
            is_whole = self.value(f"icmp ule i64 {self.integer('add', k, f.step)}, {length}")
            column = self.integer("mul", v, f.lanes)
            target = self.at(self.panel, self.integer("add", self.integer("mul", g, f.columns), column), "i32")
            from_row = self.at(start, self.integer("mul", k, "%rhs.k"), f.stored)
            whole = self.value(f"icmp ule i64 {self.integer('add', column, f.lanes)}, {columns}")
            fast = self.value(f"and i1 {in_rows}, {self.value(f'and i1 {whole}, {is_whole}')}")
            with self.when(fast):
                self.interleave(self.at(from_row, column, f.stored), target)
            with self.when(self.value(f"xor i1 {fast}, true")), self.loop(0, f.lanes) as lane:
                at = self.integer("add", lane, column)
                there = self.value(f"icmp ult i64 {at}, {columns}")
                origin = self.at(from_row, self.integer("mul", at, "%rhs.column"), f.stored)
                self.gather(origin, self.at(target, lane, "i32"), there, is_whole, in_columns, k, length)
            if f.vnni:
                packed = self.value(f"load {self.group}, ptr {target}, align 4")
                self.add(self.at(self.first, v, self.vector), self.spread(str(_ONES)), packed)
        if f.vnni:
            with self.loop(0, f.vectors) as v:
                slot = self.at(self.first, v, self.vector)
                scaled = self.value(f"shl {self.vector} {self.sum_at(slot)}, splat (i32 7)")
                negated = self.value(f"sub {self.vector} zeroinitializer, {scaled}")
                self.line(f"store {self.vector} {negated}, ptr {slot}, align 64")

    def interleave(self, origin: str, target: str) -> None:
        """Columns that lie next to each other, `step` rows of them, with each column's elements together."""
        f = self.f
        rows: list[str] = []
        for s in range(f.step):
            place = self.at(origin, self.integer("mul", s, "%rhs.k"), f.stored)
            row = self.value(f"load <{f.lanes} x {f.stored}>, ptr {place}, align {f.element.bits // 8}")
            rows.append(self.widened(row, f.lanes))
        count = f.lanes
        while len(rows) > 1:  # rows of halves side by side, then one shuffle
            count *= 2
            kind = f"<{count // 2} x {f.packed}>"
            side_by_side = ", ".join(f"i32 {n}" for n in range(count))
            rows = [
                self.value(f"shufflevector {kind} {a}, {kind} {b}, <{count} x i32> <{side_by_side}>")
                for a, b in zip(rows[::2], rows[1::2], strict=True)
            ]
        order = ", ".join(f"i32 {s * f.lanes + lane}" for lane in range(f.lanes) for s in range(f.step))
        mixed = self.value(f"shufflevector {self.group} {rows[0]}, {self.group} poison, <{count} x i32> <{order}>")
        self.line(f"store {self.group} {mixed}, ptr {target}, align 4")

    def gather(self, origin: str, target: str, there: str, is_whole: str, in_columns: str, k: str, length: str) -> None:
        """One column's group, element by element; 0 for what the matrix does not have."""
        f = self.f
        self.line(f"store i32 0, ptr {target}, align 4")
        together = self.value(f"and i1 {there}, {self.value(f'and i1 {is_whole}, {in_columns}')}")
        with self.when(together):
            few = self.value(f"load <{f.step} x {f.stored}>, ptr {origin}, align {f.element.bits // 8}")
            self.line(f"store <{f.step} x {f.packed}> {self.widened(few, f.step)}, ptr {target}, align 4")
        apart = self.value(f"and i1 {there}, {self.value(f'xor i1 {together}, true')}")
        with self.when(apart), self.loop(0, self.least(f.step, self.integer("sub", length, k))) as s:
            place = self.at(origin, self.integer("mul", s, "%rhs.k"), f.stored)
            one = self.value(f"load <1 x {f.stored}>, ptr {place}, align {f.element.bits // 8}")
            self.line(f"store <1 x {f.packed}> {self.widened(one, 1)}, ptr {self.at(target, s, f.packed)}")


#: 128 in each byte of a group, added or taken off alike; a one in each byte
_BIAS, _ONES = -0x7F7F7F80, 0x01010101
