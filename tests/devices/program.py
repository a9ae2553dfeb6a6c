"""A program for several devices, and what it is given to reach them."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from tests.devices import programs

Names = str | None | tuple[str, ...]


class Devices:
    """Meshes, and arrays spread over them; with `one`, everything is on one device and shardings say nothing."""

    def __init__(self, one: bool) -> None:
        self.one = one

    def mesh(self, *sizes: int, names: str = "xyz", explicit: str = "", order: Sequence[int] = ()) -> Any:
        """A mesh with an axis for each size, over the first devices or those of `order`; axes of `explicit` are typed."""
        import jax
        from jax.sharding import AxisType, Mesh

        if self.one:
            return None
        axes = tuple(names[: len(sizes)])
        chosen = order or range(int(np.prod(sizes)))
        devices = np.array([jax.devices()[k] for k in chosen]).reshape(sizes)
        types = tuple(AxisType.Explicit if a in explicit else AxisType.Auto for a in axes)
        return Mesh(devices, axes, axis_types=types)

    def on(self, mesh: Any, *spec: Names) -> Any:
        """A sharding; None on one device."""
        from jax.sharding import NamedSharding, PartitionSpec

        return None if self.one else NamedSharding(mesh, PartitionSpec(*spec))

    def put(self, array: Any, mesh: Any, *spec: Names) -> Any:
        """An array spread as `spec` says."""
        import jax

        return jax.device_put(array, self.on(mesh, *spec))

    def keep(self, array: Any, mesh: Any, *spec: Names) -> Any:
        """A value inside a program, constrained to be spread so."""
        import jax

        return array if self.one else jax.lax.with_sharding_constraint(array, self.on(mesh, *spec))

    def jit(self, function: Callable[..., Any], out: Any = None, **options: Any) -> Callable[..., Any]:
        """`jit` with shardings of results as `on` gives them."""
        import jax

        return (
            jax.jit(function, **options) if self.one or out is None else jax.jit(function, out_shardings=out, **options)
        )


@dataclass(frozen=True)
class Program:
    """A function of the devices that returns arrays.

    Attributes:
        name: unique.
        function: what runs.
        tolerance: of an inexact element, relative to the largest one of its array; 0 asks for the last bit.
        wide: with 64-bit types.
        alone: it has a meaning on one device.
        slow: left out of the tests that run by default.
    """

    name: str
    function: Callable[[Devices], Any]
    tolerance: float = 1e-5
    wide: bool = False
    alone: bool = True
    slow: bool = False
    family: str = ""


class Family(dict[str, Program]):
    """The programs of a file."""

    def program(self, **facts: Any) -> Callable[[Callable[[Devices], Any]], Callable[[Devices], Any]]:
        """Register the function below under its name."""

        def register(function: Callable[[Devices], Any]) -> Callable[[Devices], Any]:
            self[function.__name__] = Program(function.__name__, function, **facts)
            return function

        return register


@cache
def library() -> dict[str, Program]:
    """All programs by name."""
    found: dict[str, Program] = {}
    for file in sorted(m.name for m in pkgutil.iter_modules(programs.__path__)):
        for name, p in import_module(f"{programs.__name__}.{file}").PROGRAMS.items():
            assert name not in found, f"two programs named {name}"
            found[name] = Program(**{**vars(p), "family": file})
    return found


def integers(*dims: int, seed: int = 0, low: int = -4, high: int = 5, dtype: Any = np.float32) -> np.ndarray:
    """Small integers: sums of them are exact in any order."""
    return np.random.default_rng(seed).integers(low, high, dims).astype(dtype)


def normal(*dims: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng(seed).normal(size=dims).astype(dtype)
