"""Runs expressions of the table: JAX on XLA:CPU, the evaluator, and the same program as bytecode must agree."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import numpy as np

from heron.evaluator import evaluate
from heron.frontends.loading import from_bytes
from heron.frontends.stablehlo.importer import parse
from heron.hlo.ir.types import of_dtype
from heron.hlo.tools.compare import difference
from tests.frontends.corpus.table import TOLERANCE
from tests.hlo.ops.agree import same
from tests.xla_cpu import QUICK


@cache
def inputs() -> dict[str, np.ndarray]:
    """The arrays expressions name: x, y positive, z of both signs, u between -1 and 1, nan with infinities and NaNs,
    c complex, a, b integers, p booleans, r a vector, m a matrix, q symmetric and positive definite, k a PRNG key."""
    rng = np.random.default_rng(0)
    z, m = (rng.normal(size=size).astype(np.float32) for size in ((4, 6), (4, 4)))
    nan = z.copy()
    nan[0, :3] = np.nan, np.inf, -np.inf
    return {
        "x": rng.uniform(0.5, 2, (4, 6)).astype(np.float32),
        "y": rng.uniform(0.5, 2, (4, 6)).astype(np.float32),
        "z": z,
        "u": rng.uniform(-1, 1, (4, 6)).astype(np.float32),
        "nan": nan,
        "c": (z + 1j * z[::-1]).astype(np.complex64),
        "a": rng.integers(-20, 20, (4, 6), dtype=np.int32),
        "b": rng.integers(1, 20, (4, 6), dtype=np.int32) * np.array([[1], [-1], [1], [-1]], np.int32),
        "p": z > -0.3,
        "r": rng.uniform(0.2, 3, 16).astype(np.float32),
        "m": m,
        "q": m @ m.T + 2 * np.eye(4, dtype=np.float32),
        "k": np.array([12, 345], np.uint32),
        "image": rng.normal(size=(2, 3, 6, 6)).astype(np.float32),
        "kernel": rng.normal(size=(6, 3, 3, 3)).astype(np.float32),
        "heads": rng.normal(size=(1, 5, 2, 4)).astype(np.float32),
    }


@cache
def _modules() -> dict[str, Any]:
    """What expressions call JAX's modules; SciPy's by their own names."""
    from jax import image, lax, nn, ops, random, scipy
    from jax.scipy import fft, integrate, interpolate, linalg, ndimage, signal, special, stats

    scipys = (fft, integrate, interpolate, linalg, ndimage, signal, special, stats)
    names = {module.__name__.rpartition(".")[2]: module for module in (lax, nn, ops, random, *scipys)}
    return {**names, "jax": jax, "jnp": jax.numpy, "image_": image, "scipy": scipy}


def check(expressions: Sequence[str]) -> list[str]:
    """What is wrong with these expressions, lowered as one program; where that is refused, each by itself.

    Each message begins with its expression.
    """
    codes = [compile(e, "<expression>", "eval") for e in expressions]
    used = {name: inputs()[name] for code in codes for name in _names(code) if name in inputs()}

    def program(given: dict[str, Any]) -> list[Any]:
        return [jax.tree.leaves(eval(code, {**_modules(), **given})) for code in codes]

    try:
        with jax.enable_x64(False):
            lowered = jax.jit(program, keep_unused=True).lower(used)
            module = parse(lowered.as_text(debug_info=True), "<corpus>", verify=True)
            got = evaluate(module, *jax.tree.leaves(used))
            want = lowered.compile(compiler_options=QUICK)(used)
    except Exception as error:
        if len(expressions) > 1:
            return [found for e in expressions for found in check([e])]
        return [f"{expressions[0]}: {type(error).__name__}: {error}"]
    found = _bytecode(expressions, lowered, module)
    values = iter(got)
    for expression, wanted in zip(expressions, want, strict=True):
        for n, theirs in enumerate(wanted):
            found += _differs(expression, n, next(values), np.asarray(theirs))
    return found


def _names(code: Any) -> set[str]:
    """Names an expression uses, in its lambdas too."""
    inner = [_names(c) for c in code.co_consts if hasattr(c, "co_names")]
    return set(code.co_names).union(*inner)


def _bytecode(expressions: Sequence[str], lowered: Any, module: Any) -> list[str]:
    out = io.BytesIO()
    lowered.compiler_ir("stablehlo").operation.write_bytecode(out)
    found = difference(module, from_bytes(out.getvalue()))
    return [] if found is None else [f"{expressions[0]} …: the bytecode differs: {found}"]


def _differs(expression: str, n: int, ours: np.ndarray, theirs: np.ndarray) -> list[str]:
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return [f"{expression}: result {n} is {ours.dtype}{ours.shape}, JAX has {theirs.dtype}{theirs.shape}"]
    ok = same(ours, theirs, of_dtype(ours.dtype), TOLERANCE.get(expression))
    if ok.all():
        return []
    return [f"{expression}: result {n} is {ours[~ok][:4]}, JAX has {theirs[~ok][:4]}"]
