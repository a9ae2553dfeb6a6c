"""Matrix products by BLAS in the native program: blocks of the result, shared by the program's threads.

A block is a part of the rows or of the columns of one matrix of the batch, whichever are more. How a product is cut
depends on its sizes alone, so values do not depend on threads. OpenBLAS works on the thread that calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.codegen.llvm.text import Function
from heron.codegen.native.blas_threads import one_blas_thread
from heron.codegen.native.infinite_sums import InfiniteSums
from heron.codegen.native.share import write_range
from heron.runtime.cpu import blas

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter
    from heron.runtime.thunks import GemmThunk

#: multiplications from which on threads share a product, and those of a block
_SHARED, _PORTION = 1 << 19, 1 << 18
#: blocks of a matrix at most, and how many rows or columns they are multiples of: BLAS copies all of the other operand
#: for each, which is little beside what it multiplies with them
_BLOCKS, _LINES = 4, 32


def write_blas_gemm(w: ProgramWriter, t: GemmThunk) -> None:
    """Row-major C = A·B is column-major Cᵀ = Bᵀ·Aᵀ: operands swap, stored shapes stay."""
    size = _block(t)
    blocks = -(-max(t.m, t.n) // size)
    items, work = t.batch * blocks, t.batch * _work(t)
    name = w.name("heron_blas_")
    w.functions.append(_Blocks(w, t, size, blocks).text(name))
    grain = items if work < _SHARED else max(1, _PORTION * items // work)
    with one_blas_thread(w):
        write_range(w, name, [w.pointer(s) for s in (t.lhs, t.rhs, t.out)], items, grain)


def _work(t: GemmThunk) -> int:
    """Multiplications of a matrix."""
    return t.m * t.n * max(1, t.k) * (4 if t.element_type.is_complex else 1)


def _block(t: GemmThunk) -> int:
    """The rows or columns of a block."""
    lines = max(t.m, t.n)
    blocks = min(_BLOCKS, max(1, _work(t) // _PORTION))
    return min(lines, -(-lines // (blocks * _LINES)) * _LINES)


class _Blocks(Function):
    """Writes ``void f(ptr args, i64 lo, i64 hi)``, which computes the blocks from lo to hi."""

    def __init__(self, w: ProgramWriter, t: GemmThunk, size: int, blocks: int) -> None:
        super().__init__()
        self.w, self.t, self.size, self.blocks = w, t, size, blocks

    def text(self, name: str) -> str:
        t, by_rows = self.t, self.t.m >= self.t.n
        lhs, rhs, out = (self.value(f"load ptr, ptr {self.at('%args', n, 'ptr')}") for n in range(3))
        count = self.slot("i32")
        with self.loop("%lo", "%hi") as item:
            matrix, block = self.integer("udiv", item, self.blocks), self.integer("urem", item, self.blocks)
            first = self.integer("mul", block, self.size)
            lines = self.least(self.size, self.integer("sub", max(t.m, t.n), first))
            self.line(f"store i32 {self.value(f'trunc i64 {lines} to i32')}, ptr {count}")
            lhs_step = (1 if t.lhs_transposed else t.k) if by_rows else 0
            rhs_step = 0 if by_rows else (t.k if t.rhs_transposed else 1)
            places = (
                self.part(lhs, matrix, t.m * t.k, first, lhs_step),
                self.part(rhs, matrix, t.k * t.n, first, rhs_step),
                self.part(out, matrix, t.m * t.n, first, t.n if by_rows else 1),
            )
            self.product(places, *((count, self.w.int_constant(t.n)) if by_rows else (self.w.int_constant(t.m), count)))
            if t.element_type.is_complex:
                self.infinite_sums(places, *((lines, t.n) if by_rows else (t.m, lines)))
        return self.function(f"internal void @{name}(ptr %args, i64 %lo, i64 %hi) nounwind")

    def part(self, base: str, matrix: str, elements: int, first: str, step: int) -> str:
        """The start of a block in a matrix of that many elements, lines a step apart."""
        offset = self.integer("add", self.integer("mul", matrix, elements), self.integer("mul", first, step))
        size = self.t.element_type.byte_size
        return self.at(base, self.integer("mul", offset, size), "i8")

    def product(self, places: tuple[str, str, str], m: str, n: str) -> None:
        w, t, (lhs, rhs, out) = self.w, self.t, places
        name = blas.PREFIX[t.element_type] + "gemm"
        symbol = f"heron_{name}"
        w.declare(symbol, f"void @{symbol}({', '.join(['ptr'] * 13)})", blas.address(name))
        args = [
            w.flag("T" if t.rhs_transposed else "N"),
            w.flag("T" if t.lhs_transposed else "N"),
            *(n, m, w.int_constant(t.k)),
            w.scalar(t.element_type, 1.0),
            *(rhs, w.int_constant(max(1, t.k if t.rhs_transposed else t.n))),
            *(lhs, w.int_constant(max(1, t.m if t.lhs_transposed else t.k))),
            w.scalar(t.element_type, 0.0),
            *(out, w.int_constant(max(1, t.n))),
        ]
        self.line(f"call void @{symbol}({', '.join('ptr ' + a for a in args)})")

    def infinite_sums(self, places: tuple[str, str, str], m: str | int, n: str | int) -> None:
        """Mend sums of the block that BLAS made NaN."""
        t, function = self.t, InfiniteSums(self.t.element_type)
        if function.name not in self.w.helpers:
            self.w.helpers[function.name] = function.text(self.w.declared)
        lhs_steps = (1, t.m) if t.lhs_transposed else (t.k, 1)
        rhs_steps = (t.k, 1) if t.rhs_transposed else (1, t.n)
        given = [f"ptr {p}" for p in places] + [f"i64 {n}" for n in (m, n, t.k, *lhs_steps, *rhs_steps, t.n)]
        self.line(f"call void @{function.name}({', '.join(given)})")
