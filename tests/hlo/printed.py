"""Programs as XLA:CPU prints them behind all its passes: they parse, verify, print the same, and run to XLA's values.

``python -m tests.hlo.printed [name ...] [--targets eval,cpu,sim:sm_90]`` takes all functions below, or those named;
`test_printed.py` a few.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from difflib import unified_diff
from typing import Any

import numpy as np

import heron
from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.hlo.text import parse, print_module
from heron.hlo.verifier import problems

TARGETS = ("eval", "cpu", "sim:sm_90")
#: greatest difference, relative to the largest value, by bytes of a number
TOLERANCE = {1: 0.3, 2: 3e-2, 4: 3e-4, 8: 1e-9}
Function = tuple[Callable[..., Any], Sequence[np.ndarray]]


def functions() -> dict[str, Function]:
    """Functions of JAX with arguments, by name."""
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.scipy import linalg as jsl
    from jax.scipy import special as jsp

    random = np.random.default_rng(0)

    def f(*dims: int, dtype: Any = np.float32) -> np.ndarray:
        return random.standard_normal(dims).astype(dtype)

    def n(*dims: int, most: int = 8, dtype: Any = np.int32) -> np.ndarray:
        return random.integers(0, most, dims).astype(dtype)

    a, b, v, w, m = f(6, 8), f(8, 5), f(8), f(6, 8), f(5, 5)
    spd = m @ m.T + 5 * np.eye(5, dtype=np.float32)
    image, kernel = f(2, 9, 9, 3), f(3, 3, 3, 4)
    heads, bits = f(2, 4, 6, 8), n(7, most=1 << 30, dtype=np.uint32)
    conv = ("NHWC", "HWIO", "NHWC")

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 3
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)

    def norm(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def mlp(x: Any, p: Any, q: Any) -> Any:
        return jnp.sum(jax.nn.gelu(jnp.tanh(x @ p) @ q) ** 2)

    def newton(x: Any) -> Any:
        return lax.while_loop(lambda s: jnp.abs(s[0] ** 2 - x).max() > 1e-4, lambda s: ((s[0] + x / s[0]) / 2,), (x,))[
            0
        ]

    def normal(bits: Any) -> Any:
        return jax.random.normal(jax.random.wrap_key_data(bits[:2]), (3, 4))

    def shuffled(bits: Any, x: Any) -> Any:
        return jax.random.permutation(jax.random.wrap_key_data(bits[:2]), x)

    def rounds(x: Any) -> Any:
        return lax.scan(lambda c, y: (c * 0.5 + y, jnp.sin(c)), jnp.zeros(8), x)

    def window(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def convolved(x: Any, k: Any) -> Any:
        return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=conv)

    found: dict[str, Any] = {
        "add": (lambda x, y: x + y, (a, w)),
        "bias and relu": (lambda x, y, z: jax.nn.relu(x @ y + z), (a, b, f(5))),
        "matmul": (lambda x, y: x @ y, (a, b)),
        "matmul bf16": (lambda x, y: (x.astype(jnp.bfloat16) @ y.astype(jnp.bfloat16)), (a, b)),
        "matmul s8": (lambda x, y: lax.dot(x, y, preferred_element_type=jnp.int32), (n(4, 6, dtype=np.int8), n(6, 3, dtype=np.int8))),
        "batched matmul": (lambda x, y: jnp.einsum("bij,bjk->bik", x, y), (f(3, 4, 5), f(3, 5, 2))),
        "einsum": (lambda x, y: jnp.einsum("abc,cbd->da", x, y), (f(3, 4, 5), f(5, 4, 2))),
        "outer": (jnp.outer, (v, f(3))),
        "large matmul": (lambda x, y: x @ y, (f(96, 130), f(130, 64))),
        "softmax": (lambda x: jax.nn.softmax(x), (a,)),
        "logsumexp": (lambda x: jsp.logsumexp(x, axis=1), (a,)),
        "layer norm": (norm, (a,)),
        "attention": (attention, (heads, heads, heads)),
        "gradient of attention": (jax.grad(lambda q, k, v: attention(q, k, v).sum(), (0, 1, 2)), (heads, heads, heads)),
        "mlp gradient": (jax.value_and_grad(mlp, (1, 2)), (a, f(8, 16), f(16, 3))),
        "convolution": (convolved, (image, kernel)),
        "strided convolution": (
            lambda x, k: lax.conv_general_dilated(x, k, (2, 2), "VALID", dimension_numbers=conv), (image, kernel)),
        "grouped convolution": (
            lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=conv, feature_group_count=3),
            (image, f(3, 3, 1, 6))),
        "gradient of convolution": (jax.grad(lambda x, k: (convolved(x, k) ** 2).sum(), (0, 1)), (image, kernel)),
        "1d convolution": (lambda x, y: jnp.convolve(x, y), (f(33), f(5))),
        "max pool": (window, (image,)),
        "gradient of max pool": (jax.grad(lambda x: (window(x) ** 2).sum()), (image,)),
        "cumsum": (lambda x: jnp.cumsum(x, axis=1), (a,)),
        "cumprod and cummax": (lambda x: (jnp.cumprod(x, 0), lax.cummax(x, 1)), (a,)),
        "associative scan": (lambda x: lax.associative_scan(lambda p, q: p * 0.5 + q, x), (v,)),
        "sort": (lambda x: jnp.sort(x, axis=1), (a,)),
        "argsort": (lambda x: jnp.argsort(x, axis=0), (a,)),
        "sort of pairs": (lambda k, x: lax.sort((k, x), num_keys=2), (n(20, most=4), f(20))),
        "top k": (lambda x: lax.top_k(x, 3), (a,)),
        "argmax": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)), (a,)),
        "median": (lambda x: jnp.median(x, axis=1), (a,)),
        "unique": (lambda x: jnp.unique(x, size=5), (n(12),)),
        "histogram": (lambda x: jnp.histogram(x, bins=5, range=(-2, 2)), (f(40),)),
        "gather": (lambda x, i: x[i], (a, n(4, most=6))),
        "gather of rows and columns": (lambda x, i, j: x[i, j], (a, n(4, most=6), n(4, most=8))),
        "scatter add": (lambda x, i, y: x.at[i].add(y), (a, n(4, most=6), f(4, 8))),
        "scatter max": (lambda x, i, y: x.at[i].max(y), (v, n(5), f(5))),
        "scatter set": (lambda x, y: x.at[2:4].set(y), (a, f(2, 8))),
        "segment sum": (lambda x, i: jax.ops.segment_sum(x, i, 4), (f(20, 3), n(20, most=4))),
        "dynamic slice": (lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (2, 3)), (a, n(2, most=4))),
        "dynamic update": (lambda x, y, i: lax.dynamic_update_slice(x, y, (i[0], i[1])), (a, f(2, 3), n(2, most=4))),
        "concatenate and pad": (lambda x, y: jnp.pad(jnp.concatenate([x, y]), ((1, 2), (0, 3))), (a, w)),
        "transpose and reverse": (lambda x: (jnp.flip(x.T, 0), jnp.roll(x, 3, 1)), (a,)),
        "stack of slices": (lambda x: jnp.stack([x[:, i] * i for i in range(5)]), (a,)),
        "while": (newton, (np.abs(a) + 1,)),
        "fori": (lambda x: lax.fori_loop(0, 7, lambda i, c: c.at[i].set(c[i - 1] * 0.9 + i), x), (v,)),
        "scan": (rounds, (a,)),
        "gradient of scan": (jax.grad(lambda x: rounds(x)[0].sum()), (a,)),
        "cond": (lambda p, x: lax.cond(p > 3, lambda y: y * 2, lambda y: jnp.sort(y), x), (np.int32(4), v)),
        "switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda y: y[::-1]], x), (np.int32(1), v)),
        "vmapped cond": (jax.vmap(lambda p, x: lax.cond(p > 0, jnp.sum, jnp.max, x)), (f(6), a)),
        "random bits": (lambda k: jax.random.bits(jax.random.wrap_key_data(k[:2]), (5,)), (bits,)),
        "random normal": (normal, (bits,)),
        "random permutation": (shuffled, (bits, v)),
        "random categorical": (lambda k, x: jax.random.categorical(jax.random.wrap_key_data(k[:2]), x), (bits, a)),
        "rng bit generator": (lambda k: lax.rng_bit_generator(k[:4], (6,)), (bits,)),
        "fft": (jnp.fft.fft, (a.astype(np.complex64),)),
        "rfft and irfft": (lambda x: (jnp.fft.rfft(x), jnp.fft.irfft(x.astype(jnp.complex64))), (f(3, 10),)),
        "fft2": (jnp.fft.fft2, (a.astype(np.complex64),)),
        "cholesky": (jnp.linalg.cholesky, (spd,)),
        "triangular solve": (lambda x, y: jsl.solve_triangular(x, y, lower=True), (np.tril(spd), f(5, 2))),
        "solve": (jnp.linalg.solve, (spd, f(5, 2))),
        "inverse and determinant": (lambda x: (jnp.linalg.inv(x), jnp.linalg.det(x)), (spd,)),
        "qr": (lambda x: jnp.abs(jnp.linalg.qr(x)[1]), (f(6, 4),)),
        "svd": (lambda x: jnp.linalg.svd(x, compute_uv=False), (f(6, 4),)),
        "eigh": (lambda x: jnp.linalg.eigh(x)[0], (spd,)),
        "expm": (jsl.expm, (m * 0.3,)),
        "complex": (lambda x, y: jnp.exp(lax.complex(x, y)) / (1 + lax.complex(y, x)), (a, w)),
        "complex matmul": (lambda x, y: lax.complex(x, x) @ lax.complex(y, -y), (a, b)),
        "special functions": (lambda x: (jsp.gammaln(jnp.abs(x) + 1), jsp.erf(x), jsp.expit(x), jsp.i0(x)), (a,)),
        "digamma and betainc": (lambda x: (jsp.digamma(jnp.abs(x) + 1), jsp.betainc(2.0, 3.0, jax.nn.sigmoid(x))), (v,)),
        "powers": (lambda x: (x**3, jnp.abs(x) ** 0.3, jnp.cbrt(x), jnp.hypot(x, 2.0)), (a,)),
        "integers": (lambda x, y: (x // (y + 1), x % (y + 1), x << 2, x ^ y, lax.population_count(x)), (n(9), n(9))),
        "bytes": (lambda x: (x + x, x.astype(jnp.float32).sum(), jnp.bitwise_not(x)), (n(9, dtype=np.uint8),)),
        "conversions": (lambda x: (x.astype(jnp.int8), x.astype(jnp.float16), x.astype(jnp.bfloat16), x > 0), (a,)),
        "f8": (lambda x: x.astype(jnp.float8_e4m3fn).astype(jnp.float32) + 1, (a,)),
        "s4": (lambda x: x.astype(jnp.int4).astype(jnp.int32) * 2, (n(8, most=7),)),
        "bitcast": (lambda x: lax.bitcast_convert_type(x, jnp.int32) & 255, (a,)),
        "reductions": (lambda x: (x.sum(), x.prod(1), x.max(0), x.var(), (x > 0).all(1), (x > 1).any()), (a,)),
        "sum of pairs": (
            lambda x, y: lax.reduce((x, y), (0.0, 1.0), lambda p, q: (p[0] + q[0], p[1] * q[1]), (1,)), (a, w)),
        "long sum": (lambda x: (x.sum(0), x.sum(1), x.sum()), (f(64, 300),)),
        "triu and where": (lambda x: jnp.where(jnp.triu(jnp.ones((6, 8))) > 0, x, -1.0), (a,)),
        "searchsorted": (lambda x, y: jnp.searchsorted(jnp.sort(x), y), (f(20), f(5))),
        "interp": (lambda x: jnp.interp(x, jnp.arange(5.0), jnp.arange(5.0) ** 2), (np.abs(v),)),
        "resize": (lambda x: jax.image.resize(x, (2, 6, 6, 3), "bilinear"), (image,)),
        "one hot": (lambda i: jax.nn.one_hot(i, 5), (n(7, most=5),)),
        "hessian": (jax.hessian(lambda x: (jnp.tanh(x) ** 2 * x.sum()).sum()), (f(4),)),
        "jacobian": (jax.jacrev(lambda x: jnp.sin(x) * x.sum()), (f(4),)),
        "checkpoint": (jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), (a,)),
        "optimisation barrier": (lambda x: lax.optimization_barrier((x + 1, x * 2)), (a,)),
        "tuple of nothing": (lambda x: ((), x, {"a": (x + 1,)}), (v,)),
        "constant": (lambda: jnp.arange(6.0).reshape(2, 3), ()),
        "adam": (
            lambda p, g, m, s: (p - 0.1 * (0.9 * m + 0.1 * g) / (jnp.sqrt(0.99 * s + 0.01 * g * g) + 1e-8), 0.9 * m + 0.1 * g),
            (a, w, f(6, 8), np.abs(f(6, 8)))),
        "small lstm": (
            lambda x, u: lax.scan(lambda c, y: (jnp.tanh(c @ u + y), c), jnp.zeros((2, 8)), x)[0], (f(5, 2, 8), f(8, 8))),
    }  # fmt: skip
    return found


def printed(name: str, before: bool = False) -> tuple[str, list[np.ndarray], list[np.ndarray]]:
    """What XLA prints for a function (``before`` its passes or behind them), arguments, and the values it computes."""
    import jax

    function, arguments = functions()[name]
    with jax.enable_x64(False):
        lowered: Any = jax.jit(function).lower(*arguments)
        compiled = lowered.compile()
        text = lowered.compiler_ir(dialect="hlo").as_hlo_text() if before else compiled.as_text()
        values = [np.asarray(x) for x in jax.tree.leaves(compiled(*arguments))]
    used = compiled._executable._kept_var_idx
    return text, [x for k, x in enumerate(arguments) if k in used], values


def check(name: str, targets: Sequence[str] = TARGETS, before: bool = False) -> Iterator[str]:
    """What is wrong with a program, line by line."""
    text, arguments, wanted = printed(name, before)
    module = parse(text)
    yield from (f"verify: {p.error().code} {p.error().what}" for p in problems(module))
    by_xla = _read_and_printed(text)  # what XLA prints first is in another order than what it prints again
    if (again := print_module(module)).rstrip() != by_xla.rstrip():
        lines = unified_diff(by_xla.rstrip().splitlines(), again.rstrip().splitlines(), lineterm="", n=0)
        yield "print: " + " | ".join(line[:160] for k, line in enumerate(lines) if 2 < k < 6)
    for target in targets:
        try:
            run = heron.compile(module, target=target) if target != "eval" else lambda *xs: evaluate(module, *xs)
            got = _flat(run(*arguments))
        except HeronError as error:
            yield f"{target}: {error.code} {error.what} {error.why or ''}"[:300]
            continue
        if len(got) != len(wanted):
            yield f"{target}: {len(got)} values of {len(wanted)}"
        for k, (x, y) in enumerate(zip(got, wanted, strict=False)):
            if why := differs(np.asarray(x), y):
                yield f"{target}: output {k}: {why}"


def _read_and_printed(text: str) -> str:
    import jaxlib._hlo as hlo

    return hlo.hlo_module_from_text(text).to_string()


def differs(got: np.ndarray, wanted: np.ndarray) -> str:
    """How values differ; empty where they do not."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{got.dtype}{list(got.shape)}, not {wanted.dtype}{list(wanted.shape)}"
    if wanted.dtype.kind in "biu":
        return "" if np.array_equal(got, wanted) else f"{int((got != wanted).sum())} of {got.size} integers"
    kind = np.complex128 if wanted.dtype.kind == "c" else np.float64
    x, y = got.astype(kind), wanted.astype(kind)
    if not np.array_equal(np.isnan(x), np.isnan(y)):
        return "not a number at other places"
    finite = np.isfinite(x) & np.isfinite(y)
    off, most = np.abs(x - y)[finite].max(initial=0), np.abs(y[finite]).max(initial=0)
    if not np.array_equal(x[~finite & ~np.isnan(x)], y[~finite & ~np.isnan(x)]):
        return "infinite at other places"
    return (
        f"off by {off:.3g} of {most:.3g}" if off > TOLERANCE[np.real(wanted).dtype.itemsize] * max(most, 1e-3) else ""
    )


def _flat(value: Any) -> list[Any]:
    return [x for v in value for x in _flat(v)] if isinstance(value, (tuple, list)) else [value]


def main(arguments: list[str]) -> int:
    """Prints what is wrong with each program, and how many are right."""
    targets = TARGETS
    if "--targets" in arguments:
        at = arguments.index("--targets")
        targets = tuple(arguments[at + 1].split(","))
        del arguments[at : at + 2]
    names, wrong = arguments or list(functions()), 0
    for name in names:
        for before in (False, True):
            try:
                found = list(check(name, targets, before))
            except Exception as error:  # any that is no HeronError is a fault of heron's
                where = traceback.extract_tb(error.__traceback__)[-1]
                found = [f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"[:400]]
            wrong += bool(found)
            for line in found:
                print(f"{name} ({'before' if before else 'behind'} XLA's passes): {line}", flush=True)
    print(f"{2 * len(names) - wrong} of {2 * len(names)} programs are right")
    return int(wrong > 0)


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    sys.exit(main(sys.argv[1:]))
