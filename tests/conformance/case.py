"""Cases: small programs with inputs, and by how much XLA's results may be off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from heron.hlo.ir.module import Module
from heron.hlo.ir.types import ElementType
from heron.hlo.text import parse
from tests.hlo.ops.agree import inputs, program


@dataclass(frozen=True)
class Closeness:
    """How near XLA's result must be to ours; both fields zero: equal, the sign of zeros included, NaN with NaN.

    Attributes:
        ulps: units in the last place of our value (of a complex number's larger part).
        floor: an absolute difference that is always allowed, for sums that cancel.
        bits: NaNs have the same bits, too.
        zeros: zeros have the same sign.
    """

    ulps: float = 0.0
    floor: float = 0.0
    bits: bool = False
    zeros: bool = True


EXACT = Closeness()


@dataclass(frozen=True)
class Case:
    """One small program.

    Attributes:
        op: the opcode it is about.
        type: the element type it is about (both are for the table).
        body: the entry's instructions as text, the last marked ROOT; names are free, they need not differ from those
            of other cases.
        arrays: what the parameters get; drawn when None.
        label: tells cases of one op and type apart.
        before: computations the body calls, as text.
        close: how near XLA must be, for all outputs.
    """

    op: str
    type: str
    body: str
    arrays: Sequence[np.ndarray] | None = None
    label: str = ""
    before: str = ""
    close: Closeness = field(default=EXACT)

    @property
    def name(self) -> str:
        return f"{self.op} {self.type} {self.label}".rstrip()

    @property
    def text(self) -> str:
        """The case as a module of its own."""
        return program(self.body, self.before)

    @cached_property
    def module(self) -> Module:
        return parse(self.text)

    @cached_property
    def inputs(self) -> list[np.ndarray]:
        return inputs(self.module) if self.arrays is None else [np.asarray(a) for a in self.arrays]


def agreement(ours: np.ndarray, theirs: np.ndarray, t: ElementType, close: Closeness) -> np.ndarray:
    """Where two results of type `t` agree."""
    if not (t.is_float or t.is_complex):
        return ours == theirs
    if close.bits:
        return _same_bits(ours, theirs)
    wide = np.complex128 if t.is_complex else np.float64
    a, b = ours.astype(wide), theirs.astype(wide)
    if t.is_complex:
        near = _near(a, b, np.maximum(np.abs(a.real), np.abs(a.imag)), t.component, close)
        return near | (_equal(a.real, b.real, close) & _equal(a.imag, b.imag, close))
    return _near(a, b, np.abs(a), t, close) & _signs(a, b, close) | _equal(a, b, close)


def _same_bits(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    a, b = (np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, x.itemsize) for x in (ours, theirs))
    return (a == b).all(-1)


def _equal(a: np.ndarray, b: np.ndarray, close: Closeness) -> np.ndarray:
    return ((a == b) & _signs(a, b, close)) | (np.isnan(a) & np.isnan(b))


def _signs(a: np.ndarray, b: np.ndarray, close: Closeness) -> np.ndarray:
    """Where zeros have the same sign."""
    return (np.signbit(a) == np.signbit(b)) | (a != 0) | (b != 0) | (not close.zeros)


def _near(a: np.ndarray, b: np.ndarray, size: np.ndarray, t: ElementType, close: Closeness) -> np.ndarray:
    with np.errstate(all="ignore"):
        allowed = close.ulps * unit(size, t) + close.floor
        return np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= allowed)


def unit(size: np.ndarray, t: ElementType) -> np.ndarray:
    """The distance between neighbours of type `t` at that magnitude, as f64."""
    import ml_dtypes

    info = ml_dtypes.finfo(t.dtype)
    with np.errstate(all="ignore"):
        exponent = np.frexp(np.where(np.isfinite(size), size, 1.0))[1] - 1
        least = np.frexp(float(info.smallest_normal))[1] - 1
        return np.ldexp(1.0, np.maximum(np.where(size == 0, least, exponent), least) - int(info.nmant))
