"""Arithmetic on real and complex numbers in functions of LLVM text."""

from __future__ import annotations

from heron.codegen.llvm.text import Function
from heron.codegen.llvm.values import Value
from heron.hlo.ir.types import ElementType

#: the real part of a number, and the imaginary part of a complex one
Number = tuple[str, ...]

ZERO = "0.0"


class Numbers:
    """Writes the arithmetic of one element type. Products are fused with sums where the machine can.

    They are so in the text, not by leave: the bits depend neither on the code around nor on LLVM's effort.
    """

    def __init__(self, f: Function, element: ElementType) -> None:
        self.f, self.is_complex = f, element.is_complex
        bits = element.component.bits
        self.part = "float" if bits == 32 else "double"
        self.kind = f"[2 x {self.part}]" if self.is_complex else self.part
        self._suffix, self._bytes = f"f{bits}", bits // 8

    # -- memory --------------------------------------------------------------------------------------------------------
    def load(self, place: str) -> Number:
        parts = range(2 if self.is_complex else 1)
        return tuple(self.f.load(self.part, self._at(place, n), align=self._bytes) for n in parts)

    def store(self, x: Number, place: str) -> None:
        for n, part in enumerate(x):
            self.f.store(self.part, part, self._at(place, n), align=self._bytes)

    def _at(self, place: str, n: int) -> str:
        return self.f.at(place, n, self.part) if n else place

    # -- arithmetic ----------------------------------------------------------------------------------------------------
    def _two(self, op: str, a: str, b: str) -> str:
        return self.f.value(f"{op} {self.part} {a}, {b}")

    def _plus_product(self, a: str, x: str, y: str) -> str:
        """``a + x * y``."""
        given = ", ".join(f"{self.part} {part}" for part in (x, y, a))
        return self.f.value(f"call {self.part} @llvm.fmuladd.{self._suffix}({given})")

    def _negative(self, a: str) -> str:
        return self.f.value(f"fneg {self.part} {a}")

    def widened(self, x: Number, wide: Numbers) -> Number:
        """`x` in a type of as many bits or more."""
        return self._converted("fpext", x, wide)

    def narrowed(self, x: Number, narrow: Numbers) -> Number:
        """`x` in a type of as many bits or fewer."""
        return self._converted("fptrunc", x, narrow)

    def _converted(self, op: str, x: Number, other: Numbers) -> Number:
        if self.part == other.part:
            return x
        return tuple(self.f.value(f"{op} {self.part} {part} to {other.part}") for part in x)

    def from_real(self, x: str) -> Number:
        return (x, ZERO) if self.is_complex else (x,)

    def conjugate(self, x: Number) -> Number:
        return (x[0], self._negative(x[1])) if self.is_complex else x

    def minus_product(self, a: Number, x: Number, y: Number) -> Number:
        """``a - x * y``."""
        x0 = self._negative(x[0])
        real = self._plus_product(a[0], x0, y[0])
        if not self.is_complex:
            return (real,)
        imaginary = self._plus_product(a[1], x0, y[1])
        return self._plus_product(real, x[1], y[1]), self._plus_product(imaginary, self._negative(x[1]), y[0])

    def over(self, a: Number, b: Number) -> Number:
        """``a / b``; of complex numbers by Smith's method, which squares nothing."""
        if not self.is_complex:
            return (self._two("fdiv", a[0], b[0]),)
        is_real = self.is_less(self._size(b[1]), self._size(b[0]))
        first, second = self._pick(is_real, b[0], b[1]), self._pick(is_real, b[1], b[0])
        x, y = self._pick(is_real, a[0], a[1]), self._pick(is_real, a[1], a[0])
        ratio = self._two("fdiv", second, first)
        whole = self._plus_product(first, second, ratio)
        real = self._two("fdiv", self._plus_product(x, y, ratio), whole)
        crossed = self._two("fdiv", self._plus_product(y, self._negative(x), ratio), whole)
        return real, self._pick(is_real, crossed, self._negative(crossed))

    def over_real(self, a: Number, b: str) -> Number:
        """``a / b`` of a real `b`."""
        return tuple(self._two("fdiv", part, b) for part in a)

    def root(self, a: str) -> str:
        """The square root of a real number; NaN of one below 0."""
        return self.f.value(f"call {self.part} @llvm.sqrt.{self._suffix}({self.part} {a})")

    def size(self, x: Number) -> str:
        """The magnitude that pivots are compared by: the sum of those of the parts."""
        sizes = [self._size(part) for part in x]
        return self._two("fadd", *sizes) if self.is_complex else sizes[0]

    def _size(self, part: str) -> str:
        return self.f.value(f"call {self.part} @llvm.fabs.{self._suffix}({self.part} {part})")

    def is_less(self, a: str, b: str) -> Value:
        """Whether ``a < b``; not so where one is NaN."""
        return self.f.op(f"fcmp olt {self.part} {a}, {b}", "i1")

    def is_zero(self, x: Number) -> Value:
        found = [self.f.op(f"fcmp oeq {self.part} {part}, {ZERO}", "i1") for part in x]
        return found[0] & found[1] if self.is_complex else found[0]

    def _pick(self, condition: str, yes: str, no: str) -> str:
        return self.f.select(condition, yes, no, self.part)

    def pick(self, condition: str, yes: Number, no: Number) -> Number:
        return tuple(self._pick(condition, a, b) for a, b in zip(yes, no, strict=True))
