"""``python -m benchmarks.growth``: compile time of programs that grow: for each instruction it must stay the same.

Series of programs, each twice as large as the one before. A line has the program's instructions, the processor time of
heron's compile and XLA's, the time for each instruction, and the exponent between this size and the one before: 1 is
linear, 2 quadratic. Times are the least of several compiles, the two sides in turn.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import click

import heron
from heron.codegen.llvm.jit import MADE
from heron.hlo.ir.module import Module

#: a program's function and its arguments
Program = tuple[Callable[..., Any], tuple[Any, ...]]


def _repeat(step: Callable[..., Any], times: int) -> Callable[..., Any]:
    def run(v: Any, *rest: Any) -> Any:
        for i in range(times):
            v = step(v, i, *rest)
        return v

    return run


def _arrays(*dims: tuple[int, ...]) -> tuple[Any, ...]:
    import numpy as np

    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(d).astype(np.float32) * 0.1 for d in dims)


def _runge_kutta(n: int) -> Program:
    import jax.numpy as jnp

    def step(y: Any, i: int) -> Any:
        k1 = jnp.sin(y) + y * y
        k2 = jnp.cos(y + 0.1 * k1)
        k3 = jnp.exp(-k2 * k2) - k1
        return y + 0.01 * (k1 + 2 * k2 + k3)

    return _repeat(step, n), _arrays((1000,))


def _tower(n: int) -> Program:
    import jax.numpy as jnp

    return _repeat(lambda v, i: jnp.where(v > i * 0.01, v * 1.01, jnp.sin(v)), n), _arrays((5000,))


def _arithmetic(n: int) -> Program:
    return _repeat(lambda v, i: v * v + (i + 0.5), n), _arrays((5000,))


def _scan(n: int) -> Program:
    from jax import lax

    def affine(p: Any, q: Any) -> Any:
        return p[0] * q[0], p[1] * q[0] + q[1]

    return lambda a, b: lax.associative_scan(affine, (a, b)), _arrays((4**n, 8), (4**n, 8))


def _mlp(n: int) -> Program:
    import jax.numpy as jnp

    return _repeat(lambda v, i, w: jnp.tanh(v @ w + i), n), _arrays((32, 64), (64, 64))


def _concatenate(n: int) -> Program:
    import jax.numpy as jnp

    return lambda a: jnp.concatenate([jnp.roll(a, j) * j for j in range(n)]), _arrays((257,))


def _stack(n: int) -> Program:
    import jax.numpy as jnp

    return lambda *numbers: jnp.stack(numbers), _arrays(*[()] * n)


def _carried(n: int) -> Program:
    from jax import lax

    return lambda *state: lax.fori_loop(0, 5, lambda i, s: tuple(x * 0.9 + i for x in s), state), _arrays(*[(4, 4)] * n)


def _switch(n: int) -> Program:
    import jax.numpy as jnp
    import numpy as np
    from jax import lax

    branches = [lambda v, j=j: jnp.sin(v) * j + jnp.cumsum(v) for j in range(n)]
    return lambda i, v: lax.switch(i, branches, v), (np.int32(1), *_arrays((1000,)))


def _reductions(n: int) -> Program:
    return _repeat(lambda v, i: v * 0.5 + (v * v).sum(-1, keepdims=True), n), _arrays((64, 64))


def _scatters(n: int) -> Program:
    import numpy as np

    indices = np.arange(0, 500, 5, dtype=np.int32)
    return _repeat(lambda v, i, at: v.at[at + i].add(v[at] * 0.5), n), (*_arrays((1000,)), indices)


def _loops(n: int) -> Program:
    from jax import lax

    def run(v: Any) -> Any:
        body = lambda c, _: (c * 0.9 + 0.1, None)  # noqa: E731
        for _ in range(n):
            inner = body
            body = lambda c, _, inner=inner: (lax.scan(inner, c + 1.0, None, 2)[0], None)  # noqa: E731
        return body(v, None)[0]

    return run, _arrays((100,))


SERIES: dict[str, tuple[Callable[[int], Program], tuple[int, ...]]] = {
    "unrolled Runge-Kutta steps": (_runge_kutta, (8, 16, 32, 64)),
    "tower of where": (_tower, (16, 32, 64, 128)),
    "arithmetic": (_arithmetic, (64, 128, 256, 512)),
    "associative scan of 4^n": (_scan, (2, 3, 4, 5, 6)),
    "layers": (_mlp, (16, 32, 64, 128)),
    "concatenated pieces": (_concatenate, (16, 32, 64, 128)),
    "stacked numbers": (_stack, (250, 1000, 4000)),
    "arrays that a loop carries": (_carried, (100, 200, 400, 800)),
    "branches of a switch": (_switch, (8, 16, 32, 64)),
    "reductions in a row": (_reductions, (8, 16, 32, 64)),
    "scatters in a row": (_scatters, (8, 16, 32, 64)),
    "loops in loops": (_loops, (2, 4, 8)),
}


def lines(name: str, rounds: int, xla: bool) -> Iterator[str]:
    """A line for each size of a series."""
    make, sizes = SERIES[name]
    before: tuple[int, float] | None = None
    for n in sizes:
        count, ours, theirs = _seconds(*make(n), rounds, xla)
        exponent = math.log(ours / before[1]) / math.log(count / before[0]) if before else float("nan")
        peer = f" XLA {theirs * 1e3:8.1f} ms, ratio {ours / theirs:5.2f}" if xla else ""
        yield (
            f"{name:28s} {n:4d} {count:6d} instructions {ours * 1e3:8.1f} ms {ours / count * 1e6:7.1f} µs each, "
            f"exponent {exponent:5.2f}{peer}"
        )
        before = count, ours


def _seconds(
    function: Callable[..., Any], arguments: tuple[Any, ...], rounds: int, xla: bool
) -> tuple[int, float, float]:
    """Instructions of a program, and the seconds of both compiles."""
    import jax

    def lowered() -> Any:
        return jax.jit(lambda *v: function(*v)).lower(*arguments)

    text = str(lowered().compiler_ir("stablehlo"))
    ours = theirs = float("inf")
    count = 0
    for _ in range(rounds):
        module = heron.load(text)
        assert isinstance(module, Module)
        count = module.instruction_count()
        MADE.clear()  # each compile is as the first of its program
        start = time.process_time()
        heron.compile(module)
        ours = min(ours, time.process_time() - start)
        if xla:
            peer = lowered()
            start = time.process_time()
            peer.compile()
            theirs = min(theirs, time.process_time() - start)
    return count, ours, theirs


@click.command(help=__doc__)
@click.argument("words", nargs=-1)
@click.option("--rounds", default=2, show_default=True, help="Compiles of each program.")
@click.option("--alone", is_flag=True, help="heron only.")
def main(words: tuple[str, ...], rounds: int, alone: bool) -> None:
    """Measure the series whose names hold one of WORDS, all by default."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    for name in SERIES:
        if not words or any(word in name for word in words):
            for line in lines(name, rounds, not alone):
                click.echo(line)


if __name__ == "__main__":
    main()
