"""Cases: one program of one op, at sizes where code that computes it changes its way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from heron.hlo.ir import types

#: sizes where kernels, panels, vectors and blocks begin or end: none, one, around powers of two, odd, prime
EDGES = (0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 257, 509, 1021)
#: the same along one dimension, larger
LONG = (*EDGES, 4095, 4096, 4097, 8191, 16411, 65537, 262147)


@dataclass(frozen=True)
class Case:
    """One program.

    Attributes:
        family: the table's row.
        label: tells the cases of a family apart.
        text: the module. Its parameters get the arrays of `inputs`.
        inputs: makes the parameters' arrays from a generator of random numbers.
        error: how far a float may be from the evaluator's value, in units of the result type's precision at the
            largest magnitude of the result; 0: equal.
        work: about how many elements are touched; the simulator does small cases alone.
    """

    family: str
    label: str
    text: str
    inputs: Callable[[np.random.Generator], list[np.ndarray]]
    error: float = 0.0
    work: int = 0

    @property
    def name(self) -> str:
        return f"{self.family} {self.label}"


def shape(t: str, dims: Sequence[int], order: Sequence[int] | None = None) -> str:
    """HLO text of an array's shape; `order` has dimensions from the fastest to the slowest (row-major when None)."""
    if not dims:
        return f"{t}[]"
    order = range(len(dims))[::-1] if order is None else order
    return f"{t}[{','.join(map(str, dims))}]{{{','.join(map(str, order))}}}"


def program(operands: Sequence[str], result: str, op: str, before: str = "") -> str:
    """A module whose entry is `op` on parameters p0, p1, … of the given shapes."""
    lines = [f"p{n} = {s} parameter({n})" for n, s in enumerate(operands)]
    return "\n".join(["HloModule m", before, "ENTRY e {", *lines, f"ROOT r = {result} {op}", "}", ""])


def reducer(opcode: str, t: str) -> str:
    """A computation of two scalars."""
    return f"f {{\na = {t}[] parameter(0)\nb = {t}[] parameter(1)\nROOT r = {t}[] {opcode}(a, b)\n}}"


def least(t: str) -> str:
    """The least number of a type, as HLO text."""
    if types.by_name(t).is_float:
        return "-inf"
    return "0" if t.startswith("u") else str(-(1 << (int(t[1:]) - 1)))


def whole(t: str, dims: Sequence[int], low: int = -2, high: int = 2) -> Callable[[np.random.Generator], np.ndarray]:
    """Small whole numbers, most of them 0, 1 and -1: their sums and products are exact in every type."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        dtype = types.by_name(t).dtype
        values = rng.integers(low, high + 1, size=tuple(dims)) * rng.integers(0, 2, size=tuple(dims))
        if t.startswith("u") or t == "pred":
            values = np.abs(values)
        if t == "pred":
            values = values % 2
        if t.startswith("c"):
            values = values + 1j * rng.integers(-1, 2, size=tuple(dims))
        return values.astype(dtype)

    return draw


def varied(t: str, dims: Sequence[int]) -> Callable[[np.random.Generator], np.ndarray]:
    """Numbers that differ from each other wherever the type has so many."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        kind, n = types.by_name(t), math.prod(dims)
        if kind.is_float or kind.is_complex:
            values = rng.permutation(n).astype(np.float64) / max(n, 1) * 8 - 4
            return (values + (1j * values[::-1] if kind.is_complex else 0)).reshape(tuple(dims)).astype(kind.dtype)
        if t == "pred":
            return rng.integers(0, 2, size=tuple(dims)).astype(bool)
        span = 1 << (kind.bits - 1)
        low, high = (0, 2 * span) if t.startswith("u") else (-span, span)
        bits = rng.integers(
            low, high, size=n, dtype=np.int64 if low < 0 or kind.bits < 64 else np.uint64, endpoint=False
        )
        return bits.reshape(tuple(dims)).astype(kind.dtype)

    return draw


def together(*draws: Callable[[np.random.Generator], np.ndarray]) -> Callable[[np.random.Generator], list[np.ndarray]]:
    """What several parameters get."""
    return lambda rng: [draw(rng) for draw in draws]
