"""The writer of the inline library's functions: Python expressions that append LLVM instructions.

Every function of the library is branch-free straight-line code in one basic block, marked ``alwaysinline``: LLVM
inlines it before its loop vectoriser runs, so a loop over ``heron.tanh.f32`` becomes 512-bit code.
No fast-math flag is ever set: the error bounds rely on every operation rounding as written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from heron.codegen.llvm import values
from heron.codegen.llvm.text import Function
from heron.records import dataclass

LLVM_TYPES = {
    "f32": "float", "f64": "double", "f16": "half", "bf16": "bfloat",
    "i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Format:
    """A binary float format: mantissa bits (without the hidden one), exponent bias, same-sized integer."""

    name: str
    mantissa: int
    bias: int
    integer: str

    @property
    def width(self) -> int:
        return int(self.integer[1:])


F32 = Format("f32", 23, 127, "i32")
F64 = Format("f64", 52, 1023, "i64")
FORMATS = {"f32": F32, "f64": F64}

Number = float | int

#: coefficients from which on a polynomial is evaluated in two halves
SHORT_POLYNOMIAL = 5


#: instructions on floats where those on integers have other names
_OF_FLOATS = {
    "add": "fadd", "sub": "fsub", "mul": "fmul", "sdiv": "fdiv", "icmp eq": "fcmp oeq", "icmp ne": "fcmp une",
    "icmp slt": "fcmp olt", "icmp sle": "fcmp ole", "icmp sgt": "fcmp ogt", "icmp sge": "fcmp oge",
}  # fmt: skip


class Value(values.Value):
    """A number of a library function. Plain numbers become constants of the same type; ``>>`` is arithmetic."""

    @property
    def is_float(self) -> bool:
        return "f" in self.type

    @property
    def format(self) -> Format:
        return FORMATS[self.type]

    def _two(self, op: str, a: Any, b: Any, type_: str = "") -> Value:
        a, b = (self.function.constant(x, self.type) for x in (a, b))
        name = _OF_FLOATS.get(op, op) if self.is_float else op
        return self.function.op(f"{name} {LLVM_TYPES[self.type]} {a}, {b}", type_ or self.type)

    def __radd__(self, other: Number) -> Value:
        return self + other

    def __rmul__(self, other: Number) -> Value:
        return self * other

    def __truediv__(self, other: Value | Number) -> Value:
        return self._two("sdiv", self, other)

    def __rtruediv__(self, other: Number) -> Value:
        return self._two("sdiv", other, self)

    def __neg__(self) -> Value:
        if self.is_float:
            return self.function.op(f"fneg {LLVM_TYPES[self.type]} {self}", self.type)
        return self._two("sub", 0, self)

    def __rshift__(self, other: Value | int) -> Value:
        return self._two("ashr", self, other)

    def shr(self, other: Value | int) -> Value:
        """Logical shift."""
        return self._two("lshr", self, other)

    def __lt__(self, other: Value | Number) -> Value:
        return self._two("icmp slt", self, other, "i1")

    def __le__(self, other: Value | Number) -> Value:
        return self._two("icmp sle", self, other, "i1")

    def __gt__(self, other: Value | Number) -> Value:
        return self._two("icmp sgt", self, other, "i1")

    def __ge__(self, other: Value | Number) -> Value:
        return self._two("icmp sge", self, other, "i1")

    def is_nan(self) -> Value:
        return self._two("fcmp uno", self, self, "i1")

    def _unary(self, intrinsic: str) -> Value:
        return self.function.intrinsic(intrinsic, self.type, self)

    def abs(self) -> Value:
        return self._unary("fabs")

    def sqrt(self) -> Value:
        return self._unary("sqrt")

    def rint(self) -> Value:
        return self._unary("roundeven")

    def trunc(self) -> Value:
        return self._unary("trunc")

    def copysign(self, sign: Value | Number) -> Value:
        return self.function.intrinsic("copysign", self.type, self, self.function.constant(sign, self.type))

    def bits(self) -> Value:
        """The same bits as an integer."""
        return self.cast("bitcast", f"i{LLVM_BITS[self.type]}")

    def as_float(self, type_: str) -> Value:
        """The same bits as a float."""
        return self.cast("bitcast", type_)

    def cast(self, kind: str, type_: str) -> Value:
        return self.function.op(f"{kind} {LLVM_TYPES[self.type]} {self} to {LLVM_TYPES[type_]}", type_)

    def extend(self, type_: str = "f64") -> Value:
        return self.cast("fpext", type_)

    def narrow(self, type_: str = "f32") -> Value:
        return self.cast("fptrunc", type_)


LLVM_BITS = {"f32": 32, "f64": 64, "f16": 16, "bf16": 16, "i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


class Body(Function):
    """The instructions of one function being written. ``globals``: tables it needs, by name. ``usual``: only those
    that arguments within the function's usual range need. ``scales``: for a machine with an instruction that multiplies
    by a power of two."""

    def __init__(self, usual: bool = False, scales: bool = False) -> None:
        super().__init__()
        self.globals: dict[str, str] = {}
        self.usual, self.scales = usual, scales

    def name(self, hint: str) -> str:
        return f"%t{len(self.lines)}"

    def op(self, text: str, type_: str) -> Value:
        return Value(self.value(text), type_, self)

    def constant(self, item: Value | Number, type_: str) -> Value:
        return item if isinstance(item, Value) else Value(literal(item, type_), type_, self)

    def intrinsic(self, name: str, type_: str, *operands: Value) -> Value:
        text = LLVM_TYPES[type_]
        return self.op(f"call {text} @llvm.{name}.{type_}({', '.join(f'{text} {v}' for v in operands)})", type_)

    def fma(self, a: Value, b: Value | Number, c: Value | Number) -> Value:
        """a*b + c rounded once."""
        return self.intrinsic("fma", a.type, a, self.constant(b, a.type), self.constant(c, a.type))

    def select(self, condition: str, yes: Value | Number, no: Value | Number, type_: str = "") -> Value:
        type_ = type_ or next((v.type for v in (yes, no) if isinstance(v, Value)), "f64")
        x, y = self.constant(yes, type_), self.constant(no, type_)
        text = LLVM_TYPES[type_]
        return self.op(f"select i1 {condition}, {text} {x}, {text} {y}", type_)

    def at_most(self, x: Value, bound: Number) -> Value:
        """min(x, bound); NaN stays NaN."""
        return self.select(x > bound, bound, x)

    def at_least(self, x: Value, bound: Number) -> Value:
        """max(x, bound); NaN stays NaN."""
        return self.select(x < bound, bound, x)

    def both(self, a: Value, b: Value) -> Value:
        return self.op(f"and i1 {a}, {b}", "i1")

    def either(self, a: Value, b: Value) -> Value:
        return self.op(f"or i1 {a}, {b}", "i1")

    def invert(self, a: Value) -> Value:
        return self.op(f"xor i1 {a}, true", "i1")

    def poly(self, x: Value, coefficients: Sequence[float]) -> Value:
        """c0 + c1 x + c2 x² + … by Horner with fma; of many terms the even and the odd ones apart, so that fewer wait
        for each other."""
        if len(coefficients) < SHORT_POLYNOMIAL:
            return self._horner(x, coefficients)
        square = x * x
        return self.fma(self._horner(square, coefficients[1::2]), x, self._horner(square, coefficients[::2]))

    def _horner(self, x: Value, coefficients: Sequence[float]) -> Value:
        result = self.constant(coefficients[-1], x.type)
        for c in reversed(coefficients[:-1]):
            result = self.fma(result if result[0] == "%" else x, x if result[0] == "%" else result, c)
        return result

    def two_sum(self, a: Value, b: Value | Number) -> tuple[Value, Value]:
        """a + b as (rounded, exact error)."""
        b = self.constant(b, a.type)
        s = a + b
        t = s - a
        return s, (a - (s - t)) + (b - t)

    def fast_two_sum(self, a: Value, b: Value) -> tuple[Value, Value]:
        """a + b as (rounded, exact error), given |a| >= |b|."""
        s = a + b
        return s, b - (s - a)

    def two_prod(self, a: Value, b: Value | Number) -> tuple[Value, Value]:
        """a * b as (rounded, exact error)."""
        b = self.constant(b, a.type)
        p = a * b
        return p, self.fma(a, b, -p)

    def round_to_int(self, x: Value, factor: float = 1.0) -> tuple[Value, Value]:
        """x·factor rounded to an integer, as (integer of the same width, float). Needs |x·factor| < 2^(mantissa-2).

        Adding 1.5·2^mantissa leaves the integer in the low bits of the sum.
        """
        magic = 1.5 * 2.0**x.format.mantissa
        shifted = x + magic if factor == 1.0 else self.fma(x, factor, magic)
        n = shifted - magic
        return shifted.bits() - int_bits(magic, x.type), n

    def pow2(self, n: Value, type_: str) -> Value:
        """2^n for an integer n in the normal exponent range."""
        f = FORMATS[type_]
        return ((n + f.bias) << f.mantissa).as_float(type_)

    def scale(self, x: Value, n: Value) -> Value:
        """x·2^n for n in about twice the exponent range: two multiplications, so that denormals round once."""
        half = n >> 1
        return x * self.pow2(half, x.type) * self.pow2(n - half, x.type)

    def scale_positive(self, x: Value, n: Value) -> Value:
        """As `scale` for x near 1 and n from the exponent on that makes it 0, to which masks of a softmax lead.

        AVX-512 has an instruction for it. Other arithmetic that underflows costs some machines a trap of a hundred
        cycles. So the second factor of that lowest exponent is 0 itself: the bits of its own exponent are.
        """
        if self.scales:
            one, whole = LLVM_TYPES[x.type], LLVM_TYPES[n.type]
            return self.op(f"call {one} @llvm.ldexp.{x.type}.{n.type}({one} {x}, {whole} {n})", x.type)
        f = FORMATS[x.type]
        lowest = f.bias + f.mantissa + 1
        both = n + lowest
        half = both.shr(1)
        first = ((half + (2 * f.bias - lowest)) << f.mantissa).as_float(x.type)
        return x * first * ((both - half) << f.mantissa).as_float(x.type)


def int_bits(value: float, type_: str) -> int:
    """The bits of a float constant as a signed integer."""
    if type_ == "f64":
        return struct.unpack(">q", struct.pack(">d", value))[0]
    return struct.unpack(">i", struct.pack(">f", value))[0]


def literal(value: Number, type_: str) -> str:
    """A constant as LLVM text."""
    if type_ == "i1":
        return "true" if value else "false"
    if type_.startswith("i"):
        return str(int(value))
    if type_ == "f64":
        return "0x" + struct.pack(">d", value).hex().upper()
    if type_ == "f32":
        return "0x" + struct.pack(">d", float(np.float32(value))).hex().upper()
    dtype, letter = (np.float16, "H") if type_ == "f16" else (ml_dtypes.bfloat16, "R")
    return f"0x{letter}{int(np.array(value).astype(dtype).view(np.uint16)):04X}"


Build = Callable[..., Value]


@dataclass(frozen=True, slots=True)
class Definition:
    """One library function: argument types, result type, the Python function that builds its body.

    ``usual``: arguments of a smaller magnitude need only a part of the body, if there is such a range.
    """

    name: str
    arguments: tuple[str, ...]
    result: str
    build: Build
    usual: float | None = None

    def text(self, usual: bool = False, scales: bool = False) -> tuple[str, dict[str, str]]:
        """(function text, globals it needs); with ``usual`` the function ``NAME.usual``, for its usual range alone.
        ``scales``: see `Body`."""
        body = Body(usual, scales)
        given = [Value(f"%a{i}", t, body) for i, t in enumerate(self.arguments)]
        result = self.build(body, *given)
        arguments = ", ".join(f"{LLVM_TYPES[v.type]} {v}" for v in given)
        name = f"{self.name}.usual" if usual else self.name
        head = f"define internal {LLVM_TYPES[self.result]} @{name}({arguments}) alwaysinline nounwind {{"
        tail = f"  ret {LLVM_TYPES[self.result]} {result}"
        return "\n".join([head, *body.lines, tail, "}"]), body.globals


REGISTRY: dict[str, Definition] = {}


def inline(
    name: str, arity: int = 1, types: Sequence[str] = ("f32", "f64"), usual: Mapping[str, float] | None = None
) -> Callable[[Build], Build]:
    """Register a float function as ``heron.NAME.TYPE`` for each type, with the end of its usual range."""

    def register(build: Build) -> Build:
        for t in types:
            full = f"heron.{name}.{t}"
            REGISTRY[full] = Definition(full, (t,) * arity, t, build, usual[t] if usual else None)
        return build

    return register
