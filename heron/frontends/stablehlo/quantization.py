"""Uniform quantized types: ``!quant.uniform<i8:f32, 0.1:-30>``, integers of a storage type that stand for real numbers.

An element q stands for ``(q - zero point) * scale``. HLO has no such types: values are kept as their integers, and
what they stand for is known of SSA names. Source: the StableHLO specification, "Types" and "Quantization computations".
"""

from __future__ import annotations

import math
import re

from heron.errors import HeronError
from heron.hlo.ir import types
from heron.hlo.ir.layout import Layout
from heron.hlo.ir.shape import Shape, array
from heron.hlo.ir.types import ElementType
from heron.records import dataclass

_SIGNS = {"i": "s", "u": "u", "ui": "u"}
_STORAGE = {f"{ours}{n}": types.by_name(f"{theirs}{n}") for ours, theirs in _SIGNS.items() for n in (2, 4, 8, 16, 32)}
_EXPRESSED = {name: types.by_name(name) for name in ("f16", "bf16", "f32", "f64")}
_FLOAT = r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"
_PAIR = re.compile(rf"\s*({_FLOAT})\s*(?::\s*(-?\d{{1,19}}))?\s*")
_TYPE = re.compile(
    r"!quant\.uniform<\s*(?P<storage>[a-z]+\d+)\s*(?:<\s*(?P<low>-?\d{1,19})\s*:\s*(?P<high>-?\d{1,19})\s*>)?\s*"
    r":\s*(?P<expressed>\w+)\s*(?::\s*(?P<axis>\d{1,9})\s*)?,\s*(?P<values>\{[^{}]*\}|[^{}<>,]+)\s*>",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Quantization:
    """The real numbers that the integers of a value represent.

    ``low``, ``high``: the range of stored integers. ``axis``: the dimension whose slices have a scale and a zero point
    each, None when all elements share one.
    """

    storage: ElementType
    expressed: ElementType
    low: int
    high: int
    axis: int | None
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]

    def same_numbers(self, other: Quantization) -> bool:
        """Whether equal integers represent equal numbers, slice by slice, for any axis of the slices."""
        return self._numbers == other._numbers

    @property
    def _numbers(self) -> tuple[object, ...]:
        return self.storage, self.expressed, self.low, self.high, self.axis is None, self.scales, self.zero_points

    def __str__(self) -> str:
        storage = self.storage.name.replace("s", "i")
        values = [f"{s:e}:{z}" if z else f"{s:e}" for s, z in zip(self.scales, self.zero_points, strict=True)]
        limits = "" if (self.low, self.high) == _range(self.storage) else f"<{self.low}:{self.high}>"
        text = values[0] if self.axis is None else "{" + ",".join(values) + "}"
        axis = "" if self.axis is None else f":{self.axis}"
        return f"!quant.uniform<{storage}{limits}:{self.expressed}{axis}, {text}>"


class QuantizedShape(Shape):
    """The shape of the integers with their quantization. Only types in a text are such: instructions have `plain`."""

    __slots__ = ("quantization", "plain")

    def __init__(self, quantization: Quantization, dims: tuple[int, ...], layout: Layout, dynamic: tuple[bool, ...]):
        super().__init__(quantization.storage, dims, layout, dynamic if any(dynamic) else (), None)
        self.quantization = quantization
        self.plain = array(quantization.storage, dims, layout, dynamic)


def plain_shape(shape: Shape) -> Shape:
    """The shape of the integers alone."""
    return shape.plain if isinstance(shape, QuantizedShape) else shape


def quantization(shape: Shape) -> Quantization | None:
    """The quantization of a type; None for a plain type."""
    return shape.quantization if isinstance(shape, QuantizedShape) else None


def parse(text: str) -> Quantization:
    """A type from its text. Raises SHLO001 (malformed), SHLO005 (types, sub-channels), SHLO004 (numbers of no use)."""
    match = _TYPE.fullmatch(text)
    if match is None:
        if text.startswith("!quant.uniform<") and "{" in text.partition(",")[0] + text.partition(",{{")[1]:
            raise HeronError("SHLO005", "quantization by blocks of several dimensions is not supported", why=text[:80])
        hint = "such as !quant.uniform<i8:f32, 0.1:-30> or !quant.uniform<i8:f32:0, {0.1:-30, 0.5}>"
        raise HeronError("SHLO001", f"'{text[:60]}' is not a quantized type", hint=hint)
    storage, expressed = _STORAGE.get(match["storage"]), _EXPRESSED.get(match["expressed"])
    if storage is None or expressed is None:
        which = match["storage"] if storage is None else match["expressed"]
        hint = f"storage is one of {', '.join(_STORAGE)}, the expressed type is one of {', '.join(_EXPRESSED)}"
        raise HeronError("SHLO005", f"the quantized type of '{which}' is not supported", hint=hint)
    pairs = [_PAIR.fullmatch(part) for part in match["values"].strip("{}").split(",")]
    axis = int(match["axis"]) if match["axis"] is not None else None
    if not all(pairs) or (axis is None) == (match["values"][0] == "{"):
        raise HeronError("SHLO001", f"'{match['values'][:60]}' are not scales and zero points", hint="such as 0.1:-30")
    scales = tuple([float(p[1]) for p in pairs if p])
    zeros = tuple([int(p[2] or 0) for p in pairs if p])
    least, most = _range(storage)
    low, high = (least, most) if match["low"] is None else (int(match["low"]), int(match["high"]))
    _check(low, high, least, most, scales, zeros)
    return Quantization(storage, expressed, low, high, axis, scales, zeros)


def _range(storage: ElementType) -> tuple[int, int]:
    bits = storage.bits
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if storage.is_signed else (0, 2**bits - 1)


def _check(low: int, high: int, least: int, most: int, scales: tuple[float, ...], zeros: tuple[int, ...]) -> None:
    if not least <= low < high <= most:
        raise HeronError("SHLO004", f"the range {low} to {high} exceeds that of the storage type, {least} to {most}")
    for scale in scales:
        if not (math.isfinite(scale) and scale > 0):
            raise HeronError("SHLO004", f"a scale is a number above zero, not {scale}")
    for zero in zeros:
        if not low <= zero <= high:
            raise HeronError("SHLO004", f"the zero point {zero} is outside the range {low} to {high}")


def shaped(q: Quantization, dims: tuple[int, ...], layout: Layout, dynamic: tuple[bool, ...]) -> QuantizedShape:
    """A tensor type. Raises SHLO004 when its slices are not as many as the scales."""
    if q.axis is not None:
        size = dims[q.axis] if q.axis < len(dims) else None
        open_ = size is not None and size < 0
        if size is None or not (open_ or size == len(q.scales)):
            has = "is none" if size is None else f"has {size} elements"
            raise HeronError("SHLO004", f"{len(q.scales)} scales are given for dimension {q.axis}, which {has}")
    return QuantizedShape(q, dims, layout, dynamic)
