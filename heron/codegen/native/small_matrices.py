"""Factorisations and triangular solves of one small matrix, as code: a call of LAPACK takes longer than the work.

Matrices of few rows are written out, element by element, with no branches. Larger ones are loops, the innermost ones
along what lies together, so that LLVM takes several elements at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from heron.codegen.llvm.text import Function
from heron.codegen.llvm.values import Value, Variable
from heron.codegen.native.small_numbers import ZERO, Number, Numbers
from heron.hlo.ir.types import C128, F64
from heron.runtime.fortran import Place, SmallCholesky, SmallLu, SmallSolve, Strided

#: rows of matrices that are written out
_WRITTEN_OUT = 4

Index = int | Value


class _Matrix:
    """A matrix in memory."""

    def __init__(self, numbers: Numbers, base: str, m: Strided) -> None:
        self.numbers, self.base, self.m = numbers, base, m

    def get(self, row: Index, column: Index) -> Number:
        return self.numbers.load(self._at(row, column))

    def set(self, row: Index, column: Index, x: Number) -> None:
        self.numbers.store(x, self._at(row, column))

    def _at(self, row: Index, column: Index) -> Value:
        down, across = row * self.m.down, column * self.m.across
        offset = across + down if isinstance(across, Value) else down + across
        return self.numbers.f.at(self.base, offset, self.numbers.kind)


class _Column:
    """A column of a matrix at work: its numbers in f64, in memory of the function's own."""

    def __init__(self, a: _Matrix, rows: int) -> None:
        self.a, self.rows, f = a, rows, a.numbers.f
        self.wide = Numbers(f, C128 if a.numbers.is_complex else F64)
        self._base = f.slot(f"[{rows} x {self.wide.kind}]")

    def get(self, row: Index) -> Number:
        return self.wide.load(self._at(row))

    def set(self, row: Index, x: Number) -> None:
        self.wide.store(x, self._at(row))

    def of(self, row: Index, column: Index) -> Number:
        """An element of the matrix, in f64."""
        return self.a.numbers.widened(self.a.get(row, column), self.wide)

    def bring(self, row: Index, column: Index) -> None:
        """Take an element from the matrix."""
        self.set(row, self.of(row, column))

    def put(self, row: Index, column: Index) -> None:
        """Give an element to the matrix."""
        self.a.set(row, column, self.wide.narrowed(self.get(row), self.a.numbers))

    def _at(self, row: Index) -> Value:
        return self.a.numbers.f.at(self._base, row, self.wide.kind)


class SmallMatrices:
    """Writes the steps into a function; ``place`` gives the address of a place."""

    def __init__(self, f: Function, place: Callable[[Place], str]) -> None:
        self.f, self.place = f, place

    # -- steps ---------------------------------------------------------------------------------------------------------
    def cholesky(self, step: SmallCholesky) -> None:
        """Column by column, from what is to the left of it taken away to the division by the root of its pivot."""
        f, n, numbers = self.f, step.n, Numbers(self.f, step.element)
        a, info = _Matrix(numbers, self.place(step.matrix.place), step.matrix), f.variable("i32", 0)
        is_flat = n <= _WRITTEN_OUT
        for k in self._each(0, n, is_flat):
            pivot = a.get(k, k)[0]
            good = numbers.is_less(ZERO, pivot)
            self._note(info, ~good, k)
            root = numbers.root(pivot)
            a.set(k, k, numbers.from_real(root))
            for i in self._each(k + 1, n, is_flat):
                a.set(i, k, numbers.over_real(a.get(i, k), root))
            for j in self._each(k + 1, n, is_flat):
                factor = numbers.conjugate(a.get(j, k))
                for i in self._each(j, n, is_flat):
                    a.set(i, j, numbers.minus_product(a.get(i, j), a.get(i, k), factor))
        f.store("i32", info.get(), self.place(step.info))

    def lu(self, step: SmallLu) -> None:
        """Column by column, with the first of the largest elements as pivot.

        A column is held in f64 until it is done, whatever the matrix has: each factor is rounded once.
        """
        f, m, numbers = self.f, step.rows, Numbers(self.f, step.element)
        a, info = _Matrix(numbers, self.place(step.matrix.place), step.matrix), f.variable("i32", 0)
        short = min(m, step.columns)
        is_flat = max(m, step.columns) <= _WRITTEN_OUT
        column = _Column(a, m)
        for j in self._each(0, short, is_flat):
            self._subtract(column, j, j, is_flat)
            row = self._pivot(column, j, m, is_flat)
            f.store("i32", (row + 1).cast("trunc", "i32"), f.at(self.place(step.pivots), j, "i32"))
            for other in self._each(0, step.columns, is_flat):
                upper, lower = a.get(j, other), a.get(row, other)
                a.set(j, other, lower)
                a.set(row, other, upper)
            pivot, lower = column.get(row), column.get(j)
            column.set(row, lower)
            column.set(j, pivot)
            is_zero = numbers.is_zero(column.wide.narrowed(pivot, numbers))
            self._note(info, is_zero, j)
            for i in self._each(j + 1, m, is_flat):
                x = column.get(i)
                column.set(i, column.wide.pick(is_zero, x, column.wide.over(x, pivot)))
            for i in self._each(0, m, is_flat):
                column.put(i, j)
        for j in self._each(short, step.columns, is_flat):
            self._subtract(column, j, m, is_flat)
            for i in self._each(0, m, is_flat):
                column.put(i, j)
        f.store("i32", info.get(), self.place(step.info))

    def _subtract(self, column: _Column, j: Index, stop: Index, is_flat: bool) -> None:
        """Bring column `j`, and take from it what the `stop` columns to its left have of it."""
        for i in self._each(0, column.rows, is_flat):
            column.bring(i, j)
        for k in self._each(0, stop, is_flat):
            factor = column.get(k)
            for i in self._each(k + 1, column.rows, is_flat):
                column.set(i, column.wide.minus_product(column.get(i), column.of(i, k), factor))

    def _pivot(self, column: _Column, k: Index, rows: int, is_flat: bool) -> Value:
        """The row of the pivot of column `k`, by magnitudes in the type of the matrix."""
        f, numbers = self.f, column.a.numbers

        def size(i: Index) -> str:
            return numbers.size(column.wide.narrowed(column.get(i), numbers))

        row, best = f.variable("i64", k), f.variable(numbers.part, size(k))
        for i in self._each(k + 1, rows, is_flat):
            found = size(i)
            larger = numbers.is_less(best.get(), found)
            row.set(f.select(larger, i, row.get(), "i64"))
            best.set(f.select(larger, found, best.get(), numbers.part))
        return row.get()

    def solve(self, step: SmallSolve) -> None:
        """An element of x at a time, which is then taken away from those that depend on it."""
        numbers = Numbers(self.f, step.element)
        a = _Matrix(numbers, self.place(step.a.place), step.a)
        x = _Matrix(numbers, self.place(step.right.place), step.right)
        n, is_flat = step.n, step.n <= _WRITTEN_OUT
        by_rows = step.right.across == 1 and step.columns > 1

        def columns(within: bool) -> Iterator[Index]:
            if within == by_rows:
                yield from self._each(0, step.columns, is_flat and step.columns <= _WRITTEN_OUT)
            else:
                yield 0

        def factor(row: Index, column: Index) -> Number:
            found = a.get(row, column)
            return numbers.conjugate(found) if step.conjugate else found

        for outer in columns(False):
            for k in self._each(0, n, is_flat):
                row = k if step.lower else (n - 1) - k
                if not step.unit_diagonal:
                    pivot = factor(row, row)
                    for inner in columns(True):
                        c = inner if by_rows else outer
                        x.set(row, c, numbers.over(x.get(row, c), pivot))
                for i in self._each(*((k + 1, n) if step.lower else (0, row)), is_flat):
                    element = factor(i, row)
                    for inner in columns(True):
                        c = inner if by_rows else outer
                        x.set(i, c, numbers.minus_product(x.get(i, c), x.get(row, c), element))

    # -- pieces --------------------------------------------------------------------------------------------------------
    def _each(self, start: Index, stop: Index, is_flat: bool) -> Iterator[Index]:
        """The numbers from `start` to `stop`, written out or as the counter of a loop around what follows."""
        if is_flat:
            assert isinstance(start, int) and isinstance(stop, int)
            yield from range(start, stop)
            return
        with self.f.loop(start, stop) as n:
            yield n

    def _note(self, info: Variable, failed: Value, k: Index) -> None:
        """Remember the number of the first step that failed."""
        f = self.f
        number = k + 1 if isinstance(k, int) else (k + 1).cast("trunc", "i32")
        first = failed & info.get().eq(0)
        info.set(f.select(first, number, info.get(), "i32"))
