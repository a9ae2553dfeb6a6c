"""Functions of complex numbers that NumPy has not, or not to the last digits, or not at infinity.

Arrays are c128. Infinities follow Annex G of the C standard: a number with an infinite part is infinite, whatever the
other part is.
"""

from __future__ import annotations

import numpy as np

#: numbers above have no 1 beside them that counts
_LARGE = 1e6


def pair(real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    """Complex numbers from parts, without arithmetic on them (infinity times i has a NaN part)."""
    real, imaginary = np.broadcast_arrays(real, imaginary)
    result = np.empty(real.shape, np.complex128)
    result.real, result.imag = real, imaginary
    return result


def _parts(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.real(z), np.imag(z)


def divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By zero: each part of the dividend times an infinity with the sign of the divisor's real part."""
    x, y = np.broadcast_arrays(x, y)
    (a, b), (c, d) = _parts(x), _parts(y)
    result = np.divide(x, y)
    infinity = np.copysign(np.inf, c)
    result = np.where((y == 0) & ~np.isnan(a) & ~np.isnan(b), pair(infinity * a, infinity * b), result)
    above, below = np.isinf(a) | np.isinf(b), np.isinf(c) | np.isinf(d)
    u, v = _infinite_as_one(a), _infinite_as_one(b)
    over = pair(np.inf * (u * c + v * d), np.inf * (v * c - u * d))
    result = np.where(above & np.isfinite(c) & np.isfinite(d) & (y != 0), over, result)
    u, v = _infinite_as_one(c), _infinite_as_one(d)
    under = pair(0.0 * (a * u + b * v), 0.0 * (b * u - a * v))
    return np.where(below & np.isfinite(a) & np.isfinite(b), under, result)


def _infinite_as_one(x: np.ndarray) -> np.ndarray:
    """±1 for infinities, ±0 for the rest."""
    return np.copysign(np.isinf(x).astype(np.float64), x)


def sign(z: np.ndarray) -> np.ndarray:
    """``z / |z|``, part by part; zeros stay."""
    (scaled,) = _scaled(z)
    real, imaginary = _parts(scaled)
    modulus = np.hypot(real, imaginary)
    return np.where(z == 0, z, pair(real / modulus, imaginary / modulus))


def _scaled(*numbers: np.ndarray) -> list[np.ndarray]:
    """All times one power of two, element by element, so that their squares are in range."""
    sizes = [np.abs(part) for z in numbers for part in _parts(z)]
    size = np.maximum.reduce(np.broadcast_arrays(*sizes))
    by = -np.frexp(np.where(np.isfinite(size), size, 1.0))[1]
    return [pair(np.ldexp(np.real(z), by), np.ldexp(np.imag(z), by)) for z in numbers]


def reciprocal_sqrt(z: np.ndarray) -> np.ndarray:
    """Zeros that stand for parts too small have the signs of those."""
    _, y = _parts(z)
    re, im = _parts(divide(np.ones((), np.complex128), np.sqrt(z)))
    beside = np.isfinite(z) & (y != 0)
    re = np.where(beside & (re == 0), 0.0, re)
    return pair(re, np.where(beside & (im == 0), np.copysign(0.0, -y), im))


def power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``x ** 0`` and ``1 ** y`` are 1; a real positive infinity to a real power is itself or 0."""
    x, y = np.broadcast_arrays(x, y)
    (a, b), (c, d) = _parts(x), _parts(y)
    result = np.power(x, y)
    endless = np.isposinf(a) & (b == 0) & (d == 0)
    result = np.where(endless & (c > 0), x, result)
    result = np.where(endless & (c < 0), 0.0, result)
    return np.where((x == 1) | (y == 0), 1.0, result)


def exponential_minus_one(z: np.ndarray) -> np.ndarray:
    """NaN where the imaginary part is infinite, as XLA has it."""
    x, y = _parts(z)
    half = np.sin(y / 2)
    near = pair(np.expm1(x) * np.cos(y) - 2 * half * half, np.exp(x) * np.sin(y))
    result = np.where(np.isfinite(y) & (x < 700), near, np.exp(z) - 1)  # exp is in range there
    result = np.where(np.isinf(y), complex(np.nan, np.nan), result)
    return np.where(y == 0, pair(np.expm1(x), y), result)


def tangent(z: np.ndarray) -> np.ndarray:
    """NaN at the ends of the real axis, as XLA has it; Annex G leaves 0 as the imaginary part."""
    x, y = _parts(z)
    return np.where(np.isinf(x) & (y == 0), complex(np.nan, np.nan), np.tan(z))


def log_plus_one(z: np.ndarray) -> np.ndarray:
    """The logarithm of the modulus from ``|1+z|**2 - 1``, summed in twice the digits."""
    x, y = _parts(z)
    near = np.abs(x) + np.abs(y) < _LARGE
    a, b = np.where(near, x, 0.0), np.where(near, y, 0.0)
    (p, p_low), (q, q_low) = _square(a), _square(b)
    total, low = _sum(2 * a, p)
    total, lower = _sum(total, q)
    beyond = total + (low + lower + p_low + q_low)
    modulus = np.where(beyond > -0.5, 0.5 * np.log1p(beyond), np.log(np.hypot(1 + a, b)))
    return np.where(near, pair(modulus, np.arctan2(b, 1 + a)), np.log(pair(1 + x, y)))


def _square(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``x * x`` and its rounding error (Dekker)."""
    shifted = x * 134217729.0
    high = shifted - (shifted - x)
    low = x - high
    square = x * x
    return square, ((high * high - square) + 2 * high * low) + low * low


def _sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``a + b`` and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def logistic(z: np.ndarray) -> np.ndarray:
    """``1 / (1 + exp(-z))``, from the exponential that does not overflow."""
    left = np.real(z) < 0
    e = np.exp(np.where(left, z, -z))
    return divide(np.where(left, e, 1.0), 1 + e)


def arctan2(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """``-i log((x + iy) / sqrt(x**2 + y**2))``."""
    y, x = _scaled(y, x)
    (a, b), (c, d) = _parts(x), _parts(y)
    angle = np.log(divide(pair(a - d, b + c), np.sqrt(x * x + y * y)))
    return pair(np.imag(angle), -np.real(angle))
