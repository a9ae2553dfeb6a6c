"""Steps beside a routine of LAPACK, on matrices of any size: code that programs share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from heron.codegen.llvm.code_cache import CodeCache
from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value
from heron.codegen.native import common_code
from heron.hlo.ir.types import ElementType
from heron.records import dataclass

#: rows and columns that are turned together
_SQUARE = 16
#: the parameters of what is done to a factorised matrix
_TRIANGLE = "ptr %matrix, ptr %info, i64 %n"


@dataclass(frozen=True, slots=True)
class Shared:
    """A function that programs call. ``parameters``: with their names, as in ``ptr %matrix, i64 %n``."""

    symbol: str
    parameters: str
    body: Callable[[Function], None]

    @property
    def signature(self) -> str:
        """Its name with the types of its result and its arguments."""
        kinds = [parameter.split()[0] for parameter in self.parameters.split(", ")]
        return f"void @{self.symbol}({', '.join(kinds)})"

    def make(self, cache: CodeCache | None) -> int:
        """Its address, once it is compiled or found in a cache."""
        return common_code.address_of(self.symbol, self._text, cache=cache, level=3)

    def _text(self) -> str:
        module = Module()
        with module.function(f"void @{self.symbol}({self.parameters}) nounwind") as f:
            self.body(f)
        return module.text()


def turn(element: ElementType) -> Shared:
    """Copies a matrix of ``down`` by ``across`` elements as its transpose."""
    parameters = "ptr %origin, ptr %target, i64 %down, i64 %across"
    return Shared(f"heron_turn_{element.name}", parameters, partial(_turn, element))


def pivots(element: ElementType) -> Shared:
    """Checks the ``n`` pivots of a factorisation for NaN, see `fortran.Pivots`."""
    return Shared(f"heron_pivots_{element.name}", _TRIANGLE, partial(_pivots, element))


def factored(element: ElementType, above: bool) -> Shared:
    """Leaves one triangle of a matrix of ``n`` rows, see `fortran.Factored`."""
    name = f"heron_factored_{'above' if above else 'below'}_{element.name}"
    return Shared(name, _TRIANGLE, partial(_factored, element, above))


def paired(element: ElementType) -> Shared:
    """Complex vectors out of a real routine's, see `fortran.Paired`. ``down``, ``across``: complex numbers from a row
    of the result to the next, and from a column."""
    parameters = "ptr %vectors, ptr %imaginary, ptr %target, i64 %n, i64 %down, i64 %across"
    return Shared(f"heron_paired_{element.name}", parameters, partial(_paired, element))


def finite(element: ElementType) -> Shared:
    """Puts 0 at ``info`` if the ``n`` real numbers of a matrix are finite, else -4."""
    return Shared(f"heron_finite_{element.component.name}", _TRIANGLE, partial(_finite, element))


def _turn(element: ElementType, f: Function) -> None:
    """Square by square, so that lines of both matrices stay in a cache."""
    origin, target, down, across = f.arguments
    kind, align = f"i{element.bits}", element.component.byte_size
    with f.loop(0, down, _SQUARE) as i0, f.loop(0, across, _SQUARE) as j0:
        with f.loop(i0, f.least(i0 + _SQUARE, down)) as i, f.loop(j0, f.least(j0 + _SQUARE, across)) as j:
            value = f.load(kind, f.at(origin, i + j * down, kind), align=align)
            f.store(kind, value, f.at(target, j + i * across, kind), align=align)


def _pivots(element: ElementType, f: Function) -> None:
    matrix, info, n = f.arguments
    kind = _part(element)
    parts = element.byte_size // element.component.byte_size

    def is_nan(k: Value) -> Value:
        pivot = f.load(kind, f.at(matrix, k * (n + 1) * parts, kind))
        return f.op(f"fcmp uno {kind} {pivot}, {pivot}", "i1")

    # what a NaN gets into ends in the last pivot
    with f.when(f.load("i32", info).eq(0) & is_nan(n - 1)), f.loop(0, n) as from_last:
        k = (n - 1) - from_last
        with f.when(is_nan(k)):
            f.store("i32", (k + 1).cast("trunc", "i32"), info)


def _factored(element: ElementType, above: bool, f: Function) -> None:
    matrix, info, n = f.arguments
    size, kind = element.byte_size, _part(element)
    good, bad = f.fork(f.load("i32", info).eq(0))
    with good, f.loop(0, n) as column:
        start = column * n * size
        if above:
            f.fill(f.at(matrix, start, "i8"), 0, column * size)
        else:
            below = column + 1
            f.fill(f.at(matrix, start + below * size, "i8"), 0, (n - below) * size)
    parts = size // element.component.byte_size
    with bad, f.loop(0, n * n) as k:  # of a complex number the real part alone, as a real NaN is written as one
        for part, value in enumerate(("0x7FF8000000000000", "0.0")[:parts]):
            f.store(kind, value, f.at(matrix, k * parts + part, kind))


def _paired(element: ElementType, f: Function) -> None:
    vectors, imaginary, target, n, down, across = f.arguments
    kind = _part(element)

    def put(row: Value, column: Value, *parts: Value) -> None:
        place = f.at(target, (row * down + column * across) * 2, kind)
        for k, part in enumerate(parts):
            f.store(kind, part, f.at(place, k, kind))

    column = f.variable("i64", 0)
    with f.repeat() as each:
        k = column.get()
        with f.when(k.reaches(n)):
            each.leave()
        first = f.at(vectors, k * n, kind)
        part = f.load(kind, f.at(imaginary, k, kind))
        pair, single = f.fork(f.op(f"fcmp ogt {kind} {part}, 0.0", "i1") & (k + 1).below(n))
        with pair:
            with f.loop(0, n) as row:
                real, other = (f.load(kind, f.at(first, place, kind)) for place in (row, row + n))
                put(row, k, real, other)
                put(row, k + 1, real, f.op(f"fneg {kind} {other}", kind))
            column.set(k + 2)
        with single:
            with f.loop(0, n) as row:
                put(row, k, f.load(kind, f.at(first, row, kind)), Value("0.0", kind, f))
            column.set(k + 1)


def _finite(element: ElementType, f: Function) -> None:
    matrix, info, n = f.arguments
    kind = _part(element)
    sum_ = f.variable(kind, "0.0")
    with f.loop(0, n) as k:  # 0 times a number is 0 if it is finite, else NaN
        product = f.op(f"fmul {kind} {f.load(kind, f.at(matrix, k, kind))}, 0.0", kind)
        sum_.set(f.op(f"fadd reassoc {kind} {sum_.get()}, {product}", kind))
    is_finite = f.op(f"fcmp ord {kind} {sum_.get()}, {sum_.get()}", "i1")
    f.store("i32", f.select(is_finite, 0, -4, "i32"), info)


def _part(element: ElementType) -> str:
    return "float" if element.component.bits == 32 else "double"
