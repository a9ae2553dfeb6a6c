"""``python -m benchmarks.growth_grid``: compile time of every op in every pattern that repeats it.

A program has an op N times: one after the other, side by side, joined, in rows of an array. A line has the processor
time of heron's compile for each N, and the exponent between the last two: 1 is linear. Compiles of less than half a
second, and exponents up to 1.4, are small programs on their way to the limits of a kernel; others are marked.
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

#: elements of an array
SIZE = 24
#: seconds of a compile, and the exponent, from which on a line is marked
_SLOW, _STEEP = 0.5, 1.4

#: gives the array that an op makes of one
Step = Callable[[Any], Any]


def _steps() -> dict[str, Step]:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax

    key = jax.random.PRNGKey(0)
    places = np.arange(SIZE) * 7 % SIZE

    def square(x: Any) -> Any:
        return jnp.eye(3) + x[:9].reshape(3, 3)

    return {
        "add": lambda x: x + 1.5,
        "sine": jnp.sin,
        "sum": lambda x: x - jnp.sum(x),
        "cumulative sum": jnp.cumsum,
        "sort": jnp.sort,
        "reverse": lambda x: x[::-1],
        "roll": lambda x: jnp.roll(x, 1),
        "pad": lambda x: jnp.pad(x, (1, 1))[1:-1] * 2,
        "update": lambda x: x.at[3].set(x[5]),
        "scatter": lambda x: x.at[jnp.arange(4) * 2].add(1.0),
        "gather": lambda x: x[places],
        "where": lambda x: jnp.where(x > 0.5, x, x * x),
        "product": lambda x: (x.reshape(4, 6) @ x.reshape(6, 4)).reshape(-1)[:12].repeat(2),
        "dot": lambda x: x * jnp.dot(x, x),
        "transpose": lambda x: x.reshape(4, 6).T.reshape(-1),
        "argmax": lambda x: x + jnp.argmax(x),
        "top k": lambda x: x.at[:3].set(lax.top_k(x, 3)[0]),
        "softmax": jax.nn.softmax,
        "cast": lambda x: x.astype(jnp.int32).astype(jnp.float32) + x,
        "dynamic slice": lambda x: x + lax.dynamic_slice(x, (jnp.int32(x[0] * 3),), (1,)),
        "conditional": lambda x: lax.cond(x[0] > 0.5, jnp.sin, jnp.cos, x),
        "loop": lambda x: lax.fori_loop(0, 5, lambda i, v: v * 1.1, x),
        "scan": lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x)[1],
        "convolution": lambda x: jnp.convolve(x, jnp.ones(3), "same"),
        "Fourier transform": lambda x: jnp.fft.rfft(x).real.repeat(2)[:SIZE],
        "Cholesky": lambda x: jnp.linalg.cholesky(square(x) @ square(x).T).sum() + x,
        "inverse": lambda x: jnp.linalg.inv(square(x)).sum() + x,
        "random": lambda x: x + jax.random.normal(key, (SIZE,)),
        "parts in another order": lambda x: jnp.concatenate(jnp.split(x, 4)[::-1]),
        "stacked elements": lambda x: jnp.stack([x[i] for i in range(SIZE)]),
        "segment sum": lambda x: jax.ops.segment_sum(x, jnp.arange(SIZE) // 2, SIZE),
        "integers": lambda x: (jnp.int32(x * 100) // 7 % 5).astype(jnp.float32),
        "complex": lambda x: (x * jnp.exp(1j * x)).real,
        "window": lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (1,), "SAME"),
        "gradient": jax.grad(lambda x: jnp.sum(jnp.tanh(x) * jnp.roll(x, 1))),
    }


def _chain(step: Step, x: Any, rows: Any) -> Any:
    for _ in rows:
        x = step(x)
    return x


def _chain_with_results(step: Step, x: Any, rows: Any) -> Any:
    import jax.numpy as jnp

    found = []
    for row in rows:
        x = step(x + row)
        found.append(x[0])
    return x, jnp.stack(found)


def _sum(step: Step, x: Any, rows: Any) -> Any:
    return sum(step(row) for row in rows)


def _stack(step: Step, x: Any, rows: Any) -> Any:
    import jax.numpy as jnp

    return jnp.stack([step(row) for row in rows])


def _elements(step: Step, x: Any, rows: Any) -> Any:
    import jax.numpy as jnp

    return jnp.stack([step(row)[0] for row in rows])


def _results(step: Step, x: Any, rows: Any) -> Any:
    return [step(x * (1 + n)) for n, _ in enumerate(rows)]


#: how a program repeats a step for each of its rows
PATTERNS: dict[str, Callable[[Step, Any, Any], Any]] = {
    "chain": _chain,
    "chain with results": _chain_with_results,
    "sum": _sum,
    "stack": _stack,
    "stacked elements": _elements,
    "results": _results,
}


def text(pattern: str, step: Step, count: int, apart: bool) -> str:
    """The program with `count` rows; ``apart``: each is an argument."""
    import jax
    import jax.numpy as jnp

    row = jax.ShapeDtypeStruct((SIZE,), jnp.float32)
    rows = [row] * count if apart else jax.ShapeDtypeStruct((count, SIZE), jnp.float32)

    def program(x: Any, given: Any) -> Any:
        return PATTERNS[pattern](step, x, [given[n] for n in range(count)])

    return str(jax.jit(program).lower(row, rows).compiler_ir("stablehlo"))


def lines(pattern: str, words: tuple[str, ...], sizes: tuple[int, ...]) -> Iterator[str]:
    """A line for each op whose name holds one of `words`, all by default; rows of one array, and arguments."""
    for name, step in _steps().items():
        if words and not any(word in name for word in words):
            continue
        for apart in (False, True):
            seconds = [_seconds(text(pattern, step, n, apart)) for n in sizes]
            exponent = math.log(seconds[-1] / seconds[-2]) / math.log(sizes[-1] / sizes[-2])
            mark = "  steep" if seconds[-1] > _SLOW and exponent > _STEEP else ""
            times = " ".join(f"{s:8.3f} s" for s in seconds)
            place = "arguments" if apart else "one array"
            yield f"{pattern:20s} {name:24s} {place} {times}  exponent {exponent:5.2f}{mark}"


def _seconds(program: str) -> float:
    MADE.clear()
    start = time.process_time()
    heron.compile(program)
    return time.process_time() - start


@click.command(help=__doc__)
@click.argument("words", nargs=-1)
@click.option("--pattern", "patterns", multiple=True, type=click.Choice(list(PATTERNS)), help="Only these patterns.")
@click.option("--sizes", default="30,90", show_default=True, help="How often each program has its op.")
def main(words: tuple[str, ...], patterns: tuple[str, ...], sizes: str) -> None:
    """Measure ops whose names hold one of WORDS."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    counts = tuple(int(n) for n in sizes.split(","))
    if len(counts) < 2:
        raise click.BadParameter("growth is seen between two sizes, as in 30,90", param_hint="--sizes")
    for pattern in patterns or PATTERNS:
        for line in lines(pattern, words, counts):
            click.echo(line)


if __name__ == "__main__":
    main()
