"""Draws calls of jax.lax, jax.numpy, jax.nn and jax.random, and runs them on heron and on JAX's CPU in one process.

``python -m tests.pjrt.differential --count 3000 --seed 7`` prints what differs. Many calls are one program, so that a
call costs a few milliseconds; where the program fails they are run one by one. Sixty-four bit types are on; what a type
or a shape does not allow JAX refuses while it traces, and such a call is drawn again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn, random

Function = Callable[..., Any]

INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS = "bfloat16 float16 float32 float64".split()
COMPLEX = "complex64 complex128".split()
TYPES = ["bool", *INTEGERS, *FLOATS, *COMPLEX]
SMALL = ["int4", "uint4", "float8_e4m3fn", "float8_e5m2"]
#: relative and absolute: what two libraries may differ by, cancellation included
TOLERANCE = {
    "bfloat16": 4e-2, "float16": 4e-3, "float32": 4e-5, "float64": 1e-11, "complex64": 2e-4, "complex128": 1e-10,
    "float8_e4m3fn": 0.2, "float8_e5m2": 0.3,
}  # fmt: skip
SHAPES: list[tuple[int, ...]] = [(), (5,), (3, 4), (2, 0, 3), (1, 7), (2, 3, 4)]
CORNERS = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.0, 3.7, 100.0, 1e-3]

ELEMENTWISE = """abs arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil conj cos cosh exp exp2 expm1 floor isfinite
isnan log log10 log1p log2 logical_not nan_to_num negative reciprocal rint round sign sin sinc sinh sqrt square tan tanh
trunc bitwise_count signbit frexp modf angle i0 deg2rad""".split()
OF_LAX = """erf erfc erf_inv lgamma digamma bessel_i0e bessel_i1e rsqrt logistic is_finite clz population_count
bitwise_not integer_pow cumsum cumprod cummax cummin cumlogsumexp""".split()
OF_NN = (
    "relu relu6 gelu silu softplus elu selu celu mish hard_swish log_sigmoid softmax log_softmax standardize".split()
)
BINARY = """add subtract multiply divide power maximum minimum arctan2 remainder fmod floor_divide divmod logaddexp
logaddexp2 hypot copysign nextafter heaviside equal less greater_equal logical_xor bitwise_and bitwise_or left_shift
right_shift gcd lcm ldexp float_power fmax fmin isclose""".split()
REDUCTIONS = """sum prod max min mean std var any all argmax argmin median nansum nanmax nanmean nanstd ptp
count_nonzero""".split()
MOVES = """sort argsort cumsum cumprod flip ravel diff trace tril triu rot90 unwrap transpose ediff1d gradient cov
diagonal nancumsum sort_complex matrix_transpose""".split()
PRODUCTS = "dot matmul inner outer kron convolve correlate vdot tensordot vecdot".split()
DISTRIBUTIONS = """uniform normal gumbel laplace logistic exponential cauchy rademacher maxwell""".split()

INDICES: list[Any] = [
    0, -1, slice(None), slice(1, None), slice(None, None, -1), slice(None, None, 2), slice(-2, None), None, ...,
    np.array([0, -1, 1]), np.array([[0], [-1]]), np.array([9, -9]), np.array([], np.int32),
]  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A function, its arguments, and what to call it in a report."""

    name: str
    function: Function
    arguments: tuple[np.ndarray, ...]


def elements(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, special: bool) -> np.ndarray:
    """Small numbers of a type; if special, with infinities, NaNs, zeros of both signs and ends of the range."""
    t = jnp.dtype(dtype)
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if jnp.issubdtype(t, jnp.integer):
        info = jnp.iinfo(t)
        drawn = np.asarray(rng.integers(max(-9, int(info.min)), min(9, int(info.max)), shape, endpoint=True))
        drawn = drawn.astype(t)
        if special and drawn.size > 1:
            drawn.flat[0], drawn.flat[1] = info.max, info.min
        return drawn
    parts = []
    for _ in range(2 if t.kind == "c" else 1):
        part = np.asarray(rng.standard_normal(shape) * rng.choice([0.4, 3.0]))
        corners = rng.choice(CORNERS, part.shape) if special else part
        parts.append(np.where(rng.random(part.shape) < 0.4, corners, part))
    if t.kind != "c":
        return parts[0].astype(t)
    numbers = np.empty(shape, t)
    numbers.real, numbers.imag = parts
    return numbers


def calls(seed: int) -> Iterator[Call]:
    """Calls without end, the same ones for a seed."""
    rng = np.random.default_rng(seed)
    while True:
        name, function, types, shapes = FAMILIES[rng.integers(len(FAMILIES))](rng)
        # zeros beside an array are multiplied by infinities or left out, as a library likes
        special = rng.random() < 0.3 and not name.startswith("conv")
        arguments = tuple(elements(rng, s, t, special) for s, t in zip(shapes, types, strict=True))
        call = Call(
            f"{name} {' '.join(f'{t}{list(s)}' for s, t in zip(shapes, types, strict=True))}", function, arguments
        )
        try:
            jax.eval_shape(function, *arguments)
        except (TypeError, ValueError, IndexError, NotImplementedError, OverflowError, AssertionError):
            continue
        yield call


# -- families: each draws a name, a function, and the types and shapes of its arguments --------------------------------
Drawn = tuple[str, Function, list[str], list[tuple[int, ...]]]


def _pick(rng: np.random.Generator, choices: list[Any]) -> Any:
    return choices[rng.integers(len(choices))]


def _one(rng: np.random.Generator) -> Drawn:
    module, names = [(jnp, ELEMENTWISE), (lax, OF_LAX), (nn, OF_NN)][rng.integers(3)]
    name = _pick(rng, names)
    further = (int(rng.integers(-3, 5)),) if name == "integer_pow" else ()
    return name, lambda x: getattr(module, name)(x, *further), [_pick(rng, TYPES)], [_pick(rng, SHAPES)]


def _two(rng: np.random.Generator) -> Drawn:
    name = _pick(rng, BINARY)
    # a zero to a complex power is 0 or NaN, as a library likes
    first = _pick(rng, TYPES[: -len(COMPLEX)] if "power" in name else TYPES)
    types = [first, first if "power" in name or rng.random() < 0.7 else _pick(rng, TYPES)]
    return name, getattr(jnp, name), types, _pick(rng, [[(5,), (5,)], [(), (3,)], [(4, 1), (2, 1, 3)], [(0,), (1,)]])


def _reduced(rng: np.random.Generator) -> Drawn:
    name, axis = _pick(rng, REDUCTIONS), _pick(rng, [None, 0, -1])
    return f"{name}({axis})", lambda x: getattr(jnp, name)(x, axis=axis), [_pick(rng, TYPES)], [_pick(rng, SHAPES)]


def _moved(rng: np.random.Generator) -> Drawn:
    name = _pick(rng, MOVES)
    return name, getattr(jnp, name), [_pick(rng, TYPES)], [_pick(rng, SHAPES)]


def _converted(rng: np.random.Generator) -> Drawn:
    source, to = _pick(rng, TYPES + SMALL), _pick(rng, TYPES + SMALL)
    return f"astype {to}", lambda x: lax.convert_element_type(x, to), [source], [_pick(rng, SHAPES)]


def _product(rng: np.random.Generator) -> Drawn:
    name, t = _pick(rng, PRODUCTS), _pick(rng, TYPES)
    shapes = _pick(rng, [[(4,), (4,)], [(3, 4), (4, 2)], [(2, 3, 3), (2, 3, 3)], [(0,), (0,)]])
    return name, getattr(jnp, name), [t, t], shapes


def _indexed(rng: np.random.Generator) -> Drawn:
    shape = _pick(rng, [(5,), (3, 4), (4, 2, 3)])
    index = tuple(_pick(rng, INDICES) for _ in shape)
    how = _pick(rng, ["get", "set", "add", "multiply", "min", "max"])
    mode = _pick(rng, [None, "clip", "wrap", "fill" if how == "get" else "drop"])

    def function(x: jax.Array) -> jax.Array:
        at = x.at[index]
        return at.get(mode=mode) if how == "get" else getattr(at, how)(jnp.asarray(2, x.dtype), mode=mode)

    return f"x.at[{index}].{how}({mode})", function, [_pick(rng, TYPES + SMALL[:2])], [shape]


def _convolved(rng: np.random.Generator) -> Drawn:
    groups, batches = _pick(rng, [(1, 1), (2, 1), (1, 2)])
    strides, dilations = (rng.integers(1, 3, 2).tolist() for _ in range(2))
    padding = _pick(rng, ["SAME", "VALID", [(1, 2), (-1, 3)]])
    lhs, rhs = (2 * batches, 3 * groups, 5, 4), (2 * groups * batches, 3, 2, 3)
    t = _pick(rng, TYPES)

    def function(x: jax.Array, y: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(
            x, y, strides, padding, None, dilations, feature_group_count=groups, batch_group_count=batches
        )

    return f"conv {strides} {dilations} {padding} {groups} {batches}", function, [t, t], [lhs, rhs]


def _windowed(rng: np.random.Generator) -> Drawn:
    t, op = _pick(rng, TYPES[1:]), _pick(rng, [lax.add, lax.mul, lax.max])
    start = {lax.add: 0, lax.mul: 1, lax.max: -9 if not t.startswith("u") else 0}[op]
    window, strides = (tuple(rng.integers(1, 4, 2).tolist()) for _ in range(2))
    padding = _pick(rng, ["SAME", "VALID", [(1, 0), (0, 2)]])

    def function(x: jax.Array) -> jax.Array:
        return lax.reduce_window(x, jnp.asarray(start, t), op, window, strides, padding)

    return f"reduce_window {op.__name__} {window} {strides} {padding}", function, [t], [(5, 6)]


def _random(rng: np.random.Generator) -> Drawn:
    name, t, seed = _pick(rng, DISTRIBUTIONS), _pick(rng, FLOATS), int(rng.integers(1000))
    kind = _pick(rng, ["threefry2x32", "rbg"])

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        key = random.key(seed, impl=kind)
        return getattr(random, name)(key, (40,), dtype=t), random.permutation(key, x), random.bits(key, (9,), "uint16")

    return f"random.{name} {t} {kind} {seed}", function, ["int32"], [(20,)]


FAMILIES = [
    _one,
    _one,
    _two,
    _two,
    _reduced,
    _moved,
    _converted,
    _product,
    _indexed,
    _indexed,
    _convolved,
    _windowed,
    _random,
]


# -- both platforms ----------------------------------------------------------------------------------------------------
def differences(count: int, seed: int, at_once: int = 40) -> Iterator[str]:
    """What differs among `count` calls, a line for each."""
    drawn = calls(seed)
    for start in range(0, count, at_once):
        batch = [next(drawn) for _ in range(min(at_once, count - start))]
        yield from _compared(batch)


def _compared(batch: list[Call]) -> Iterator[str]:
    on_heron, on_cpu = (_run(batch, platform) for platform in ("heron", "cpu"))
    if isinstance(on_heron, Exception) or isinstance(on_cpu, Exception):
        if len(batch) > 1:
            for call in batch:
                yield from _compared([call])
        elif not isinstance(on_cpu, Exception):
            yield f"{batch[0].name}: fails on heron: {str(on_heron)[:300]}"
        return
    for call, got, want in zip(batch, on_heron, on_cpu, strict=True):
        for x, y in zip(got, want, strict=True):
            if why := _difference(x, y):
                yield f"{call.name}: {why}"


def _run(batch: list[Call], platform: str) -> list[list[np.ndarray]] | Exception:
    """The results of each call as arrays; one program computes all."""

    def program(arguments: list[tuple[jax.Array, ...]]) -> list[Any]:
        return [call.function(*given) for call, given in zip(batch, arguments, strict=True)]

    with jax.default_device(jax.devices(platform)[0]):
        try:
            results = jax.jit(program)([call.arguments for call in batch])
            return [[np.asarray(leaf) for leaf in jax.tree.leaves(r)] for r in results]
        except Exception as error:  # of any kind: that the other platform has none is the finding
            return error


def _difference(x: np.ndarray, y: np.ndarray) -> str | None:
    if (x.dtype, x.shape) != (y.dtype, y.shape):
        return f"{x.dtype}{x.shape} on heron, {y.dtype}{y.shape} on the CPU"
    tolerance = TOLERANCE.get(x.dtype.name)
    if tolerance is None:
        same = x == y
    else:
        wide = [a.astype(np.complex128 if a.dtype.kind == "c" else np.float64) for a in (x, y)]
        parts = [(wide[0].real, wide[1].real), (wide[0].imag, wide[1].imag)]
        # a part beside an infinite one is nobody's
        endless = np.isinf(wide[0].real) & np.isinf(wide[1].real) | np.isinf(wide[0].imag) & np.isinf(wide[1].imag)
        with np.errstate(invalid="ignore"):
            size = np.abs(np.where(np.isfinite(wide[1]), wide[1], 0))
            near = [
                (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= tolerance * (1 + size)) for a, b in parts
            ]
        same = near[0] & near[1] | (endless if x.dtype.kind == "c" else False)
    if np.all(same):
        return None
    where = tuple(int(n) for n in np.argwhere(~np.asarray(same))[0])
    return f"at {where} {x[where]} on heron, {y[where]} on the CPU"


def main() -> int:
    """Draw, compare, print; the number of differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    from heron.pjrt import jax_plugin

    jax.config.update("jax_platforms", "heron,cpu")
    jax.config.update("jax_enable_x64", True)
    jax_plugin.initialize()
    found = 0
    for line in differences(asked.count, asked.seed):
        print(line, flush=True)
        found += 1
    print(f"{found} of {asked.count} calls differ")
    return min(found, 100)


if __name__ == "__main__":
    sys.exit(main())
