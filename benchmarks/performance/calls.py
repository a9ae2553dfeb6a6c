"""What a call from Python costs beside the program's own work, in microseconds."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import heron
from heron.runtime.executable import Executable

#: microseconds a call of a one-kernel program may take
GOAL = 5.0


@dataclass(frozen=True, slots=True)
class Call:
    """Microseconds of one call; ``peer``: of what it is compared with."""

    name: str
    microseconds: float
    peer: str = ""
    peer_microseconds: float = 0.0


def _compiled(parameters: int, size: int, alias: bool = False) -> Executable:
    """A program that adds one to each of its parameters."""
    shape, numbers = f"f32[{size}]", range(parameters)
    header = (
        f", input_output_alias={{ {', '.join(f'{{{n}}}: ({n}, {{}}, may-alias)' for n in numbers)} }}" if alias else ""
    )
    lines = [f"  p{n} = {shape} parameter({n})" for n in numbers]
    lines += [f"  one = {shape} broadcast(c), dimensions={{}}", *(f"  r{n} = {shape} add(p{n}, one)" for n in numbers)]
    results = ", ".join(f"r{n}" for n in numbers)
    root = f"  ROOT t = ({', '.join([shape] * parameters)}) tuple({results})"
    body = "\n".join(["  c = f32[] constant(1)", *lines, root])
    return heron.compile(heron.parse(f"HloModule calls{header}\n\nENTRY e {{\n{body}\n}}\n"), target="cpu")


def measure(repeats: int = 5, number: int = 5000) -> list[Call]:
    """Calls of small programs, the best of some rounds."""

    def best(action: Callable[[], Any]) -> float:
        action(), action()
        return min(timeit.repeat(action, number=number, repeat=repeats)) / number * 1e6

    one, many, given = _compiled(1, 8), _compiled(20, 8), _compiled(1, 8, alias=True)
    arrays = [np.full(8, n, np.float32) for n in range(20)]
    x = arrays[0]
    found = [
        Call("one array in, one out", best(lambda: one(x)), "numpy.add", best(lambda: np.add(x, x))),
        Call("20 arrays in, 20 out", best(lambda: many(*arrays))),
        Call("one array in, donated", best(lambda: given.run((x,), donate=True))),
    ]
    jax = _jax()
    if jax is None:
        return found
    device, ours, theirs = jax.numpy.asarray(x), heron.jit(_increment), jax.jit(_increment)
    mine, peer = best(lambda: ours(x)), best(lambda: theirs(device).block_until_ready())
    return [*found, Call("heron.jit(x + 1)", mine, "jax.jit", peer)]


def _increment(x: Any) -> Any:
    return x + 1


def _jax() -> Any:
    try:
        import jax
    except ImportError:
        return None
    return jax
