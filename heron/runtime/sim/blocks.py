"""Block kernels on the simulated GPU: the ops of their text in NumPy, for many programs of the grid at once.

A value has the programs as its first dimension (of size 1 where all have the same). Accesses outside an argument are
found always; with the check for races also elements that two programs write.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.runtime.sim import ttir
from heron.runtime.sim.findings import Facts
from heron.runtime.sim.state import CHECKS, selected
from heron.runtime.sim.ttir import Body, Op

#: elements of a tile that are computed at once, over all programs
_AT_ONCE = 1 << 21
#: what ends a body, and hands on values
_ENDS = frozenset({"scf.yield", "tt.return", "tt.reduce.return"})


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


class BlockKernel:
    """A block kernel, ready to launch on ``programs`` programs."""

    def __init__(self, text: str, programs: int, checks: str = "", facts: Facts | None = None) -> None:
        """``text``: what Triton would get. Raises ValueError for what is no block kernel."""
        self.kernel = ttir.read(text)
        self.name, self.programs = self.kernel.name, programs
        self.checks, self.facts = selected(checks), facts or Facts()
        ops = list(_all(self.kernel.body))
        if unknown := {op.name for op in ops} - _OPS.keys() - _ENDS - _OF_RUN:
            raise ValueError(f"there is no op {min(unknown)} in block kernels")
        self.at_once = max(1, _AT_ONCE // max((prod(op.shape) for op in ops), default=1))

    def fills(self, argument: int) -> bool:
        """Is that argument the kernel's to write, and never read by it?"""
        return argument in self.facts.outputs

    def __call__(self, buffers: Sequence[tuple[int, int]], shadow: object = None, valid: Sequence[int] = ()) -> None:
        """Run the grid on (address, bytes) of every argument; ``valid``: see `SimKernel`.

        Raises RUN075 for an access outside its argument, RUN076 for an element that two programs write.
        """
        arrays = [_array(*b, ttir.dtype_of(t)) for b, t in zip(buffers, self.kernel.types, strict=True)]
        looks = bool(self.checks & CHECKS["races"]) or any(valid)
        written = [np.zeros(a.size, bool) if looks else None for a in arrays]
        for first in range(0, self.programs, self.at_once):
            numbers = np.arange(first, min(first + self.at_once, self.programs), dtype=np.int32)
            with np.errstate(all="ignore"):
                _Run(self, arrays, written, numbers).block(self.kernel.body)
        for address, array, done in zip(valid, arrays, written, strict=False):
            if address and done is not None:
                _array(address, array.nbytes, np.dtype(np.uint8))[np.repeat(done, array.itemsize)] = 1


class _Run:
    """Some programs of a launch."""

    def __init__(
        self, kernel: BlockKernel, arrays: list[np.ndarray], written: list[np.ndarray | None], numbers: np.ndarray
    ) -> None:
        self.kernel, self.arrays, self.written, self.numbers = kernel, arrays, written, numbers
        self.of: dict[str, Any] = {}
        for n, argument in enumerate(kernel.kernel.body.arguments):
            self.of[argument] = Pointers(n, np.zeros(1, np.int64))

    def block(self, body: Body) -> list[Any]:
        """Run a body's ops; what its last one hands on."""
        for op in body.ops:
            given = [self.of[o] for o in op.operands]
            if op.name in _ENDS:
                return given
            match op.name:
                case "tt.get_program_id":
                    results = [self.numbers]
                case "tt.load":
                    results = [self.load(op, *given)]
                case "tt.descriptor_load":
                    results = [self.fetch(op, *given)]
                case "tt.store":
                    results = []
                    self.store(op, *given)
                case "scf.for":
                    results = self.loop(op, *given)
                case "tt.reduce":
                    results = [self.reduce(op, given[0])]
                case _:
                    results = [_OPS[op.name](op, *given)]
            self.of.update(zip(op.results, results, strict=True))
        return []

    def loop(self, op: Op, lo: np.ndarray, hi: np.ndarray, step: np.ndarray, *carried: Any) -> list[Any]:
        values = list(carried)
        assert op.body is not None
        for k in range(int(lo[0]), int(hi[0]), int(step[0])):
            self.of.update(zip(op.body.arguments, [np.array([k], np.int32), *values], strict=True))
            values = self.block(op.body)
        return values

    def reduce(self, op: Op, x: np.ndarray) -> np.ndarray:
        """Halves combined until one is left, as a GPU does it."""
        body, axis = op.body, op.number("axis") + 1
        assert body is not None
        while x.shape[axis] > 1:
            halves = np.split(x, 2, axis)
            self.of.update(zip(body.arguments, halves, strict=True))
            (x,) = self.block(body)
        return x.squeeze(axis)

    def load(self, op: Op, at: Pointers, mask: np.ndarray | None = None, other: Any = None) -> np.ndarray:
        offsets, mask = self._inside(op, at, mask)
        found = self.arrays[at.argument][offsets]
        return found if mask is None else np.where(mask, found, other)

    def fetch(self, op: Op, d: Descriptor, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        """A tile of a matrix by its descriptor: what lies outside the matrix is 0."""
        offsets, mask = d.base.offsets.reshape(-1, 1, 1), np.ones((1, 1, 1), bool)
        for n, first in enumerate((row, column)):
            places = first.reshape(-1, 1) + np.arange(op.shape[n])
            places = places[:, :, None] if n == 0 else places[:, None, :]
            offsets = offsets + places * d.strides[n].reshape(-1, 1, 1)
            mask = mask & (places >= 0) & (places < d.sizes[n].reshape(-1, 1, 1))
        return self.load(op, Pointers(d.base.argument, offsets), mask, self.arrays[d.base.argument].dtype.type(0))

    def store(self, op: Op, at: Pointers, value: np.ndarray, mask: np.ndarray | None = None) -> None:
        offsets, mask = self._inside(op, at, mask)
        shape = (len(self.numbers), *np.broadcast_shapes(offsets.shape, value.shape)[1:])
        offsets, value = np.broadcast_to(offsets, shape), np.broadcast_to(value, shape)
        if mask is not None:
            mask = np.broadcast_to(mask, shape)
            offsets, value = offsets[mask], value[mask]
        self._note(op, at.argument, offsets.reshape(-1))
        self.arrays[at.argument][offsets] = value

    def _inside(self, op: Op, at: Pointers, mask: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """Offsets that may be used; RUN075 when one that is wanted lies outside."""
        size = self.arrays[at.argument].size
        outside = (at.offsets < 0) | (at.offsets >= size)
        if mask is None:
            if outside.any():
                raise self._error("RUN075", op, at, int(at.offsets[outside].flat[0]))
            return at.offsets, None
        wanted = outside & mask
        if wanted.any():
            offsets = np.broadcast_to(at.offsets, wanted.shape)
            raise self._error("RUN075", op, at, int(offsets[wanted].flat[0]))
        return np.where(outside, 0, at.offsets), mask

    def _note(self, op: Op, argument: int, offsets: np.ndarray) -> None:
        written = self.written[argument]
        if written is None:
            return
        if not self.kernel.checks & CHECKS["races"]:
            written[offsets] = True
            return
        elements, counts = np.unique(offsets, return_counts=True)
        twice = elements[(counts > 1) | written[elements]]
        if twice.size:
            raise self._error("RUN076", op, Pointers(argument, offsets), int(twice[0]))
        written[elements] = True

    def _error(self, code: str, op: Op, at: Pointers, element: int) -> HeronError:
        facts, size = self.kernel.facts, self.arrays[at.argument].size
        known = at.argument < len(facts.arguments)
        name = facts.arguments[at.argument][0] if known else f"argument {at.argument}"
        what = f"element {element} of {name}, which has {size}"
        story = "is outside" if code == "RUN075" else "is written by two programs"
        return HeronError(code, f"block kernel '{self.kernel.name}': {what}, {story}", where=f"{op.name}: {facts.hlo}")


# -- ops ---------------------------------------------------------------------------------------------------------------


def _array(address: int, size: int, dtype: np.dtype) -> np.ndarray:
    whole = size // dtype.itemsize * dtype.itemsize
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))[:whole].view(dtype)


def _all(body: Body) -> Iterator[Op]:
    """The ops of a body and of those in it."""
    for op in body.ops:
        yield op
        if op.body is not None:
            yield from _all(op.body)


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
    """Toward zero. What is divided by 0 is nobody's."""
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
    """Conversion to integers; values out of range are undefined."""
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

_OPS: dict[str, Callable[..., Any]] = {
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
#: ops that a run does itself
_OF_RUN = frozenset({"tt.get_program_id", "tt.load", "tt.store", "tt.descriptor_load", "scf.for", "tt.reduce"})
