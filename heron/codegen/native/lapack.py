"""Linear algebra in the native program: the steps of a `LapackThunk` on a batch, matrices shared by the threads."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from heron.codegen.llvm.text import Function
from heron.codegen.native.blas_threads import one_blas_thread
from heron.codegen.native.share import write_range
from heron.codegen.native.small_matrices import SmallMatrices
from heron.records import dataclass
from heron.runtime import array_pool
from heron.runtime.cpu import blas
from heron.runtime.fortran import (
    Call,
    Factored,
    Move,
    One,
    Pivots,
    Place,
    SmallCholesky,
    SmallLu,
    SmallSolve,
    Turn,
)  # fmt: skip
from heron.runtime.thunks import HostThunk, LapackThunk

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter

#: multiplications of a batch from which on threads share it, and those a thread takes at a time
_SHARED, _PORTION = 1 << 18, 1 << 16
#: bytes of scratch that a thread takes from its stack: no call for memory, which may fail and then needs Python
_ON_STACK = 1 << 16
#: rows and columns that are turned together
_SQUARE = 16


def write_lapack(w: ProgramWriter, t: LapackThunk) -> None:
    """A function of its own does a range of the batch; it calls the routines, which are addresses."""
    name = w.name("heron_lapack_")
    w.functions.append(_Range(w, t).text(name))
    work = max(1, t.steps.work)
    grain = t.batch if work * t.batch < _SHARED else max(1, _PORTION // work)
    calls = any(isinstance(step, Call) for step in t.steps.steps)
    with one_blas_thread(w) if calls else nullcontext():
        write_range(w, name, [w.pointer(s) for s in t.args], t.batch, grain)


@dataclass(frozen=True, slots=True)
class NoMemory:
    """Raises RUN010 for scratch memory of a routine."""

    size: int
    source: str

    def __call__(self) -> None:
        raise array_pool.no_memory(f"scratch of '{self.source}'", self.size)


class _Range(Function):
    """Writes ``void f(ptr args, i64 lo, i64 hi)``, which does the matrices from lo to hi."""

    def __init__(self, w: ProgramWriter, t: LapackThunk) -> None:
        super().__init__()
        self.w, self.t = w, t
        self.places: list[str] = []
        self.scratch = ""

    def text(self, name: str) -> str:
        head = f"internal void @{name}(ptr %args, i64 %lo, i64 %hi) nounwind"
        bases = [self.value(f"load ptr, ptr {self.at('%args', n, 'ptr')}") for n in range(len(self.t.args))]
        size = self.t.steps.scratch
        if size <= _ON_STACK:
            self.scratch = self.value(f"alloca i8, i64 {size}, align 64") if size else ""
            self.matrices(bases)
            return self.function(head)
        self.w.declared.function("ptr @malloc(i64)")
        self.w.declared.function("void @free(ptr)")
        self.scratch = self.value(f"call ptr @malloc(i64 {size})")
        there = self.value(f"icmp ne ptr {self.scratch}, null")
        with self.when(there):
            self.matrices(bases)
            self.line(f"call void @free(ptr {self.scratch})")
        with self.unless(there):
            missing = HostThunk(NoMemory(size, self.t.source), (), (), self.t.library, self.t.source, 0)
            self.line(self.w.host_call(missing, ["null"] if self.w.devices > 1 else []))
        return self.function(head)

    def matrices(self, bases: list[str]) -> None:
        with self.loop("%lo", "%hi") as n:
            strides = zip(bases, self.t.strides, strict=True)
            self.places = [self.at(base, self.integer("mul", n, stride), "i8") for base, stride in strides]
            small = SmallMatrices(self, self.place)
            for step in self.t.steps.steps:
                match step:
                    case Call():
                        self.routine(step)
                    case Move():
                        self.move(step)
                    case Turn():
                        self.turn(step)
                    case Pivots():
                        self.pivots(step)
                    case Factored():
                        self.factored(step)
                    case SmallCholesky():
                        small.cholesky(step)
                    case SmallLu():
                        small.lu(step)
                    case SmallSolve():
                        small.solve(step)

    def routine(self, step: Call) -> None:
        symbol = f"heron_{step.routine}"
        address = blas.lapack_address(step.routine)
        self.w.declare(symbol, f"void @{symbol}({', '.join(['ptr'] * len(step.arguments))})", address)
        self.line(f"call void @{symbol}({', '.join(f'ptr {self.argument(a)}' for a in step.arguments)})")

    def argument(self, a: str | int | One | Place) -> str:
        match a:
            case str():
                return self.w.flag(a)
            case int():
                return self.w.int_constant(a)
            case One():
                return self.w.scalar(a.element, 1.0)
            case Place():
                return self.place(a)

    def place(self, p: Place) -> str:
        return self.places[p.array] if p.array >= 0 else self.at(self.scratch, p.offset, "i8")

    def move(self, step: Move) -> None:
        args, origin, target = self.t.args, step.origin, step.target
        if origin is None:
            self.fill(self.place(target), 0, step.size)
            return
        if min(origin.array, target.array) >= 0 and args[origin.array] == args[target.array]:
            return
        to, of = self.place(target), self.place(origin)
        self.copy(to, of, step.size)

    def turn(self, step: Turn) -> None:
        """Square by square, so that lines of both matrices stay in a cache."""
        kind, align = f"i{step.element.bits}", step.element.component.byte_size
        origin, target = self.place(step.origin), self.place(step.target)
        with self.loop(0, step.down, _SQUARE) as i0, self.loop(0, step.across, _SQUARE) as j0:
            i1 = self.least(self.integer("add", i0, _SQUARE), step.down)
            j1 = self.least(self.integer("add", j0, _SQUARE), step.across)
            with self.loop(i0, i1) as i, self.loop(j0, j1) as j:
                of = self.integer("add", i, self.integer("mul", j, step.down))
                to = self.integer("add", j, self.integer("mul", i, step.across))
                element = self.value(f"load {kind}, ptr {self.at(origin, of, kind)}, align {align}")
                self.line(f"store {kind} {element}, ptr {self.at(target, to, kind)}, align {align}")

    def pivots(self, step: Pivots) -> None:
        kind, size = ("float", 4) if step.element.component.bits == 32 else ("double", 8)
        parts = step.element.byte_size // size
        matrix, info = self.place(step.matrix), self.place(step.info)

        def is_nan(k: str | int) -> str:
            at = self.at(matrix, self.integer("mul", k, (step.n + 1) * parts), kind)
            pivot = self.value(f"load {kind}, ptr {at}")
            return self.value(f"fcmp uno {kind} {pivot}, {pivot}")

        # what a NaN gets into ends in the last pivot
        found = self.value(f"icmp eq i32 {self.value(f'load i32, ptr {info}')}, 0")
        with self.when(self.value(f"and i1 {found}, {is_nan(step.n - 1)}")), self.loop(0, step.n) as n:
            k = self.integer("sub", step.n - 1, n)
            with self.when(is_nan(k)):
                order = self.value(f"trunc i64 {self.integer('add', k, 1)} to i32")
                self.line(f"store i32 {order}, ptr {info}")

    def factored(self, step: Factored) -> None:
        size, matrix = step.element.byte_size, self.place(step.matrix)
        info = self.value(f"load i32, ptr {self.place(step.info)}")
        good = self.value(f"icmp eq i32 {info}, 0")
        with self.when(good), self.loop(0, step.n) as column:
            start = self.integer("mul", column, step.n * size)
            if step.above:
                self.fill(self.at(matrix, start, "i8"), 0, self.integer("mul", column, size))
            else:
                below = self.integer("add", column, 1)
                first = self.integer("add", start, self.integer("mul", below, size))
                rest = self.integer("mul", self.integer("sub", step.n, below), size)
                self.fill(self.at(matrix, first, "i8"), 0, rest)
        part = step.element.component
        kind = "float" if part.bits == 32 else "double"
        with self.unless(good), self.loop(0, step.n * step.n * (size // part.byte_size)) as n:
            self.line(f"store {kind} 0x7FF8000000000000, ptr {self.at(matrix, n, kind)}")
