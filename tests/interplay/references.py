"""What a joint program must give: its parts run one by one, each as a program of its own, by XLA on the CPU.

`Stepwise` carries the joins out in Python. With a generator it also moves every inexact input of every part by a unit
of rounding, up or down: how far results then spread is how well the question was posed, whoever answers it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from tests.interplay.fragment import Fragment
from tests.interplay.joins import Arrays, Function
from tests.interplay.program import Program
from tests.xla_cpu import QUICK, run_stablehlo


def stepwise(program: Program, inputs: Sequence[np.ndarray], rng: np.random.Generator | None = None) -> Arrays:
    """The program's outputs, part by part."""
    with np.errstate(all="ignore"):
        return [np.asarray(o) for o in program.node.apply(Stepwise(program.wide, rng), list(inputs))]


class Stepwise:
    """Joins as Python's control flow on NumPy arrays."""

    xp = np

    def __init__(self, wide: bool, rng: np.random.Generator | None = None) -> None:
        self.wide, self.rng = wide, rng

    def part(self, fragment: Fragment, arrays: Arrays) -> Arrays:
        import jax

        given = [np.asarray(a) for a in arrays]
        if self.rng is not None:
            given = [moved(a, self.rng) for a in given]
        with jax.enable_x64(self.wide):
            found = [np.asarray(o) for o in _compiled(fragment.name)(*given)]
        if self.rng is None or fragment.exact:
            return found
        return [moved(a, self.rng, max(fragment.ulps / 64, 1)) for a in found]

    def loop(self, form: str, turns: int, body: Function, state: Arrays) -> tuple[Arrays, Arrays]:
        count, rows = len(state), []
        for _ in range(turns):
            made = body(state)
            state = made[:count]
            rows.append(made[count:])
        if form in ("fori", "while"):
            return state, rows[-1]
        rows = rows[::-1] if form == "reverse" else rows
        return state, [np.stack(column) for column in zip(*rows, strict=True)]

    def branch(self, index: Any, branches: Sequence[Function], arrays: Arrays) -> Arrays:
        taken = min(max(int(index), 0), len(branches) - 1)
        return [o if k == taken else np.zeros_like(o) for k, f in enumerate(branches) for o in f(arrays)]

    def mapped(self, function: Function, arrays: Arrays) -> Arrays:
        rows = [function([a[k] for a in arrays]) for k in range(arrays[0].shape[0])]
        return [np.stack(column) for column in zip(*rows, strict=True)]


@cache
def _compiled(name: str) -> Any:
    """A fragment as a program of its own, for any inputs."""
    import jax

    from tests.interplay.library import library

    function = library()[name].function
    return jax.jit(lambda *a: jax.tree_util.tree_leaves(function(*a)), keep_unused=True, compiler_options=QUICK)


@cache
def keep_parts(folder: str) -> None:
    """Keep XLA's code of parts in a folder: a part read from there takes a third of the time."""
    import jax

    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def moved(array: np.ndarray, rng: np.random.Generator, units: float = 1) -> np.ndarray:
    """`array` with each inexact element up to so many units of rounding up or down, or where it was."""
    if array.dtype.kind == "c":
        return (moved(array.real, rng, units) + 1j * moved(array.imag, rng, units)).astype(array.dtype)
    if array.dtype.kind != "f" and array.dtype.name != "bfloat16":
        return array
    wide = array.astype(np.float64)
    step = rng.integers(-1, 2, array.shape) * (units * epsilon(array.dtype))
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(wide), wide * (1 + step), wide).astype(array.dtype)


def epsilon(dtype: Any) -> float:
    """The distance from 1 to the next number."""
    return float(ml_dtypes.finfo(dtype).eps)


def joint(text: str, inputs: Sequence[np.ndarray]) -> Arrays:
    """The whole program by XLA on the CPU."""
    return run_stablehlo(text, *inputs)
