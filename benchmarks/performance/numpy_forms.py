"""The programs that have a plain NumPy form: what a user would write without a compiler."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

_ONE, _TWO = np.float32(1), np.float32(2)


def _gelu(x: np.ndarray) -> np.ndarray:
    inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
    return np.float32(0.5) * x * (_ONE + np.tanh(inner))


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _layernorm(x: np.ndarray, g: np.ndarray, b: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return centred / np.sqrt(variance + np.float32(1e-5)) * g + b


def _heat(u: np.ndarray) -> tuple[int, np.ndarray, Any]:
    steps = 200 if u.shape[0] > 100 else 20
    i, change = 0, np.float32(1)
    while i < steps and change > 1e-4:
        new = u.copy()
        new[1:-1, 1:-1] = np.float32(0.25) * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        change, u, i = np.abs(new - u).max(), new, i + 1
    return i, u, change


def _mandelbrot(real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    x, y, count = np.zeros_like(real), np.zeros_like(real), np.zeros(real.shape, np.int32)
    for _ in range(64 if real.shape[0] > 100 else 16):
        x2, y2 = x * x, y * y
        live = x2 + y2 < 4
        x, y = np.where(live, x2 - y2 + real, x), np.where(live, _TWO * x * y + imaginary, y)
        count += live
    return count


FORMS: dict[str, Callable[..., Any]] = {
    "gelu_f32": _gelu,
    "softmax": _softmax,
    "layernorm": _layernorm,
    "matmul_f32": lambda a, b: a @ b,
    "row_sum": lambda x: x.sum(1),
    "col_sum": lambda x: x.sum(0),
    "cumsum1": lambda x: np.cumsum(x, 1),
    "heat_while": _heat,
    "mandelbrot": _mandelbrot,
    # other numbers than the program's: NumPy's own generator
    "uniform": lambda _: np.random.default_rng(7).random(1 << 24, dtype=np.float32),
}
