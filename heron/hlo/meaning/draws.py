"""Numbers drawn from distributions: Philox's bits at the place where the module's random state is, made into numbers.

The state is a counter of 128 bits that every draw advances by the counters it used, so no bits are used twice. Every
device has its own key. `rng-expander` writes the same steps in HLO: both give the same integers, and the same floats
but for the rounding of logarithm and cosine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import F32, F64, U32, U64, ElementType
from heron.hlo.meaning import bit_generators
from heron.hlo.meaning.numeric import wrap

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation

#: of the module's random state; XLA starts there too
FIRST_STATE = 0x7012395
_WORD = (1 << 64) - 1


def advanced(ev: Evaluation, by: int) -> tuple[int, int]:
    """The state's low and high word before it goes on by so many counters."""
    now = ev.rng_state
    ev.rng_state = (now + by) % (1 << 128)
    return now & _WORD, now >> 64


def counters(dims: tuple[int, ...], t: ElementType) -> int:
    """The number of 128-bit counters for that many elements; at least one."""
    return max(-(-row_major(t, *dims).num_elements * t.bits // 128), 1)


def integers(ev: Evaluation, t: ElementType, dims: tuple[int, ...], low: int, high: int) -> np.ndarray:
    """Integers of [low, high), or `low` where that is empty."""
    word = U64 if t.bits > 32 else U32
    drawn = _bits(ev, word, dims)
    start = word.dtype.type(low % (1 << word.bits))
    if low >= high:
        return wrap(np.full(dims, start), t)
    return wrap(drawn % word.dtype.type((high - low) % (1 << word.bits)) + start, t)


def uniform(ev: Evaluation, t: ElementType, dims: tuple[int, ...], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Floats of [low, high)."""
    wide = _wide(t)
    a, b = low.astype(wide.dtype), high.astype(wide.dtype)
    drawn = (_fractions(ev, wide, dims) * (b - a) + a).astype(t.dtype)
    return np.where((drawn >= high) & (high > low), low, drawn)  # what rounds up to the limit is outside


def normal(
    ev: Evaluation, t: ElementType, dims: tuple[int, ...], mean: np.ndarray, deviation: np.ndarray
) -> np.ndarray:
    """Floats by Box and Muller's transformation, of two uniform ones each."""
    wide = _wide(t)
    one = wide.dtype.type
    first, second = _fractions(ev, wide, (2, *dims))
    size = np.sqrt(np.log(one(1) - first) * one(-2))
    turned = size * np.cos(second * one(2 * np.pi))
    return np.asarray(turned * deviation.astype(wide.dtype) + mean.astype(wide.dtype)).astype(t.dtype)


def _wide(t: ElementType) -> ElementType:
    return F64 if t is F64 else F32


def _fractions(ev: Evaluation, wide: ElementType, dims: tuple[int, ...]) -> np.ndarray:
    """Floats of equal distance in [0, 1)."""
    word, kept = (U64, 53) if wide is F64 else (U32, 24)
    bits = _bits(ev, word, dims)
    return (bits >> word.dtype.type(word.bits - kept)).astype(wide.dtype) * wide.dtype.type(2.0**-kept)


def _bits(ev: Evaluation, word: ElementType, dims: tuple[int, ...]) -> np.ndarray:
    key = ev.device.replica | ev.device.partition << 32
    state = np.array([key, *advanced(ev, counters(dims, word))], np.uint64)
    return bit_generators.generate("rng_philox", state, row_major(word, *dims))[1]
