"""A convolution in the native program: loops over tables of offsets around one call of BLAS."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from heron.codegen.native.blas_threads import one_blas_thread
from heron.codegen.native.convolution_tiles import write_tiles
from heron.runtime.cpu import blas
from heron.runtime.strided import Matrix, StridedProducts, Tiling, Walk
from heron.runtime.thunks import ConvolutionThunk

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter

_STEP = "{ i64, i64, i64, i32 }"


def write_convolution(w: ProgramWriter, t: ConvolutionThunk) -> None:
    """By tiles; or zero the result, then add every product."""
    if isinstance(t.products, Tiling):
        write_tiles(w, t.products, t.element_type, t.lhs, t.rhs, t.out)
        return
    out, lhs, rhs = w.pointer(t.out), w.pointer(t.lhs), w.pointer(t.rhs)
    w.fill(out, 0, t.out.size)
    if not prod(map(len, t.products.walks)):
        return
    with one_blas_thread(w):
        _Nest(w, t, t.products).run(0, [out, lhs, rhs], {})


class _Nest:
    """Writes one loop for each walk, innermost the product; ``counts`` has the address of each walk's count."""

    def __init__(self, w: ProgramWriter, t: ConvolutionThunk, products: StridedProducts) -> None:
        self.w, self.t, self.p = w, t, products

    def run(self, depth: int, places: list[str], counts: dict[int, str]) -> None:
        if depth == len(self.p.walks):
            self.product(places, counts)
            return
        w, walk = self.w, self.p.walks[depth]
        table = self.table(walk)
        before, head, latch, done = (w.name(f"conv.{part}") for part in ("before", "step", "next", "done"))
        w.line(f"br label %{before}")
        w.start(before)
        w.line(f"br label %{head}")
        w.start(head)
        n = w.name("%n")
        w.line(f"{n} = phi i64 [ 0, %{before} ], [ {n}.next, %{latch} ]")
        inner: list[str] = []
        for field, place in enumerate(places):
            address = w.value(f"getelementptr inbounds {_STEP}, ptr {table}, i64 {n}, i32 {field}")
            offset = w.value(f"load i64, ptr {address}")
            inner.append(w.value(f"getelementptr inbounds i8, ptr {place}, i64 {offset}"))
        count = w.value(f"getelementptr inbounds {_STEP}, ptr {table}, i64 {n}, i32 3")
        self.run(depth + 1, inner, {**counts, depth: count})
        w.line(f"br label %{latch}")
        w.start(latch)
        w.line(f"{n}.next = add i64 {n}, 1")
        w.line(f"{n}.more = icmp ult i64 {n}.next, {len(walk)}")
        w.line(f"br i1 {n}.more, label %{head}, label %{done}")
        w.start(done)

    def table(self, walk: Walk) -> str:
        """The address of a walk's steps, offsets in bytes."""
        size = self.t.element_type.byte_size
        steps = [
            f"{_STEP} {{ i64 {s.out * size}, i64 {s.lhs * size}, i64 {s.rhs * size}, i32 {s.count} }}" for s in walk
        ]
        symbol = self.w.name("@heron_steps_")
        self.w.declared.variable(
            f"{symbol} = private unnamed_addr constant [{len(walk)} x {_STEP}] [{', '.join(steps)}]"
        )
        return symbol

    def product(self, places: list[str], counts: dict[int, str]) -> None:
        """BLAS counts columns first: what it takes for a matrix is the transpose of what stands there row by row."""
        w, p = self.w, self.p
        out, lhs, rhs = places
        m, k = (w.int_constant(size) if size >= 0 else counts[-1 - size] for size in (p.m, p.k))
        n = w.int_constant(p.n)
        name = blas.PREFIX[self.t.element_type] + "gemm"
        symbol = f"heron_{name}"
        w.declare(symbol, f"void @{symbol}({', '.join(['ptr'] * 13)})", blas.address(name))
        if p.out.inner_second:  # out^T = rhs^T lhs^T
            flags = [self.flag(not p.rhs.inner_second), self.flag(not p.lhs.inner_second)]
            sizes, first, second = [n, m, k], (rhs, p.rhs), (lhs, p.lhs)
        else:
            flags = [self.flag(p.lhs.inner_second), self.flag(p.rhs.inner_second)]
            sizes, first, second = [m, n, k], (lhs, p.lhs), (rhs, p.rhs)
        one = w.scalar(self.t.element_type, 1.0)
        args = [*flags, *sizes, one, *self.matrix(*first), *self.matrix(*second), one, *self.matrix(out, p.out)]
        w.line(f"call void @{symbol}({', '.join('ptr ' + a for a in args)})")

    def flag(self, transposed: bool) -> str:
        return self.w.flag("T" if transposed else "N")

    def matrix(self, place: str, m: Matrix) -> tuple[str, str]:
        return place, self.w.int_constant(m.leading)
