"""Factorisations and triangular solves of one small matrix, as code: a call of LAPACK takes longer than the work.

Matrices of few rows are written out, element by element, with no branches. Larger ones are loops, the innermost ones
along what lies together, so that LLVM takes several elements at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from heron.codegen.llvm.text import Function
from heron.codegen.llvm.values import Value, Variable
from heron.codegen.native.small_numbers import ZERO, Number, Numbers
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
        """With the first of the largest elements of a column as pivot."""
        f, m, numbers = self.f, step.rows, Numbers(self.f, step.element)
        a, info = _Matrix(numbers, self.place(step.matrix.place), step.matrix), f.variable("i32", 0)
        is_flat = max(m, step.columns) <= _WRITTEN_OUT
        for k in self._each(0, min(m, step.columns), is_flat):
            row = self._pivot(a, k, m, is_flat)
            f.store("i32", (row + 1).cast("trunc", "i32"), f.at(self.place(step.pivots), k, "i32"))
            for j in self._each(0, step.columns, is_flat):
                upper, lower = a.get(k, j), a.get(row, j)
                a.set(k, j, lower)
                a.set(row, j, upper)
            pivot = a.get(k, k)
            is_zero = numbers.is_zero(pivot)
            self._note(info, is_zero, k)
            for i in self._each(k + 1, m, is_flat):
                x = a.get(i, k)
                a.set(i, k, numbers.pick(is_zero, x, numbers.over(x, pivot)))
            for j in self._each(k + 1, step.columns, is_flat):
                factor = a.get(k, j)
                for i in self._each(k + 1, m, is_flat):
                    a.set(i, j, numbers.minus_product(a.get(i, j), a.get(i, k), factor))
        f.store("i32", info.get(), self.place(step.info))

    def _pivot(self, a: _Matrix, k: Index, rows: int, is_flat: bool) -> Value:
        """The row of the pivot of column `k`."""
        f, numbers = self.f, a.numbers
        row, best = f.variable("i64", k), f.variable(numbers.part, numbers.size(a.get(k, k)))
        for i in self._each(k + 1, rows, is_flat):
            size = numbers.size(a.get(i, k))
            larger = numbers.is_less(best.get(), size)
            row.set(f.select(larger, i, row.get(), "i64"))
            best.set(f.select(larger, size, best.get(), numbers.part))
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
