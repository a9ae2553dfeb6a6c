"""What a joint program must give: its parts run one by one, each as a program of its own, by XLA on the CPU.

`Stepwise` carries the joins out in Python. With a generator it also moves every inexact input of every part by a unit
of rounding, up or down: how far results then spread is how well the question was posed, whoever answers it.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
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
        given = [np.asarray(a) for a in arrays]
        if self.rng is not None:
            given = [moved(a, self.rng) for a in given]
        part = _part(fragment.name, self.wide, tuple((a.dtype.name, a.shape) for a in given))
        found = [np.asarray(o) for o in part(*given)]
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


#: where XLA's code of parts is kept for other processes, unless empty
_FOLDER = ""
#: how many parts a process holds at a time
_HELD = 1024


def keep_parts(folder: str) -> None:
    """Keep XLA's code of parts in a folder: to read a part takes a twentieth of the time its compile takes."""
    global _FOLDER
    _FOLDER = folder


@lru_cache(_HELD)
def _part(name: str, wide: bool, arrays: tuple[tuple[str, tuple[int, ...]], ...]) -> Callable[..., Sequence[Any]]:
    """A fragment as a program of its own, for arrays of these types and shapes."""
    import jax
    from jax.experimental import serialize_executable

    from tests.interplay.library import library

    with jax.enable_x64(wide):
        key = hashlib.sha256(repr((name, wide, arrays)).encode()).hexdigest()[:16]
        path = Path(_FOLDER, _stamp(), f"{name}-{key}") if _FOLDER else None
        if path is not None and path.exists():
            return _with_types(serialize_executable.deserialize_and_load(*pickle.loads(path.read_bytes())), wide)
        function = library()[name].function
        jitted = jax.jit(lambda *a: jax.tree_util.tree_leaves(function(*a)), keep_unused=True, compiler_options=QUICK)
        made = jitted.lower(*[jax.ShapeDtypeStruct(shape, np.dtype(type_)) for type_, shape in arrays]).compile()
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            written = path.parent / f"{path.name}.{os.getpid()}"
            written.write_bytes(pickle.dumps(serialize_executable.serialize(made)))
            written.replace(path)
        return _with_types(made, wide)


def _with_types(compiled: Callable[..., Sequence[Any]], wide: bool) -> Callable[..., Sequence[Any]]:
    """`compiled`, called with JAX's 64-bit types on or off."""
    import jax

    def call(*arrays: np.ndarray) -> Sequence[Any]:
        with jax.enable_x64(wide):
            return compiled(*arrays)

    return call


@cache
def _stamp() -> str:
    """Changes with what the code of a part follows from: the fragments, and XLA."""
    found = hashlib.sha256(metadata.version("jaxlib").encode())
    here = Path(__file__).parent
    for path in (here / "spliced.py", *sorted((here / "fragments").glob("*.py"))):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


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
