"""Changes of type: convert between all pairs, bitcast-convert of all widths, reduce-precision of all formats."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from heron.hlo.ir import types
from heron.hlo.ir.types import ElementType
from tests.conformance import values
from tests.conformance.case import Case, Closeness
from tests.conformance.values import ALL

BITS = Closeness(bits=True)


#: types whose precision is reduced: XLA computes the 8-bit ones as f16, f8e8m0fnu as f32
REDUCED = ["f8e5m2", "f8e4m3fn", "f8e8m0fnu", "f16", "bf16", "f32", "f64"]


def cases(full: bool = False) -> Iterator[Case]:
    """All cases; `full` adds all values of 16-bit types, random ones, and all formats of reduce-precision."""
    for source in ALL:
        yield from conversions(source, full)
        yield from bitcasts(source)
    for name in REDUCED:
        yield from reductions(name, full)


def conversions(source: str, full: bool = False) -> Iterator[Case]:
    for to in ALL:
        yield _convert(source, to, full)


def bitcasts(source: str) -> Iterator[Case]:
    for to in ALL:
        if to != source:
            yield from _bitcast_convert(source, to)


def reductions(name: str, full: bool = False) -> Iterator[Case]:
    for exponent in range(1, 12) if full else (1, 2, 4, 5, 8, 11):
        for mantissa in range(53) if full else (0, 1, 3, 7, 10, 23, 52):
            yield _reduce_precision(name, exponent, mantissa)


# -- convert --------------------------------------------------------------------------------------------------------
def _convert(source: str, to: str, full: bool) -> Case:
    x = source_values(types.by_name(source), types.by_name(to), full)
    body = f" p = {source}[{x.size}] parameter(0)\n ROOT r = {to}[{x.size}] convert(p)"
    return Case("convert", source, body, [x], f"to {to}")


def source_values(source: ElementType, to: ElementType, full: bool = False) -> np.ndarray:
    """Corners of the source, and values at, between and next to values of the target."""
    if source.bits <= 8 or (full and source.bits == 16):
        return values.every(source.name)
    own = values.corners(source.name)
    if full:
        own = np.concatenate([own, values.scattered(source.name, 4000)])
    if source.is_complex:
        return own
    targets = values.every(to.name) if to.bits <= 8 else values.corners(to.name)
    wide = np.real(targets).astype(np.float64)
    wide = np.unique(wide[np.isfinite(wide)])
    halves = wide[1:] / 2 + wide[:-1] / 2
    with np.errstate(over="ignore"):
        between = np.concatenate([wide, halves, wide[-1:] * 1.5, wide[-1:] * 1.0625, wide[-1:] * 1.03125])
    if source.is_integer:
        low, high = int(own.min()), int(own.max())
        whole = [*map(int, np.rint(between[np.isfinite(between)]).tolist()), *_halfway(to)]
        return np.concatenate([own, np.array([v for v in whole if low <= v <= high], own.dtype)])
    with np.errstate(all="ignore"):
        near = between.astype(source.dtype)
        beside = [_next(near, 1), _next(near, -1)]
    return np.concatenate([own, near, *beside])


def _halfway(t: ElementType) -> list[int]:
    """Integers at and next to the middle between two floats of the type."""
    if not t.is_float or t.bits <= 8:
        return []
    digits = int(ml_dtypes.finfo(t.dtype).nmant) + 1
    middles = [(1 << digits | low) << shift for low in (1, 3) for shift in range(63 - digits)]
    return [s * (m + by) for m in middles for by in (-1, 0, 1) for s in (1, -1)]


def _next(x: np.ndarray, by: int) -> np.ndarray:
    """The neighbours further from zero (`by` 1) or nearer to it."""
    bits = x.view(f"u{x.itemsize}").copy()
    sign = bits.dtype.type(1 << (x.itemsize * 8 - 1))
    inside = (bits & ~sign != 0) & np.isfinite(x.astype(np.float64))
    bits[inside] += bits.dtype.type(by % (1 << (x.itemsize * 8)))
    return bits.view(x.dtype)


# -- bits -----------------------------------------------------------------------------------------------------------
def _bitcast_convert(source: str, to: str) -> Iterator[Case]:
    old, new = types.by_name(source), types.by_name(to)
    if old.is_complex != new.is_complex or "pred" in (source, to) and old.bits != new.bits:
        return
    wide, narrow = max(old.bits, new.bits), min(old.bits, new.bits)
    if wide % narrow:
        return
    ratio = wide // narrow
    n = 24
    before = f"[{n}]" if old.bits >= new.bits else f"[{n},{ratio}]"
    after = f"[{n}]" if old.bits <= new.bits else f"[{n},{ratio}]"
    count = n if old.bits >= new.bits else n * ratio
    x = _pattern(source, count).reshape([int(d) for d in before[1:-1].split(",")])
    body = f" p = {source}{before} parameter(0)\n ROOT r = {to}{after} bitcast-convert(p)"
    yield Case("bitcast-convert", source, body, [x], f"to {to}", close=BITS)


@np.errstate(invalid="ignore")
def _pattern(name: str, count: int) -> np.ndarray:
    x = values.scattered(name, count)
    kind = types.by_name(name)
    if kind.is_float and kind.bits >= 16:  # signalling NaNs do not survive being passed on
        x = np.where(np.isnan(x.astype(np.float64)), x.dtype.type(1.5), x)
    return x


# -- rounding -------------------------------------------------------------------------------------------------------
def _reduce_precision(name: str, exponent: int, mantissa: int) -> Case:
    """Values about the ends of the range and the halves of the format."""
    t = types.by_name(name)
    bias = (1 << (exponent - 1)) - 1
    info = ml_dtypes.finfo(t.dtype)
    with np.errstate(all="ignore"):
        powers = np.ldexp(
            1.0, np.clip(np.array([-bias - 1, -bias, 1 - bias, 2 - bias, 0, bias - 1, bias, bias + 1]), -1074, 1023)
        )
        steps = 2.0 ** -np.array([mantissa, mantissa + 1, mantissa + 2, int(info.nmant)], float)
        fractions = np.concatenate([[1.0], 1 + steps, 1 + 3 * steps, 2 - steps])
        x = np.multiply.outer(powers, fractions).reshape(-1)
        x = np.concatenate([x, -x]).astype(t.dtype)
    x = np.concatenate([x, values.corners(name)])
    body = f" p = {name}[{x.size}] parameter(0)\n ROOT r = {name}[{x.size}] reduce-precision(p), exponent_bits={exponent}, mantissa_bits={mantissa}"
    return Case("reduce-precision", name, body, [x], f"e{exponent}m{mantissa}")
