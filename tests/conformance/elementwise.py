"""Every elementwise op on the corners of every type it takes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from heron.hlo.ir import types
from tests.conformance import values
from tests.conformance.case import EXACT, Case, Closeness
from tests.conformance.values import ALL, COMPLEX, FLOATS, INTEGERS, NUMBERS

LOGICAL = ["pred", *INTEGERS]
FRACTIONS = FLOATS + COMPLEX


UNARY = {
    "abs": NUMBERS,
    "acos": FRACTIONS,
    "acosh": FRACTIONS,
    "asin": FRACTIONS,
    "asinh": FRACTIONS,
    "atanh": FRACTIONS,
    "cbrt": FLOATS,
    "ceil": FLOATS,
    "copy": ALL,
    "cosh": FRACTIONS,
    "cosine": FRACTIONS,
    "count-leading-zeros": INTEGERS,
    "erf": FLOATS,
    "exponential": FRACTIONS,
    "exponential-minus-one": FRACTIONS,
    "floor": FLOATS,
    "imag": FRACTIONS,
    "is-finite": FLOATS,
    "log": FRACTIONS,
    "log-plus-one": FRACTIONS,
    "logistic": FRACTIONS,
    "negate": NUMBERS,
    "not": LOGICAL,
    "popcnt": INTEGERS,
    "real": FRACTIONS,
    "round-nearest-afz": FLOATS,
    "round-nearest-even": FLOATS,
    "rsqrt": FRACTIONS,
    "sign": NUMBERS,
    "sine": FRACTIONS,
    "sinh": FRACTIONS,
    "sqrt": FRACTIONS,
    "tan": FRACTIONS,
    "tanh": FRACTIONS,
}
BINARY = {
    "add": ALL,
    "and": LOGICAL,
    "atan2": FRACTIONS,
    "complex": ["f32", "f64"],
    "divide": NUMBERS,
    "maximum": ALL,
    "minimum": ALL,
    "mulhi": INTEGERS,
    "multiply": ALL,
    "or": LOGICAL,
    "power": NUMBERS,
    "remainder": INTEGERS + FLOATS,
    "shift-left": INTEGERS,
    "shift-right-arithmetic": INTEGERS,
    "shift-right-logical": INTEGERS,
    "subtract": NUMBERS,
    "xor": LOGICAL,
}
DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")


@cache
def bounds() -> dict[str, dict[str, list[float]]]:
    """Op → type → by how many units in the last place XLA:CPU may be off, and by how much in any case."""
    return tomllib.loads(Path(__file__).with_name("ulps.toml").read_text())


def closeness(op: str, name: str) -> Closeness:
    if op == "copy":
        return Closeness(bits=True)
    found = bounds().get(op, {}).get(name)
    return Closeness(*found) if found else EXACT


def result_type(op: str, name: str) -> str:
    t = types.by_name(name)
    if op in ("is-finite", "compare"):
        return "pred"
    if op == "complex":
        return "c128" if name == "f64" else "c64"
    return t.component.name if op in ("abs", "real", "imag") else name


def case(op: str, name: str, operands: list[np.ndarray], label: str = "", attributes: str = "") -> Case:
    """The op on flat arrays of that type (a clamp or select of its own types too)."""
    kinds = ["pred" if op == "select" and n == 0 else name for n in range(len(operands))]
    n = operands[0].size
    lines = [f" p{k} = {kind}[{n}] parameter({k})" for k, kind in enumerate(kinds)]
    names = ", ".join(f"p{k}" for k in range(len(operands)))
    lines.append(f" ROOT r = {result_type(op, name)}[{n}] {op}({names}){attributes}")
    return Case(op, name, "\n".join(lines), operands, label, close=closeness(op, name))


def cases(full: bool = False, only: str = "") -> Iterator[Case]:
    """The cases of one op or of all; `full` adds all values of narrow types and many random ones."""
    for op, names in UNARY.items():
        for name in names if only in ("", op) else ():
            yield case(op, name, [unary_inputs(name, full)])
    for op, names in BINARY.items():
        for name in names if only in ("", op) else ():
            yield case(op, name, binary_inputs(name, full))
    for op, make in _OTHERS.items():
        for name in ALL if only in ("", op) else ():
            yield from make(name, full)


def unary_inputs(name: str, full: bool) -> np.ndarray:
    bits = types.by_name(name).bits
    if bits <= 8 or (full and bits == 16):
        return values.every(name)
    drawn = [values.scattered(name, 4000 if full else 60)]
    if name in FRACTIONS:
        drawn.append(values.moderate(name, 4000 if full else 60))
    return np.concatenate([values.corners(name), *drawn])


def binary_inputs(name: str, full: bool) -> list[np.ndarray]:
    bits = types.by_name(name).bits
    if full and bits <= 8:
        return values.grid(values.every(name), values.every(name))
    corners = values.corners(name)
    if name in COMPLEX:  # pairs of these are many
        corners = corners[:: 1 if full else 5]
    pairs = values.grid(corners, corners)
    count = 4000 if full else 60
    drawn = [values.scattered(name, count, seed) for seed in (1, 2)]
    if name in FRACTIONS:
        drawn = [np.concatenate([d, values.moderate(name, count, s)]) for s, d in enumerate(drawn)]
    return [np.concatenate([a, b]) for a, b in zip(pairs, drawn, strict=True)]


def _comparisons(name: str, full: bool) -> Iterator[Case]:
    operands = binary_inputs(name, full) if full else values.grid(_some(name, full), _some(name, full))
    for direction in ("EQ", "NE") if name in COMPLEX else DIRECTIONS:
        yield case("compare", name, operands, direction, f", direction={direction}")
        if name in FLOATS:
            attributes = f", direction={direction}, type=TOTALORDER"
            yield case("compare", name, operands, f"{direction} TOTALORDER", attributes)


def _selects(name: str, full: bool) -> Iterator[Case]:
    some = _some(name, full)
    yield case("select", name, values.grid(values.corners("pred"), some, some))


def _clamps(name: str, full: bool) -> Iterator[Case]:
    if name not in COMPLEX and name != "pred":
        some = _some(name, full)
        yield case("clamp", name, values.grid(some, some, some))


def _some(name: str, full: bool) -> np.ndarray:
    """Few enough corners for all pairs or triples of them."""
    corners = values.corners(name)
    return corners[:: 1 if full or corners.size < 24 else 1 + corners.size // 20]


_OTHERS = {"compare": _comparisons, "select": _selects, "clamp": _clamps}
