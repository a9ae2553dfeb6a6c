"""The passes of Fourier transforms: butterflies of one factor, on vectors with the same element of many lines."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

import numpy as np

from heron.codegen.llvm.jit import host
from heron.codegen.llvm.text import Function
from heron.codegen.turning import rounds
from heron.hlo.ir.types import ElementType
from heron.records import dataclass

Complex = tuple[str, str]

#: factors there are butterflies for, the ones to take first
RADICES = (8, 4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)


def factors(n: int) -> list[int] | None:
    """`n` as factors there are butterflies for; None where it has others."""
    found: list[int] = []
    for radix in RADICES:
        while n % radix == 0:
            found.append(radix)
            n //= radix
    return found if n == 1 else None


#: bits of the narrowest vectors that lines are put in
_NARROWEST = 128


@dataclass(frozen=True, slots=True)
class LineVector:
    """A vector with one part, real or imaginary, of the same element of ``lanes`` lines."""

    element: ElementType
    lanes: int

    @property
    def byte_size(self) -> int:
        return self.lanes * self.element.byte_size

    def __str__(self) -> str:
        return f"{self.element.name}x{self.lanes}"


def vectors_for(element: ElementType, lines: int) -> list[LineVector]:
    """The vectors for so many lines on this machine, the widest first: no wider than it takes to hold all of them."""
    widest, narrowest = (bits // element.bits for bits in (host().width, _NARROWEST))
    most = min(widest, max(narrowest, 1 << (lines - 1).bit_length()))
    return [LineVector(element, most >> n) for n in range((most // narrowest).bit_length())]


class Vectors(Function):
    """Vectors of one part of complex numbers, and complex arithmetic on pairs of them."""

    def __init__(self, form: LineVector) -> None:
        super().__init__()
        element, lanes = form.element, form.lanes
        self.element, self.lanes = element, lanes
        self.scalar = "float" if element.bits == 32 else "double"
        self.vector = f"<{self.lanes} x {self.scalar}>"

    def number(self, value: float) -> str:
        """A constant in all lanes, rounded to the type."""
        bits = np.float64(self.element.dtype.type(value)).view(np.uint64)
        return f"splat ({self.scalar} 0x{int(bits):016X})"

    def real(self, op: str, a: str, b: str) -> str:
        return self.value(f"{op} contract {self.vector} {a}, {b}")

    def add(self, a: Complex, b: Complex) -> Complex:
        return self.real("fadd", a[0], b[0]), self.real("fadd", a[1], b[1])

    def sub(self, a: Complex, b: Complex) -> Complex:
        return self.real("fsub", a[0], b[0]), self.real("fsub", a[1], b[1])

    def mul(self, a: Complex, b: Complex) -> Complex:
        re = self.real("fsub", self.real("fmul", a[0], b[0]), self.real("fmul", a[1], b[1]))
        return re, self.real("fadd", self.real("fmul", a[0], b[1]), self.real("fmul", a[1], b[0]))

    def times(self, a: Complex, factor: float) -> Complex:
        return self.real("fmul", a[0], self.number(factor)), self.real("fmul", a[1], self.number(factor))

    def down(self, a: Complex) -> Complex:
        """``-i a``."""
        return a[1], self.value(f"fneg {self.vector} {a[0]}")

    def constant(self, z: complex) -> Complex:
        return self.number(z.real), self.number(z.imag)

    def part(self, place: str, at: str | int) -> str:
        """The address of a vector in scratch memory."""
        return self.at(place, at, self.vector)

    def vector_at(self, place: str) -> str:
        return self.value(f"load {self.vector}, ptr {place}, align 64")

    def put_vector(self, value: str, place: str) -> None:
        self.line(f"store {self.vector} {value}, ptr {place}, align 64")

    def pair(self, place: str, n: str) -> Complex:
        """Complex number `n` of all lines."""
        at = self.integer("mul", n, 2)
        return self.vector_at(self.part(place, at)), self.vector_at(self.part(place, self.integer("add", at, 1)))

    def put(self, z: Complex, place: str, n: str) -> None:
        at = self.integer("mul", n, 2)
        self.put_vector(z[0], self.part(place, at))
        self.put_vector(z[1], self.part(place, self.integer("add", at, 1)))

    def root(self, table: str, n: str) -> Complex:
        """Root `n` of a table, in all lanes."""
        at = self.integer("mul", n, 2)
        parts = []
        for k in (at, self.integer("add", at, 1)):
            size = self.element.byte_size
            number = self.value(f"load {self.scalar}, ptr {self.at(table, k, self.scalar)}, align {size}")
            parts.append(self.repeated(number))
        return parts[0], parts[1]

    def mask(self, count: str, width: int) -> str:
        """The first `count` of `width` lanes."""
        kind = f"<{width} x i32>"
        few = self.value(f"trunc i64 {self.least(count, width)} to i32")
        one = self.value(f"insertelement {kind} poison, i32 {few}, i64 0")
        every = self.value(f"shufflevector {kind} {one}, {kind} poison, {kind} zeroinitializer")
        return self.value(f"icmp ult {kind} <{', '.join(f'i32 {n}' for n in range(width))}>, {every}")

    def masked_load(self, place: str, mask: str, width: int) -> str:
        kind, suffix, size = f"<{width} x {self.scalar}>", f"v{width}f{self.element.bits}", self.element.byte_size
        args = f"ptr align {size} {place}, <{width} x i1> {mask}, {kind} zeroinitializer"
        return self.value(f"call {kind} @llvm.masked.load.{suffix}.p0({args})")

    def masked_store(self, value: str, place: str, mask: str, width: int) -> None:
        kind, suffix, size = f"<{width} x {self.scalar}>", f"v{width}f{self.element.bits}", self.element.byte_size
        args = f"{kind} {value}, ptr align {size} {place}, <{width} x i1> {mask}"
        self.line(f"call void @llvm.masked.store.{suffix}.p0({args})")

    def masked_pairs(self, place: str, count: str) -> Complex:
        """As many complex numbers as there are lanes, from memory; zeros beyond the first `count`."""
        wide = 2 * self.lanes
        both = self.masked_load(place, self.mask(self.integer("mul", count, 2), wide), wide)
        return self._every_other(both, 0), self._every_other(both, 1)

    def _every_other(self, both: str, first: int) -> str:
        wide = f"<{2 * self.lanes} x {self.scalar}>"
        order = ", ".join(f"i32 {2 * lane + first}" for lane in range(self.lanes))
        return self.value(f"shufflevector {wide} {both}, {wide} poison, <{self.lanes} x i32> <{order}>")

    def put_masked_pairs(self, z: Complex, place: str, count: str) -> None:
        """The first `count` complex numbers, to memory."""
        wide = 2 * self.lanes
        order = ", ".join(f"i32 {lane + part * self.lanes}" for lane in range(self.lanes) for part in range(2))
        pair = f"{self.vector} {z[0]}, {self.vector} {z[1]}"
        both = self.value(f"shufflevector {pair}, <{wide} x i32> <{order}>")
        self.masked_store(both, place, self.mask(self.integer("mul", count, 2), wide), wide)

    def turned(self, rows: Sequence[str]) -> list[str]:
        """The transpose of a square of vectors."""
        n, rows = self.lanes, list(rows)
        for shuffles in rounds(n, self.element.bits):
            rows = [
                self.value(
                    f"shufflevector {self.vector} {rows[a]}, {self.vector} {rows[b]}, "
                    f"<{n} x i32> <{', '.join(f'i32 {k}' for k in order)}>"
                )
                for a, b, order in shuffles
            ]
        return rows

    def repeated(self, number: str) -> str:
        """A number in all lanes."""
        one = self.value(f"insertelement {self.vector} poison, {self.scalar} {number}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.value(f"shufflevector {self.vector} {one}, {self.vector} poison, {zeros}")


class Butterflies(Vectors):
    """Transforms of a few numbers in registers."""

    def butterfly(self, x: list[Complex]) -> list[Complex]:
        """The transform of a few numbers: halves for powers of two, sums of symmetric pairs for primes."""
        n = len(x)
        if n == 2:
            return [self.add(*x), self.sub(*x)]
        return self._halves(x) if n % 2 == 0 else self._prime(x)

    def _halves(self, x: list[Complex]) -> list[Complex]:
        n = len(x)
        even, odd = self.butterfly(x[::2]), self.butterfly(x[1::2])
        low: list[Complex] = []
        high: list[Complex] = []
        for k, (a, b) in enumerate(zip(even, odd, strict=True)):
            if 4 * k == n:
                turned = self.down(b)
            elif k:
                turned = self.mul(b, self.constant(cmath.exp(-2j * math.pi * k / n)))
            else:
                turned = b
            low.append(self.add(a, turned))
            high.append(self.sub(a, turned))
        return low + high

    def _prime(self, x: list[Complex]) -> list[Complex]:
        n, half = len(x), len(x) // 2
        sums = [self.add(x[j], x[n - j]) for j in range(1, half + 1)]
        differences = [self.sub(x[j], x[n - j]) for j in range(1, half + 1)]
        first = x[0]
        for s in sums:
            first = self.add(first, s)
        found: list[Complex] = [first] * n
        for k in range(1, half + 1):
            even, odd = x[0], None
            for j, (s, d) in enumerate(zip(sums, differences, strict=True), 1):
                angle = 2 * math.pi * (j * k % n) / n
                even = self.add(even, self.times(s, math.cos(angle)))
                turned = self.times(d, math.sin(angle))
                odd = turned if odd is None else self.add(odd, turned)
            assert odd is not None
            turned = self.down(odd)
            found[k], found[n - k] = self.add(even, turned), self.sub(even, turned)
        return found


class PassWriter(Butterflies):
    """The pass of one factor."""

    def __init__(self, form: LineVector, radix: int) -> None:
        super().__init__(form)
        self.radix = radix

    def text(self, name: str) -> str:
        """The function ``void NAME(ptr from, ptr to, ptr roots, i64 m, i64 s)``."""
        r = self.radix
        with self.loop(0, "%m") as p:
            turn = self.integer("mul", p, "%s")
            turns = [self.root("%roots", self.integer("mul", turn, j)) for j in range(1, r)]
            start = self.integer("mul", turn, r)
            with self.loop(0, "%s") as q:
                first, far = self.integer("add", q, turn), self.integer("mul", "%m", "%s")
                xs = [self.pair("%from", self.integer("add", first, self.integer("mul", far, j))) for j in range(r)]
                ys = self.butterfly(xs)
                ys = [ys[0], *(self.mul(y, w) for y, w in zip(ys[1:], turns, strict=True))]
                target = self.integer("add", q, start)
                for j, y in enumerate(ys):
                    self.put(y, "%to", self.integer("add", target, self.integer("mul", "%s", j)))
        arrays = "ptr noalias %from, ptr noalias %to, ptr noalias %roots"
        return self.function(f"void @{name}({arrays}, i64 %m, i64 %s) nounwind")
