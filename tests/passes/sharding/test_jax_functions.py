"""Indexing, sorting, random numbers and linear algebra of JAX under shardings, on the evaluator's devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from heron.frontends.loading import load
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from tests.passes.sharding.devices import agree

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax = jax.lax
P = jax.sharding.PartitionSpec

MESH = jax.sharding.AbstractMesh((4, 2), ("x", "y"))
BEFORE = ("sharding-importer", "flatten-call-graph", "call-inliner", "constant-splitter", "sharding-propagation")
NUMBERS = np.random.default_rng(0)


def ints(low: int, high: int, *dims: int) -> np.ndarray:
    return NUMBERS.integers(low, high, dims).astype(np.int32)


def floats(*dims: int) -> np.ndarray:
    return NUMBERS.integers(-5, 6, dims).astype(np.float32)


A, INDEX, UPDATES = floats(16, 8), ints(-18, 20, 12), floats(12, 8)
MATRICES = floats(8, 4, 4)
POSITIVE = MATRICES @ MATRICES.swapaxes(-1, -2) + 20 * np.eye(4, dtype=np.float32)
COMPLEX = (floats(8, 16, 8) + 1j * floats(8, 16, 8)).astype(np.complex64)
ROWS, COLUMNS, BOTH, WHOLE = P("x"), P(None, "y"), P("x", "y"), P()


def _at(mode: str) -> Callable[..., Any]:
    def f(a: Any, i: Any, u: Any) -> Any:
        at = a.at[i % 16 if mode == "promise_in_bounds" else i]
        read = at.get(mode="fill" if mode == "drop" else mode)
        return [read] + [getattr(at, op)(u, mode=mode) for op in ("set", "add", "mul", "max")]

    return f


def _take(mode: str) -> Callable[..., Any]:
    return lambda a, i: (jnp.take(a, i, axis=0, mode=mode), jnp.take(a, i % 8, axis=1, mode=mode))


def _keys(seed: Any, implementation: str = "threefry2x32") -> Any:
    return jax.random.key(seed, impl=implementation)


#: a function, its arguments, and how they are split
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = {
    **{f"take {m}": (_take(m), (A, INDEX), (BOTH, ROWS)) for m in ("fill", "clip", "wrap")},
    **{
        f"at {m}": (_at(m), (A, INDEX, UPDATES), (BOTH, ROWS, BOTH))
        for m in ("drop", "clip", "fill", "promise_in_bounds")
    },
    "at slices": (lambda a: (a.at[::2].set(1.0), a.at[3:9, 2].add(5.0), a[::3, 1::2]), (A,), (BOTH,)),
    "take_along_axis": (
        lambda a, i: (jnp.take_along_axis(a, i, 0), jnp.put_along_axis(a, i % 8, 9.0, 1, inplace=False)),
        (A, ints(0, 16, 16, 8)),
        (BOTH, BOTH),
    ),
    "diagonal": (
        lambda a, k: (a[jnp.arange(16), k], a.at[jnp.arange(16), k].set(7.0), a.at[jnp.arange(16), k].add(1.0)),
        (A, ints(0, 8, 16)),
        (ROWS, ROWS),
    ),
    "embedding": (
        lambda t, i: (jax.grad(lambda t: (t[i] ** 2).sum())(t), t[i]),
        (floats(32, 8), ints(0, 32, 4, 6)),
        (BOTH, P("y")),
    ),
    "windows": (
        lambda a, i: jax.vmap(lambda k: lax.dynamic_slice(a, (k, k % 3), (4, 2)))(i),
        (A, ints(0, 9, 5)),
        (BOTH, WHOLE),
    ),
    "segments": (
        lambda d, s: (jax.ops.segment_sum(d, s, 8), jax.ops.segment_max(d, s, 8), jax.ops.segment_prod(d, s, 8)),
        (floats(24, 4), ints(0, 7, 24)),
        (BOTH, ROWS),
    ),
    "bools": (lambda a, i: (a[i], a.at[i].set(True), a.at[i].max(False)), (A > 0, ints(0, 16, 12)), (BOTH, P("y"))),
    "searchsorted": (
        lambda s, v: (jnp.searchsorted(s, v), jnp.searchsorted(s, v, side="right", method="sort")),
        (np.sort(floats(40)), floats(16)),
        (ROWS, P("y")),
    ),
    "unique": (
        lambda x: jnp.unique(x, size=8, return_index=True, return_inverse=True, return_counts=True),
        (ints(0, 6, 24),),
        (ROWS,),
    ),
    "nonzero": (lambda a: (jnp.nonzero(a, size=10)[0], jnp.bincount(a, length=4)), (ints(0, 2, 24),), (ROWS,)),
    "sort": (
        lambda v, a: (jnp.sort(v), jnp.argsort(v), jnp.sort(a, axis=0), lax.top_k(a.T, 3)[1]),
        (floats(24), A),
        (P(("x", "y")), BOTH),
    ),
    "lexsort": (lambda p, q: (jnp.lexsort((p, q)), lax.sort((p, q))), (ints(0, 3, 24), ints(0, 5, 24)), (ROWS, ROWS)),
    "argmax of equals": (lambda a: (jnp.argmax(a, 0), jnp.argmin(a, 1), jnp.argmax(a)), (ints(0, 3, 16, 8),), (BOTH,)),
    "quantile": (lambda a: (jnp.percentile(a, 30, axis=0), jnp.median(a)), (A,), (COLUMNS,)),
    "permutation": (
        lambda s, x: (jax.random.permutation(_keys(s), x), jax.random.choice(_keys(s), x, (6,), replace=False)),
        (np.uint32(3), floats(16)),
        (WHOLE, ROWS),
    ),
    "distributions": (
        lambda s, a: (jax.random.categorical(_keys(s), a), jax.random.gamma(_keys(s), abs(a) + 1)),
        (np.uint32(3), A),
        (WHOLE, BOTH),
    ),
    "rbg": (
        lambda s: lax.with_sharding_constraint(
            jax.random.bits(_keys(s, "rbg"), (16, 8)), jax.sharding.NamedSharding(MESH, BOTH)
        ),
        (np.uint32(3),),
        (WHOLE,),
    ),
    "matrices": (
        lambda s, b: (
            jnp.linalg.cholesky(s),
            jnp.linalg.solve(s, b),
            jnp.linalg.det(s),
            jnp.linalg.eigvalsh(s),
            abs(jnp.linalg.qr(s)[1]),
        ),
        (POSITIVE, floats(8, 4, 2)),
        (ROWS, P(("x", "y"))),
    ),
    "a split matrix": (
        lambda s, b: (jnp.linalg.cholesky(s), jnp.linalg.solve(s, b)),
        (POSITIVE[0], floats(4, 8)),
        (ROWS, BOTH),
    ),
    "fft": (
        lambda z: (jnp.fft.fft(z, axis=0), jnp.fft.fft2(z), jnp.fft.ifftn(z), jnp.fft.irfftn(z)),
        (COMPLEX,),
        (BOTH,),
    ),
    "fft of a row": (lambda z: jnp.fft.ifft(jnp.fft.fft(z)), (COMPLEX.reshape(-1)[:64],), (P(("x", "y")),)),
}


def spread(name: str):
    """The module of a function after propagation, and its inputs."""
    f, arguments, specs = FUNCTIONS[name]
    given = [
        jax.ShapeDtypeStruct(np.shape(a), a.dtype, sharding=jax.sharding.NamedSharding(MESH, s))
        for a, s in zip(arguments, specs, strict=True)
    ]
    lowered = jax.jit(f, keep_unused=True).trace(*given).lower(lowering_platforms=("cpu",))
    module, ctx = load(lowered.as_text()), PassContext()
    for step in BEFORE:
        get(step).run(module, ctx)
    return module, list(map(np.asarray, arguments))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name):
    module, inputs = spread(name)
    agree(module, inputs, tolerance=2e-4)


@pytest.mark.parametrize("name", ["rbg", "matrices", "diagonal"])
def test_nothing_is_exchanged(name):
    module, inputs = spread(name)
    assert "channel_id" not in str(agree(module, inputs, tolerance=2e-4))
