"""The ops of block kernels in NumPy. The first dimension of every value is the programs that are computed at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from heron.records import dataclass
from heron.runtime.sim import ttir
from heron.runtime.sim.ttir import Op


@dataclass(frozen=True, slots=True)
class Pointers:
    """Elements of an argument, by number."""

    argument: int
    offsets: np.ndarray


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A matrix in an argument: where it begins, its rows and columns, and elements from one to the next."""

    base: Pointers
    sizes: tuple[np.ndarray, np.ndarray]
    strides: tuple[np.ndarray, np.ndarray]


def _constant(op: Op) -> np.ndarray:
    value = ttir.constant(op)
    return np.broadcast_to(value.reshape(1, *([1] * len(op.shape) if value.size == 1 else op.shape)), (1, *op.shape))


def _move(change: Callable[[Op, np.ndarray], np.ndarray]) -> Callable[..., Any]:
    """A change of form, of values or of pointers."""

    def run(op: Op, x: Any) -> Any:
        return Pointers(x.argument, change(op, x.offsets)) if isinstance(x, Pointers) else change(op, x)

    return run


def _splat(op: Op, x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x.reshape(-1, *[1] * len(op.shape)), (len(x), *op.shape))


def _dot(op: Op, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """As matrix units do: whole sums in the accumulator's type. Integers in f64, which holds them exactly."""
    if op.attributes["inputPrecision"] == "tf32x3":
        (a, a_rest), (b, b_rest) = _parts(a), _parts(b)
        return np.matmul(a, b) + (np.matmul(a, b_rest) + np.matmul(a_rest, b)) + c
    if c.dtype.kind == "f":
        return np.matmul(a.astype(c.dtype), b.astype(c.dtype)) + c
    return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(c.dtype) + c


def _parts(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers of 11 bits whose sum is x, nearly."""
    first = _tf32(x)
    return first, _tf32(x - first)


def _tf32(x: np.ndarray) -> np.ndarray:
    """As a matrix unit reads f32: the lower 13 bits are not there."""
    return (np.ascontiguousarray(x).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _unsigned(f: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def run(_: Op, *x: np.ndarray) -> np.ndarray:
        signed = x[0].dtype
        return f(*[v.view(f"u{v.itemsize}") for v in x]).view(signed)

    return run


def _plain(f: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda _, *x: f(*x)


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Toward zero. A quotient by 0 may be anything."""
    b = np.where(b == 0, 1, b).astype(b.dtype)
    quotient = np.floor_divide(np.abs(a), np.abs(b))
    return (np.sign(a) * np.sign(b) * quotient).astype(a.dtype)


def _rest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a - _divide(a, b) * b


def _cast(op: Op, x: np.ndarray) -> np.ndarray:
    return x.astype(op.dtype)


def _cast_unsigned(op: Op, x: np.ndarray) -> np.ndarray:
    return _cast(op, x if x.dtype == bool else x.view(f"u{x.itemsize}"))


def _extend_signed(op: Op, x: np.ndarray) -> np.ndarray:
    return _cast(op, -x.astype(np.int8) if x.dtype == bool else x)


def _to_integer(op: Op, x: np.ndarray) -> np.ndarray:
    """Numbers outside the type give any value."""
    dtype = op.dtype
    wide = np.nan_to_num(np.trunc(x.astype(np.float64)))
    return np.clip(wide, -(2.0**63), 2.0**63 - 1024).astype(np.int64).astype(dtype)


def _to_unsigned(op: Op, x: np.ndarray) -> np.ndarray:
    wide = np.nan_to_num(np.trunc(x.astype(np.float64)))
    dtype = op.dtype
    return np.clip(wide, 0, 2.0**64 - 2048).astype(np.uint64).astype(f"u{dtype.itemsize}").view(dtype)


def _bitcast(op: Op, x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(op.dtype)


_COMPARE: dict[str, Callable[..., np.ndarray]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def _compare_integers(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    name = op.text.partition(",")[0]
    if name.startswith("u") or a.dtype == bool:
        a, b = (v.view(f"u{v.itemsize}") for v in (a, b))
    return _COMPARE[name.removeprefix("s").removeprefix("u")](a, b)


def _compare_floats(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`o…` need numbers, `u…` are the same or no number; `ord` and `uno` ask for that alone."""
    name, unordered = op.text.partition(",")[0], np.isnan(a) | np.isnan(b)
    if name in ("ord", "uno"):
        return unordered if name == "uno" else ~unordered
    found = _COMPARE[name[1:]](a, b)
    return found | unordered if name.startswith("u") else found & ~unordered


def _shift(f: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda _, a, b: np.where((b < 0) | (b >= a.itemsize * 8), 0, f(a, b)).astype(a.dtype)


def _shift_right(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a.view(f"u{a.itemsize}") >> b.view(f"u{b.itemsize}")).view(a.dtype)


def _function(op: Op, *x: np.ndarray) -> np.ndarray:
    """A function of libdevice: computed in f64, and rounded once."""
    name = op.attributes["symbol"].removeprefix("__nv_")
    if x[0].dtype == np.float32:
        name = name[:-1]
    return _FUNCTIONS[name](*[v.astype(np.float64) for v in x]).astype(x[0].dtype)


def _erf(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    return erf(x)


def _half_away(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "log10": np.log10, "pow": np.power, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "sinh": np.sinh,
    "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": _erf, "cbrt": np.cbrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt, "rint": np.rint, "round": _half_away, "trunc": np.trunc,
    "copysign": np.copysign, "fmod": np.fmod,
}  # fmt: skip

OPS: dict[str, Callable[..., Any]] = {
    "arith.constant": _constant,
    "tt.make_range": lambda op: np.arange(op.shape[0], dtype=np.int32)[None],
    "tt.splat": _move(_splat),
    "tt.expand_dims": _move(lambda op, x: np.expand_dims(x, op.number("axis") + 1)),
    "tt.broadcast": _move(lambda op, x: np.broadcast_to(x, (len(x), *op.shape))),
    "tt.trans": _move(lambda op, x: x.transpose(0, *[int(n) + 1 for n in op.attributes["order"].split(",")])),
    "tt.make_tensor_descriptor": lambda _, p, m, n, by_row, by_column: Descriptor(p, (m, n), (by_row, by_column)),
    "tt.addptr": lambda _, p, x: Pointers(p.argument, p.offsets + x),
    "tt.dot": _dot,
    "tt.bitcast": _bitcast,
    "tt.fp_to_fp": _cast,
    "tt.precise_divf": _plain(np.divide),
    "tt.precise_sqrt": _plain(np.sqrt),
    "tt.extern_elementwise": _function,
    "arith.addf": _plain(np.add),
    "arith.subf": _plain(np.subtract),
    "arith.mulf": _plain(np.multiply),
    "arith.divf": _plain(np.divide),
    "arith.maximumf": _plain(np.maximum),
    "arith.minimumf": _plain(np.minimum),
    "arith.maxnumf": _plain(np.fmax),
    "arith.minnumf": _plain(np.fmin),
    "math.fma": lambda _, a, b, c: (a.astype(np.float64) * b + c).astype(a.dtype),
    "math.absf": _plain(np.abs),
    "math.floor": _plain(np.floor),
    "math.ceil": _plain(np.ceil),
    "arith.cmpf": _compare_floats,
    "arith.cmpi": _compare_integers,
    "arith.select": _plain(np.where),
    "arith.addi": _plain(np.add),
    "arith.subi": _plain(np.subtract),
    "arith.muli": _plain(np.multiply),
    "arith.divsi": _plain(_divide),
    "arith.remsi": _plain(_rest),
    "arith.divui": _unsigned(_divide),
    "arith.remui": _unsigned(_rest),
    "arith.maxsi": _plain(np.maximum),
    "arith.minsi": _plain(np.minimum),
    "arith.maxui": _unsigned(np.maximum),
    "arith.minui": _unsigned(np.minimum),
    "arith.andi": _plain(np.bitwise_and),
    "arith.ori": _plain(np.bitwise_or),
    "arith.xori": _plain(np.bitwise_xor),
    "arith.shli": _shift(np.left_shift),
    "arith.shrsi": _plain(lambda a, b: np.right_shift(a, np.minimum(b, a.itemsize * 8 - 1))),
    "arith.shrui": _shift(_shift_right),
    "arith.extsi": _extend_signed,
    "arith.extui": _cast_unsigned,
    "arith.trunci": _cast,
    "arith.extf": _cast,
    "arith.truncf": _cast,
    "arith.sitofp": _extend_signed,
    "arith.uitofp": _cast_unsigned,
    "arith.fptosi": _to_integer,
    "arith.fptoui": _to_unsigned,
}
