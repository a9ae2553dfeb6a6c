"""Fourier transforms of every kind and length, and random bits of every count."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import numpy as np

from tests.sizes.case import EDGES, LONG, Case, program, shape, together, varied

_LENGTHS = (*range(1, 34), 48, 49, 60, 63, 64, 65, 97, 100, 101, 121, 127, 128, 129, 169, 243, 255, 256, 257, 343, 509, 512, 625, 1000, 1001, 1009, 1021, 1024, 2039, 2048, 2310, 4096, 4099, 10007)  # fmt: skip


def cases() -> Iterator[Case]:
    for length in _LENGTHS:
        yield _transform("FFT", (3,), (length,), "c64")
        yield _transform("IFFT", (), (length,), "c64" if length % 2 else "c128")
        yield _transform("RFFT", (2,), (length,), "f32")
        yield _transform("IRFFT", (2,), (length,), "f32" if length % 3 else "f64")
    draw = random.Random(0)
    for _ in range(40):
        rank = draw.randint(2, 3)
        lengths = tuple(draw.choice((1, 2, 3, 5, 7, 8, 9, 16, 17, 31, 33)) for _ in range(rank))
        kind = draw.choice(("FFT", "IFFT", "RFFT", "IRFFT"))
        yield _transform(kind, draw.choice(((), (0,), (1,), (2,), (3, 2))), lengths, draw.choice(("f32", "f64")))
    for size in LONG[:-1]:
        yield _bits("rng_three_fry", "u32", (size,), 2)
        yield _bits("rng_philox", "u32", (size,), 3)
    for size in EDGES:
        yield _bits("rng_three_fry", "u64", (3, size), 2)
        yield _bits("rng_default", "u8", (size, 3), 3)


def _transform(kind: str, batch: tuple[int, ...], lengths: tuple[int, ...], t: str) -> Case:
    real, complexes = {"f32": ("f32", "c64"), "c64": ("f32", "c64")}.get(t, ("f64", "c128"))
    full, half = (*batch, *lengths), (*batch, *lengths[:-1], lengths[-1] // 2 + 1)
    operand, result = {
        "FFT": ((complexes, full), (complexes, full)),
        "IFFT": ((complexes, full), (complexes, full)),
        "RFFT": ((real, full), (complexes, half)),
        "IRFFT": ((complexes, half), (real, full)),
    }[kind]
    text = program(
        [shape(*operand)], shape(*result), f"fft(p0), fft_type={kind}, fft_length={{{','.join(map(str, lengths))}}}"
    )
    error = 4 + 4 * math.log2(max(math.prod(lengths), 1))
    inputs = together(varied(*operand))
    return Case("fft", f"{kind} {operand[0]} {batch} {lengths}", text, inputs, error=error, work=math.prod(full) * 20)


def _bits(algorithm: str, t: str, dims: tuple[int, ...], words: int) -> Case:
    state = f"u64[{words}]{{0}}"
    text = program([state], f"({state}, {shape(t, dims)})", f"rng-bit-generator(p0), algorithm={algorithm}")
    key = together(lambda rng: rng.integers(0, 1 << 63, size=words).astype(np.uint64))
    return Case("rng-bit-generator", f"{algorithm} {t} {dims}", text, key, work=math.prod(dims) * 20)
