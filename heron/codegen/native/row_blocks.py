"""Products and kernels done a block of rows at a time: a function of the program that calls them on each block.

Values between two steps are in memory of a thread's own: a kernel that expects a whole array gets the address at which
that would begin. A work item of the pool is such memory, and whoever has it does blocks as long as there are some: who
does which makes no difference to what is computed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from heron.buffers.assignment import Slice
from heron.codegen.llvm.text import Function
from heron.codegen.native import float_gemm
from heron.codegen.native.float_gemm import Form
from heron.codegen.native.share import range_of, write_range
from heron.hlo.calls.gemm_shape import gemm_shape
from heron.hlo.ir.instruction import Instruction
from heron.runtime.thunks import GemmThunk, KernelThunk, RowBlocksThunk

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter


def multiplies_blocks(dot: Instruction) -> bool:
    """Whether a product can be done in blocks: by code of our own, from matrices of one type."""
    left, right = (o.shape.element_type for o in dot.operands[:2])
    if left is not right or not (float_gemm.multiplies(left, dot.shape.element_type) or left is dot.shape.element_type):
        return False
    shape = gemm_shape(dot)
    form = float_gemm.form_of(left, shape.m, shape.n)
    return form is not None and not form.is_complex


def write_row_blocks(w: ProgramWriter, t: RowBlocksThunk) -> None:
    """Call the steps of a thunk on all blocks, shared by the threads."""
    slices = [s for step in t.steps for s in _slices(step) if s.allocation >= 0]
    given = {s: n for n, s in enumerate(dict.fromkeys(slices), start=1)}
    writer = _Writer(w, t, given)
    name = w.name("heron_row_blocks_")
    w.helpers[name] = writer.text(name)
    scratch = w.pointer(t.scratch)
    w.line(f"store i64 0, ptr {scratch}")
    write_range(w, name, [scratch, *(w.pointer(s) for s in given)], writer.threads, 1)


def _slices(step: GemmThunk | KernelThunk) -> tuple[Slice, ...]:
    return step.args if isinstance(step, KernelThunk) else (step.lhs, step.rhs, step.out)


class _Writer(Function):
    """Writes the function of one thunk. ``given``: the places of its arrays among the packed arguments."""

    def __init__(self, w: ProgramWriter, t: RowBlocksThunk, given: dict[Slice, int]) -> None:
        super().__init__()
        self.w, self.t, self.given = w, t, given
        self.cut, self.sizes = t.cut, t.block_bytes
        #: blocks along the rows and the columns, and columns of a block
        self.down = -(-t.cut.rows // t.cut.block)
        self.across = t.columns // t.cut.width if t.cut.width else 1
        self.width = t.cut.width or t.columns
        self.arrays: dict[int, str] = {}

    @property
    def threads(self) -> int:
        """The number of threads for which there is memory."""
        own = sum(self.sizes.values())
        return (self.t.scratch.size - self.t.COUNTER) // own if own else self.blocks

    @property
    def blocks(self) -> int:
        return self.cut.batch * self.down * self.across

    def text(self, name: str) -> str:
        cut = self.cut
        self.packed = self.slot(f"[{max(4, *(len(_slices(s)) for s in self.t.steps))} x ptr]")
        self.counter = self.value("load ptr, ptr %args")
        with self.loop("%lo", "%hi") as thread:
            own = self.at(self.counter, self.integer("mul", thread, sum(self.sizes.values())), "i8")
            offset = self.t.COUNTER
            for allocation, size in self.sizes.items():
                self.arrays[allocation] = self.at(own, offset, "i8")
                offset += size
            place = self.slot("i64")
            self.line(f"store i64 {self.next()}, ptr {place}")
            with self.while_below(place, self.blocks) as number:
                column = self.integer("mul", self.integer("urem", number, self.across), self.width)
                block = self.integer("udiv", number, self.across)
                first = self.integer("mul", self.integer("urem", block, self.down), cut.block)
                batch = self.integer("udiv", block, self.down)
                rows = self.least(cut.block, self.integer("sub", cut.rows, first))
                row = self.integer("add", self.integer("mul", batch, cut.rows), first)
                for n, step in enumerate(self.t.steps):
                    if isinstance(step, GemmThunk):
                        self.product(step, batch, first, rows, column, n in self.t.turned)
                    else:
                        self.kernel(step, row, rows, column)
                self.line(f"store i64 {self.next()}, ptr {place}")
        attributes = "nounwind" if self.cut.width else "nounwind noinline optnone"
        return self.function(f"internal void @{name}(ptr %args, i64 %lo, i64 %hi) {attributes}")

    def next(self) -> str:
        """The number of the next block that nobody has begun."""
        return self.value(f"atomicrmw add ptr {self.counter}, i64 1 monotonic")

    def pointer(self, s: Slice) -> str:
        """The start of a whole array, or of a thread's block of one."""
        if s.allocation < 0:
            return self.arrays[s.allocation]
        return self.value(f"load ptr, ptr {self.at('%args', self.given[s], 'ptr')}")

    # -- products ------------------------------------------------------------------------------------------------------
    def product(self, t: GemmThunk, batch: str, first: str, rows: str, column: str, by_columns: bool) -> None:
        """A block of a product's rows; of its columns where the block is one of the right operand."""
        f = float_gemm.form_for(t)
        assert f is not None
        self.w.declare(f.name, f"void @{f.name}(ptr, i64, i64)", partial(float_gemm.address, f))
        table = self.table(t, f, rows, by_columns)
        rhs_column = t.k if t.rhs_transposed else 1
        lhs_row = 1 if t.lhs_transposed else t.k
        lhs, rhs, out = self.pointer(t.lhs), self.pointer(t.rhs), self.pointer(t.out)
        zero = "0"
        if t.lhs.allocation >= 0:
            lhs = self.element(lhs, f.stored, batch, t.m * t.k, zero if by_columns else first, lhs_row)
        if t.rhs.allocation >= 0:
            at_column = first if by_columns else self.inner(column)
            rhs = self.element(rhs, f.stored, batch, t.k * t.n, at_column, rhs_column)
        if t.out.allocation >= 0:
            row, at_column = (zero, first) if by_columns else (first, self.inner(column))
            out = self.element(out, f.word, batch, t.m * t.n, row, t.n)
            out = self.at(out, at_column, f.word)
        for n, pointer in enumerate((lhs, rhs, out, table)):
            self.line(f"store ptr {pointer}, ptr {self.at(self.packed, n, 'ptr')}")
        columns = rows if by_columns else (self.width if self.cut.width else t.n)
        panels = self.integer("udiv", self.integer("add", columns, f.columns - 1), f.columns)
        self.line(f"call void @{f.name}(ptr {self.packed}, i64 0, i64 {panels})")

    def inner(self, column: str) -> str:
        return column if self.cut.width else "0"

    def element(self, base: str, kind: str, batch: str, matrix: int, row: str, distance: int) -> str:
        offset = self.integer("add", self.integer("mul", batch, matrix), self.integer("mul", row, distance))
        return self.at(base, offset, kind)

    def table(self, t: GemmThunk, f: Form, rows: str, by_columns: bool) -> str:
        """The product's `FIELDS`: those of a whole block, or of the shorter one at the end."""
        cut, symbols = self.cut, []
        for count in dict.fromkeys((cut.block, cut.rows - (self.down - 1) * cut.block)):
            m, n = (t.m, count) if by_columns else (count, self.width if cut.width else t.n)
            out_row = t.n if t.out.allocation >= 0 else n
            symbols.append(float_gemm.write_sizes(self.w, t, f, m, n, out_row))
        if len(symbols) == 1:
            return symbols[0]
        whole = self.value(f"icmp eq i64 {rows}, {cut.block}")
        return self.value(f"select i1 {whole}, ptr {symbols[0]}, ptr {symbols[1]}")

    # -- kernels -------------------------------------------------------------------------------------------------------
    def kernel(self, t: KernelThunk, row: str, rows: str, column: str) -> None:
        """A kernel's work items of a block: those of all its rows, or one row after the other."""
        kernel = self.w.kernels[t.kernel]
        function = range_of(self.w, t.kernel, len(t.args))
        each = kernel.launch.work_items // kernel.parts
        if not self.cut.width:
            self.pack(t, row)
            low = self.integer("mul", row, each)
            self.run(function, low, self.integer("mul", rows, each))
            return
        number = self.integer("udiv", column, self.width)
        with self.loop(0, rows) as n:
            at = self.integer("add", row, n)
            self.pack(t, at, column, n)
            part = self.integer("add", self.integer("mul", at, self.across), number)
            self.run(function, self.integer("mul", part, each), str(each))

    def run(self, function: str, low: str, items: str) -> None:
        high = self.integer("add", low, items)
        self.line(f"call void @{function}(ptr {self.packed}, i64 {low}, i64 {high})")

    def pack(self, t: KernelThunk, row: str, column: str = "0", n: str = "0") -> None:
        """Pack the arrays so that the kernel finds a row, from a column on, where it is: in a thread's memory, that is
        row `n` of the block."""
        for place, s in enumerate(t.args):
            pointer = self.pointer(s)
            if s.allocation < 0:
                bytes_ = s.size // (self.cut.batch * self.cut.rows)
                size = bytes_ // self.t.columns
                whole = self.integer("add", self.integer("mul", row, bytes_), self.integer("mul", column, size))
                back = self.integer("sub", self.integer("mul", n, self.width * size), whole)
                pointer = self.value(f"getelementptr i8, ptr {pointer}, i64 {back}")
            self.line(f"store ptr {pointer}, ptr {self.at(self.packed, place, 'ptr')}")
