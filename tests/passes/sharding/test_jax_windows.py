"""Windows, slices, rolls and scans of JAX, and their gradients, under shardings on the evaluator's devices."""

from __future__ import annotations

import functools
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

MESH = jax.sharding.AbstractMesh((2, 4), ("x", "y"))
BEFORE = ("sharding-importer", "flatten-call-graph", "call-inliner", "constant-splitter", "sharding-propagation")
NUMBERS = np.random.default_rng(0)


def floats(*dims: int) -> np.ndarray:
    return NUMBERS.integers(-4, 5, dims).astype(np.float32)


def different(*dims: int) -> np.ndarray:
    return NUMBERS.permutation(int(np.prod(dims))).reshape(dims).astype(np.float32)


ROWS, BOTH, WHOLE = P(("x", "y")), P("x", "y"), P()
A, IMAGE, KERNEL = floats(24, 4), different(2, 16, 8, 2), floats(3, 3, 3, 4)
PICTURES = floats(2, 16, 8, 3)


def pooled(x: Any, size: int, padding: str, of: str) -> Any:
    start, op = (0.0, lax.add) if of == "sum" else (-jnp.inf, lax.max)
    return lax.reduce_window(x, start, op, (1, size, size, 1), (1, 2, 2, 1), padding)


def squared(f: Any, *arguments: int) -> Any:
    return jax.grad(lambda *x: (f(*x) ** 2).sum() / 64, arguments or 0)


def conv(x: Any, w: Any, stride: int = 1, padding: str = "SAME", **more: Any) -> Any:
    labels = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (stride, stride), padding, dimension_numbers=labels, **more)


POOLS = {
    f"{of} pool {size} {padding}": functools.partial(pooled, size=size, padding=padding, of=of)
    for of in ("sum", "max")
    for size, padding in ((2, "VALID"), (3, "SAME"))
}
CONVOLUTIONS = {
    f"convolution {stride} {padding}": functools.partial(conv, stride=stride, padding=padding)
    for stride in (1, 2)
    for padding in ("SAME", "VALID")
}


def _step(c: Any, k: Any) -> tuple[Any, Any]:
    taken = lax.dynamic_slice(c, (k, 0), (3, 4)) * 2.0
    return lax.dynamic_update_slice(c, taken, (k + 1, 0)), jnp.roll(c, 1, 0)[0]


#: a function, its arguments, and how they are split
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = {
    **{name: (f, (IMAGE,), (BOTH,)) for name, f in POOLS.items()},
    **{f"gradient of {name}": (squared(f), (IMAGE,), (BOTH,)) for name, f in POOLS.items()},
    **{name: (f, (PICTURES, KERNEL), (BOTH, WHOLE)) for name, f in CONVOLUTIONS.items()},
    **{
        f"gradients of {name}": (squared(f, 0, 1), (PICTURES, KERNEL), (BOTH, WHOLE))
        for name, f in CONVOLUTIONS.items()
    },
    "gradients of features": (
        squared(conv, 0, 1),
        (floats(8, 6, 6, 4), floats(3, 3, 4, 8)),
        (P("y"), P(None, None, None, "x")),
    ),
    "gradients of groups": (
        squared(functools.partial(conv, feature_group_count=4), 0, 1),
        (floats(2, 8, 8, 4), floats(3, 3, 1, 8)),
        (P("x", None, None, "y"), P(None, None, None, "y")),
    ),
    "gradients of groups, rows split": (
        squared(functools.partial(conv, feature_group_count=3), 0, 1),
        (PICTURES, floats(3, 3, 1, 6)),
        (BOTH, WHOLE),
    ),
    "dilated convolution": (functools.partial(conv, rhs_dilation=(2, 2)), (PICTURES, KERNEL), (BOTH, WHOLE)),
    "transposed convolution": (
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        (PICTURES, KERNEL),
        (BOTH, WHOLE),
    ),
    "convolve": (lambda a, b: (jnp.convolve(a, b), jnp.convolve(a, b, "same")), (floats(32), floats(5)), (ROWS, WHOLE)),
    "roll": (lambda a, b: (jnp.roll(a, 5, 0), jnp.roll(b, (3, -2), (0, 1))), (A, floats(8, 8)), (ROWS, BOTH)),
    "diff": (lambda a: (jnp.diff(a, axis=0), jnp.diff(a, n=2, axis=0), jnp.gradient(a, axis=0)), (A,), (ROWS,)),
    "rows": (lambda a: (a[0], a[-1] * 2, a[1::3], a[::-2], a[5:6]), (A,), (ROWS,)),
    "joined": (
        lambda a, b: (jnp.concatenate([a, b, a]), jnp.stack([a, a]), jnp.tile(a, (2, 1)), jnp.repeat(a, 2, 0)),
        (A, floats(8, 4)),
        (ROWS, ROWS),
    ),
    "cut": (lambda a: (jnp.split(a, 3), jnp.split(a, [5, 11]), jnp.array_split(a, 5)), (A,), (ROWS,)),
    "padded": (
        lambda a: [jnp.pad(a, ((2, 3), (0, 1)), mode=m) for m in ("constant", "reflect", "wrap", "edge")],
        (A,),
        (ROWS,),
    ),
    "cumulative": (
        lambda a, b: (jnp.cumsum(b, 0), jnp.cumsum(b, 1), lax.cummax(a, 0, reverse=True), jnp.cumprod(jnp.sign(a), 0)),
        (A, floats(8, 8)),
        (ROWS, BOTH),
    ),
    "gradients of cumulative": (
        lambda a: (squared(lambda x: jnp.cumsum(x, 0))(a), squared(lambda x: lax.cummax(x, 0))(a)),
        (different(24, 2),),
        (ROWS,),
    ),
    "associative scan": (
        lambda a: (lax.associative_scan(jnp.add, a), lax.associative_scan(jnp.maximum, a, reverse=True)),
        (A,),
        (ROWS,),
    ),
    "dynamic slices": (
        lambda a, u, k: (
            lax.dynamic_update_slice(a, u, (k, 0)),
            lax.dynamic_slice(a, (k + 9, 0), (5, 4)),
            squared(lambda x: lax.dynamic_slice(x, (k, 1), (5, 2)))(a),
            lax.dynamic_slice(a, (k, 0), (20, 4)),
        ),
        (A, floats(7, 4), np.int32(13)),
        (ROWS, WHOLE, WHOLE),
    ),
    "in a loop": (lambda a: lax.scan(_step, a, jnp.arange(5)), (A,), (ROWS,)),
    "a loop over rows": (
        lambda a: lax.scan(lambda c, x: (c * 0.5 + x, c.sum()), jnp.zeros(4), a),
        (A,),
        (ROWS,),
    ),
    "filled from the beginning": (
        lambda a, u: (lax.dynamic_update_slice(a, u, (0, 0)), lax.dynamic_slice(a, (3, 0), (20, 4))),
        (A, floats(16, 4)),
        (ROWS, ROWS),
    ),
    "written": (lambda a: (a.at[3:9].set(7.0), a.at[5].add(7.0), a.at[::2].multiply(2.0)), (A,), (ROWS,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str) -> None:
    f, arguments, specs = FUNCTIONS[name]
    given = [
        jax.ShapeDtypeStruct(np.shape(a), a.dtype, sharding=jax.sharding.NamedSharding(MESH, s))
        for a, s in zip(arguments, specs, strict=True)
    ]
    lowered = jax.jit(f, keep_unused=True).trace(*given).lower(lowering_platforms=("cpu",))
    module, ctx = load(lowered.as_text()), PassContext()
    for step in BEFORE:
        get(step).run(module, ctx)
    agree(module, list(map(np.asarray, arguments)), tolerance=1e-5)
