"""What full programs should give: values at some places of each output, so that a file of them is small.

They are the CPU's; of programs whose own types round much away, those of the same program in f64.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks import programs
from heron.cli import compare, values
from heron.hlo.text import parse


@dataclass(frozen=True)
class Bound:
    """How far values may be from those in f64, in parts of the largest: each, and the root of the mean square."""

    most: float
    mean: float

    def error(self, got: np.ndarray, exact: np.ndarray, largest: float) -> str:
        """What is wrong with values; empty when nothing is."""
        off = np.abs(got.astype(np.float64) - exact) / largest
        most, mean = float(off.max(initial=0)), float(np.sqrt((off**2).mean()))
        if most <= self.most and mean <= self.mean:
            return ""
        return f"off by up to {most:.3g} of the largest, {mean:.3g} in the mean; {self.most:g} and {self.mean:g} may be"


#: full programs whose values depend on the order of sums by more than their types' tolerances. The first rounds scores
#: and their gradients to bf16 in every step; the second sums gradients over a batch that nearly cancel. On the CPU they
#: are off by 1.6e-2 at most and 2.0e-3 in the mean at these places, and by 2.0e-5 and 3.6e-6
CLOSE = {"attention_bf16_grad": Bound(3e-2, 3e-3), "resnet_block_grad": Bound(5e-5, 7e-6)}
#: outputs that are right up to the signs of their rows, by program: R of a product Q R, which libraries choose
FREE_SIGNS = {"linalg_lapack": (1,)}
#: places looked at in an output; all of a smaller one
PLACES = 4096


@dataclass(frozen=True)
class Output:
    """An output: its dimensions, the largest magnitude in it, and its values at `places`."""

    dims: tuple[int, ...]
    largest: float
    values: np.ndarray

    @classmethod
    def of(cls, array: np.ndarray) -> Output:
        """What to keep of an output."""
        flat = np.ascontiguousarray(array).reshape(-1)
        return cls(array.shape, compare.magnitude(array), flat[places(flat.size)])

    def error(
        self, got: np.ndarray, rtol: float | None = None, atol: float | None = None, close: Bound | None = None
    ) -> str:
        """How an array differs from this output; empty when it is within the tolerances of ``heron run --expect``.

        ``close``: of an output in f64.
        """
        if got.shape != self.dims:
            return f"{list(got.shape)} instead of {list(self.dims)}"
        here = np.ascontiguousarray(got).reshape(-1)[places(got.size)]
        if close is not None:
            return close.error(here, self.values, self.largest)
        own_rtol, _ = compare.tolerances(self.values, rtol, atol)
        bound = own_rtol * self.largest if atol is None else atol
        found = compare.compare(0, here, self.values, own_rtol, bound)
        if found.ok:
            return ""
        return (
            f"{found.mismatches} of {here.size} values differ by up to {found.max_abs:.3g} ({found.actual}, expected "
            f"{found.expected}; the largest is {self.largest:.3g})"
        )


def places(size: int) -> np.ndarray:
    """Which elements are looked at: always the same ones of that size."""
    if size <= PLACES:
        return np.arange(size)
    return np.unique(np.random.default_rng(size).integers(0, size, PLACES))


def inputs(name: str) -> list[np.ndarray]:
    """The arguments full programs are tried on."""
    return values.random(parse(programs.path(name, platform="cuda").read_text()), 0)


def settled(name: str, found: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A program's outputs with all that a library may choose chosen alike: the diagonal of R is not negative."""
    free = FREE_SIGNS.get(name, ())
    return [_positive(a) if n in free else a for n, a in enumerate(found)]


def _positive(r: np.ndarray) -> np.ndarray:
    return r * np.where(np.diagonal(r) < 0, -1, 1).astype(r.dtype)[:, None]


def outputs(name: str, arrays: list[np.ndarray]) -> list[Output]:
    """What the full program gives on the CPU, or would in f64. Raises what its compile raises."""
    import heron

    text = programs.path(name, platform="cuda").read_text()
    if name in CLOSE:
        text, arrays = in_f64(text, arrays)
    return [Output.of(a) for a in settled(name, heron.compile(parse(text)).run(arrays))]


def in_f64(text: str, arrays: list[np.ndarray]) -> tuple[str, list[np.ndarray]]:
    """A program and its arguments with all floats in f64."""
    return re.sub(r"\b(bf16|f16|f32)\[", "f64[", text), [
        a.astype(np.float64) if a.dtype.kind == "f" or a.dtype.name == "bfloat16" else a for a in arrays
    ]


def write(path: str, found: list[Output]) -> None:
    """Keep them in a file."""
    facts = [np.array([o.largest, *o.dims]) for o in found]
    values.write(path, facts, [o.values for o in found])


def read(path: str) -> list[Output]:
    """What `write` wrote."""
    held = values.read(path)
    return [
        Output(tuple(int(n) for n in facts[1:]), float(facts[0]), array)
        for facts, array in zip(held.inputs, held.outputs, strict=True)
    ]
