"""A sharded program of JAX with its arguments, as the benchmark runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

#: every program by name
PROGRAMS: dict[str, Callable[[], Case]] = {}


@dataclass
class Case:
    """``function(*arguments)`` jitted on a mesh with shardings of arguments and results (None: any)."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    mesh: Mesh
    in_specs: Any
    out_specs: Any = None
    donate: tuple[int, ...] = ()


def registered(programs: dict[str, Callable[[], Case]]) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """A decorator that puts a program into a table."""

    def put(make: Callable[[], Case]) -> Callable[[], Case]:
        programs[make.__name__] = make
        return make

    return put


#: decorator: a program of the benchmark
program = registered(PROGRAMS)


def mesh(**axes: int) -> Mesh:
    """A mesh of the first devices."""
    devices = jax.devices()[: prod(axes.values())]
    return Mesh(np.array(devices).reshape(tuple(axes.values())), tuple(axes))


def R(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def f32(r: np.random.Generator, *dims: int, scale: float = 1.0) -> np.ndarray:
    """Normal numbers."""
    return r.standard_normal(dims, dtype=np.float32) * np.float32(scale)


def constrained(x: Any, m: Mesh, *spec: Any) -> Any:
    """The value, sharded so."""
    return jax.lax.with_sharding_constraint(x, NamedSharding(m, PartitionSpec(*spec)))
