"""Counter-based random bits: Threefry-2x32 and Philox-4x32, laid out as XLA lays them out, bit for bit.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC11). The state is (key, counter) in 64-bit
words: Philox counts in 128 bits (with a two-word state, the key is the upper half of the counter as well).
"""

from __future__ import annotations

import numpy as np

from heron.hlo.ir.shape import Shape
from heron.hlo.meaning.numeric import wrap

_THREEFRY_TURNS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY = 0x1BD11BDA
_PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_PHILOX_STEPS = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)


def generate(algorithm: str, state: np.ndarray, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """New state and random bits of `shape` (narrow types keep the low bits of 32). The default is Philox."""
    words = np.ascontiguousarray(state).view(np.uint64)
    make = _threefry_bits if algorithm == "rng_three_fry" else _philox_bits
    after, bits = make(words, shape.dims, 64 if shape.element_type.bits == 64 else 32)
    t = shape.element_type
    if t.bits < 8:
        return after.view(state.dtype), wrap(bits, t)
    if bits.dtype.itemsize > t.dtype.itemsize:
        bits = bits.astype(f"u{t.dtype.itemsize}")
    return after.view(state.dtype), bits.view(t.dtype)


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper 32 bits."""
    return (x & _LOW).astype(np.uint32), (x >> np.uint64(32)).astype(np.uint32)


def _whole(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))


# -- Threefry -------------------------------------------------------------------------------------------------------
def threefry(x: tuple[np.ndarray, np.ndarray], key: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """20 rounds on counters `x`."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ np.uint32(_THREEFRY_PARITY))
    a, b = x[0] + keys[0], x[1] + keys[1]
    for group in range(5):
        for turn in _THREEFRY_TURNS[group % 2]:
            a = a + b
            b = ((b << np.uint32(turn)) | (b >> np.uint32(32 - turn))) ^ a
        a = a + keys[(group + 1) % 3]
        b = b + keys[(group + 2) % 3] + np.uint32(group + 1)
    return a, b


def _threefry_bits(words: np.ndarray, dims: tuple[int, ...], width: int) -> tuple[np.ndarray, np.ndarray]:
    """One counter a 64-bit element, or one for two 32-bit elements next to each other along one dimension."""
    split = split_dimension(dims) if width == 32 else None
    counted = dims if split is None else (*dims[:split], (dims[split] + 1) // 2, *dims[split + 1 :])
    count = int(np.prod(counted, dtype=np.int64))
    counters = words[1] + np.arange(count, dtype=np.uint64).reshape(counted)
    a, b = threefry(_halves(counters), _halves(words[:1]))
    after = np.array([words[0], words[1] + np.uint64(count)], np.uint64)
    if width == 64:
        return after, _whole(a, b).reshape(dims)
    if split is None:
        return after, a.reshape(dims)
    pairs = np.stack([a, b], split + 1).reshape(*dims[:split], 2 * counted[split], *dims[split + 1 :])
    return after, pairs[(slice(None),) * split + (slice(0, dims[split]),)]


def split_dimension(dims: tuple[int, ...]) -> int | None:
    """The first even dimension, else the largest."""
    if not dims:
        return None
    even = [d for d, n in enumerate(dims) if n % 2 == 0]
    return even[0] if even else max(range(len(dims)), key=lambda d: dims[d])


# -- Philox ---------------------------------------------------------------------------------------------------------
def _philox(x: list[np.ndarray], key: tuple[np.ndarray, np.ndarray]) -> list[np.ndarray]:
    """10 rounds on 128-bit counters `x`, lowest word first."""
    k0, k1 = key
    for _ in range(10):
        low0, high0 = _halves(x[0].astype(np.uint64) * np.uint64(_PHILOX_MULTIPLIERS[0]))
        low1, high1 = _halves(x[2].astype(np.uint64) * np.uint64(_PHILOX_MULTIPLIERS[1]))
        x = [high1 ^ x[1] ^ k0, low1, high0 ^ x[3] ^ k1, low0]
        k0, k1 = k0 + np.uint32(_PHILOX_STEPS[0]), k1 + np.uint32(_PHILOX_STEPS[1])
    return x


def _philox_bits(words: np.ndarray, dims: tuple[int, ...], width: int) -> tuple[np.ndarray, np.ndarray]:
    """One counter for four 32-bit or two 64-bit elements, next to each other."""
    key, low, high = words if words.size == 3 else (words[0], words[1], words[0])
    size = int(np.prod(dims, dtype=np.int64))
    count = -(-size * (width // 32) // 4)
    lows = low + np.arange(count, dtype=np.uint64)
    highs = high + (lows < low).astype(np.uint64)
    x = _philox([*_halves(lows), *_halves(highs)], _halves(np.atleast_1d(key)))
    if width == 64:
        x = [_whole(x[0], x[1]), _whole(x[2], x[3])]
    bits = np.stack(x, 1).reshape(-1)[:size].reshape(dims)
    end = low + np.uint64(count)
    after = [key, end, high + np.uint64(end < low)]
    return np.array(after[: words.size], np.uint64), bits
