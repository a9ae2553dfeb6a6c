"""Programs of the zoo: functions of JAX with their arguments, at two or three sizes each."""

from __future__ import annotations

import importlib
import pkgutil
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

#: a function to compile and its arguments
Made = tuple[Callable[..., Any], tuple[Any, ...]]

_PROGRAMS: list[Program] = []


@dataclass(frozen=True, slots=True)
class Program:
    """One program at one size. ``tolerance``: largest error of an output, over the largest magnitude in it."""

    name: str
    theme: str
    make: Callable[[], Made]
    #: 64-bit types are on, as in a process that sets jax_enable_x64
    wide: bool = False
    tolerance: float = 2e-4


class Draws:
    """Random arrays of one program; the same in every process."""

    def __init__(self, name: str) -> None:
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def normal(self, *shape: int, scale: float = 1.0, dtype: Any = np.float32) -> np.ndarray:
        """Normally distributed floats."""
        return (self.rng.standard_normal(shape) * scale).astype(dtype)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0, dtype: Any = np.float32) -> np.ndarray:
        """Floats between two bounds."""
        return self.rng.uniform(low, high, shape).astype(dtype)

    def integers(self, high: int, *shape: int) -> np.ndarray:
        """Whole numbers from 0 to below ``high``."""
        return self.rng.integers(0, high, shape).astype(np.int32)


def program(
    *sizes: tuple[int, ...], wide: bool = False, tolerance: float | None = None
) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Adds the programs that a function makes from draws and each of ``sizes``."""

    def add(make: Callable[..., Made]) -> Callable[..., Made]:
        theme = make.__module__.rpartition(".")[2]
        for size in sizes:
            name = f"{make.__name__} {'x'.join(map(str, size))}"
            limit = tolerance if tolerance is not None else 1e-8 if wide else 2e-4
            _PROGRAMS.append(Program(name, theme, lambda s=size, n=name: make(Draws(n), *s), wide, limit))
        return make

    return add


def programs(only: str = "") -> list[Program]:
    """The programs whose name or theme has a word."""
    from benchmarks.zoo import programs as folder

    if not _PROGRAMS:
        for module in sorted(m.name for m in pkgutil.iter_modules(folder.__path__)):
            importlib.import_module(f"{folder.__name__}.{module}")
    return [p for p in _PROGRAMS if only in p.name or only == p.theme]


def named(name: str) -> Program:
    """The program of that name."""
    return next(p for p in programs() if p.name == name)
