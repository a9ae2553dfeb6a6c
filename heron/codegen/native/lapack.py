"""Linear algebra in the native program: the steps of a `LapackThunk` on a batch, matrices shared by the threads."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from heron.codegen.llvm.text import Function
from heron.codegen.native import lapack_code
from heron.codegen.native.blas_threads import one_blas_thread
from heron.codegen.native.lapack_code import Shared
from heron.codegen.native.share import write_range
from heron.codegen.native.small_matrices import SmallMatrices
from heron.records import dataclass
from heron.runtime import array_pool
from heron.runtime.cpu import blas
from heron.runtime.fortran import (
    Call,
    Factored,
    Finite,
    Move,
    One,
    Paired,
    Pivots,
    Place,
    SmallCholesky,
    SmallLu,
    SmallSolve,
    Step,
    Turn,
)  # fmt: skip
from heron.runtime.thunks import HostThunk, LapackThunk

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter

#: multiplications of a batch from which on threads share it, and those a thread takes at a time
_SHARED, _PORTION = 1 << 18, 1 << 16
#: bytes of scratch that a thread takes from its stack: a call for memory may fail and then needs Python, so that native
#: code cannot call such a program by itself; a thread has 2 MiB or more
_ON_STACK = 1 << 19


def write_lapack(w: ProgramWriter, t: LapackThunk) -> None:
    """A function does a range of the batch; it calls the routines, which are addresses. Thunks alike have one."""
    order = tuple(map(t.args.index, t.args))  # which arguments are the same memory
    key = t.steps, t.strides, order, "" if t.steps.scratch <= _ON_STACK else t.source
    if key not in w.ranges:
        w.ranges[key] = w.name("heron_lapack_")
        w.functions.append(_Range(w, t).text(w.ranges[key]))
    work = max(1, t.steps.work)
    grain = t.batch if work * t.batch < _SHARED else max(1, _PORTION // work)
    calls = any(isinstance(step, Call | Finite) for step in t.steps.steps)
    with one_blas_thread(w) if calls else nullcontext():
        write_range(w, w.ranges[key], [w.pointer(s) for s in t.args], t.batch, grain)


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
                self.step(step, small)

    def step(self, step: Step, small: SmallMatrices) -> None:
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
            case Paired():
                self.paired(step)
            case SmallCholesky():
                small.cholesky(step)
            case SmallLu():
                small.lu(step)
            case SmallSolve():
                small.solve(step)
            case Finite():
                self.finite(step, small)

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
        origin, target = self.place(step.origin), self.place(step.target)
        self.shared(lapack_code.turn(step.element), origin, target, step.down, step.across)

    def pivots(self, step: Pivots) -> None:
        self.shared(lapack_code.pivots(step.element), self.place(step.matrix), self.place(step.info), step.n)

    def factored(self, step: Factored) -> None:
        code = lapack_code.factored(step.element, step.above)
        self.shared(code, self.place(step.matrix), self.place(step.info), step.n)

    def paired(self, step: Paired) -> None:
        places = (self.place(p) for p in (step.vectors, step.imaginary, step.target))
        down, across = (1, step.n) if step.by_columns else (step.n, 1)
        self.shared(lapack_code.paired(step.element), *places, step.n, down, across)

    def finite(self, step: Finite, small: SmallMatrices) -> None:
        parts = 2 if step.element.is_complex else 1
        self.shared(
            lapack_code.finite(step.element), self.place(step.matrix), self.place(step.info), step.count * parts
        )
        good, bad = self.fork(self.load("i32", self.place(step.info)).eq(0))
        with good:
            for inner in step.steps:
                self.step(inner, small)
        with bad:
            for place, size in step.results:
                self.fill(self.place(place), 0, size)

    def shared(self, code: Shared, *arguments: str | int) -> None:
        """Call code that programs share."""
        self.w.declare(code.symbol, code.signature, code.make)
        self.call(code.signature, *arguments)
