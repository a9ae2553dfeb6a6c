"""Fragments: a few lines of JAX each, with the arrays they take at every size, and how exact they are.

A fragment's inputs are written as text, ``"f32[3,n] positive; s32[n] index"``: an element type, dimensions in terms of
the size ``n``, and the domain values are drawn from. Domains keep a fragment where its meaning is no accident: a sort
gets keys that differ, a root positive numbers, a gather indices that are mostly in range.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

#: sizes a fragment may be drawn at, as far as it allows: empty, 1, odd, prime, around powers of two
SIZES = (0, 1, 2, 3, 5, 7, 8, 13, 16, 17, 24, 31, 33, 37, 64, 129)
#: large sizes, for what is shared among threads, cut into blocks or summed in a tree, and how many elements its inputs
#: may have then
LARGE, _MOST_ELEMENTS = (1031, 4099, 16411, 65537), 500_000

DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2,
    "c64": np.complex64, "c128": np.complex128, "pred": np.bool_,
    "s4": ml_dtypes.int4, "u4": ml_dtypes.uint4, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
}  # fmt: skip
WIDE = ("f64", "c128", "s64", "u64")


@dataclass(frozen=True)
class Spec:
    """An input of a fragment: its type, its dimensions at a size, and the domain of its values."""

    type: str
    dims: tuple[int, ...]
    domain: str = ""

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(DTYPES[self.type])

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Random values of the domain."""
        values = DOMAINS[self.domain](rng, self)
        with np.errstate(over="ignore", invalid="ignore"):  # narrow types have no 1e30
            return np.asarray(values).astype(self.dtype)


def _plain(rng: np.random.Generator, s: Spec) -> Any:
    kind = s.dtype.kind
    if kind == "b":
        return rng.random(s.dims) < 0.5
    if kind == "c":
        return rng.normal(size=s.dims) + 1j * rng.normal(size=s.dims)
    if s.type.startswith("f") or s.type == "bf16":
        return rng.normal(size=s.dims)
    low, high = (0, 8) if s.type == "u4" else (-8, 8) if s.type == "s4" else (0, 50) if kind == "u" else (-25, 25)
    return rng.integers(low, high, s.dims)


def _distinct(rng: np.random.Generator, s: Spec) -> Any:
    """No two values equal, and far apart in units of rounding."""
    count = int(np.prod(s.dims))
    values = rng.permutation(count) - count // 2
    return (values.reshape(s.dims) + 0.25) / (max(count, 4) / 4) if s.dtype.kind in "fcV" else values.reshape(s.dims)


#: what functions and orders of floats differ on; subnormals are apart, XLA takes them as zero
_CORNERS = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.5, 3.0, 300.0, -65504.0, 1e30)


def _ends(rng: np.random.Generator, s: Spec) -> Any:
    """Integers at both ends of their type, and around 0."""
    wide = s.type not in ("s4", "u4")
    low, high = (np.iinfo(s.dtype).min, np.iinfo(s.dtype).max) if wide else (0, 15) if s.type == "u4" else (-8, 7)
    below = [] if low == 0 else [-1, -2, -5]
    choices = [low, low + 1, high, high - 1, high // 2, 0, 1, 2, 3, 7, *below]
    return np.array(choices, s.dtype)[rng.integers(0, len(choices), s.dims)]


DOMAINS: dict[str, Callable[[np.random.Generator, Spec], Any]] = {
    "": _plain,
    "positive": lambda rng, s: rng.uniform(0.5, 3, s.dims),
    "unit": lambda rng, s: rng.uniform(0.2, 0.8, s.dims),
    "small": lambda rng, s: rng.uniform(-0.8, 0.8, s.dims),
    "large": lambda rng, s: rng.uniform(5, 20, s.dims),
    "distinct": _distinct,
    "permutation": lambda rng, s: rng.permutation(s.dims[0]) if s.dims else 0,
    "index": lambda rng, s: rng.integers(0, 3, s.dims),
    "wild": lambda rng, s: rng.integers(-4, 9, s.dims),  # in and out of range
    "nonzero": lambda rng, s: rng.integers(1, 9, s.dims),
    "bits": lambda rng, s: rng.integers(0, 2 ** (8 * s.dtype.itemsize), s.dims, dtype=np.uint64),
    "shift": lambda rng, s: rng.integers(0, 8 * s.dtype.itemsize + 2, s.dims),
    "corners": lambda rng, s: rng.choice(np.array(_CORNERS), s.dims),
    "ends": _ends,
    "key": lambda rng, s: rng.integers(0, 2**32, s.dims, dtype=np.uint64),
}


@dataclass(frozen=True)
class Fragment:
    """A function of arrays in JAX.

    Attributes:
        name: unique in the library.
        takes: the inputs, as text.
        function: arrays to an array or a tree of arrays.
        least, most: the sizes it is drawn at.
        exact: outputs have one right answer to the last bit, from exact inputs.
        ulps: otherwise, how far in units of rounding of the largest element two right answers may be.
        mapped: it may be under `vmap`.
    """

    name: str
    takes: str
    function: Callable[..., Any]
    least: int = 1
    most: int = 129
    exact: bool = False
    ulps: float = 64
    mapped: bool = True
    family: str = ""

    @cached_property
    def _inputs(self) -> list[tuple[str, list[str], str]]:
        found = []
        for text in filter(None, (t.strip() for t in self.takes.split(";"))):
            match = re.fullmatch(r"(\w+)\[([^\]]*)\]\s*(\w*)", text)
            assert match and match[1] in DTYPES and match[3] in DOMAINS, f"{self.name}: {text}"
            found.append((match[1], [d for d in match[2].split(",") if d], match[3]))
        return found

    def inputs(self, n: int) -> list[Spec]:
        return [Spec(t, tuple([_dim(d, n) for d in dims]), domain) for t, dims, domain in self._inputs]

    @property
    def sizes(self) -> list[int]:
        return [n for n in SIZES if self.least <= n <= self.most]

    @property
    def large(self) -> list[int]:
        """The large sizes it may be drawn at: none where a size is said to be too much."""
        if self.most < SIZES[-1]:
            return []
        return [n for n in LARGE if sum(prod(s.dims) for s in self.inputs(n)) <= _MOST_ELEMENTS]

    @property
    def wide(self) -> bool:
        """It needs JAX's 64-bit types."""
        return any(t in WIDE for t, _, _ in self._inputs)


def _dim(text: str, n: int) -> int:
    return int(eval(text, {"__builtins__": {}}, {"n": n}))
