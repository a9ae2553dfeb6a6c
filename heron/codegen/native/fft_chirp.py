"""Fourier transforms of lengths with large prime factors: convolutions with a chirp, by transforms of another length.

As ``2 j k == j^2 + k^2 - (k - j)^2``, the transform of x is the convolution of ``x[j] w[j]`` with the conjugates of w,
times w, where ``w[k] = exp(-pi i k^2 / n)``. The convolution is a product between two transforms of a length that has
small factors alone and room for both sides of w. Around the passes of these are three more passes.

Source: L. Bluestein, A linear filtering approach to the computation of discrete Fourier transform, 1970.
"""

from __future__ import annotations

from functools import cache
from math import log2
from typing import Any

import numpy as np

from heron.codegen.native.fft_passes import Vectors, factors
from heron.hlo.ir.types import ElementType

#: the passes before, between and after the two transforms: ``void f(ptr from, ptr to, ptr table, i64 n, i64 length)``
CHIRP_PASSES = ("enter", "convolve", "leave")


#: the primes of the transforms' lengths: a pass of a larger one takes more time than a longer line
_PRIMES = (2, 3, 5, 7, 11, 13)


@cache
def room(n: int, multiple: int = 1) -> int:
    """The length of the transforms for a line of `n` elements: the `multiple` with the least work."""
    least = -(-(2 * n - 1) // multiple) * multiple
    lengths = _products(max(4 * n, least + 1) - 1)
    return min((x for x in lengths if x >= least and x % multiple == 0), key=work_at)


def _products(most: int) -> list[int]:
    """The products of those primes up to a number."""
    found = [1]
    for prime in _PRIMES:
        for x in found:  # also those that join meanwhile: powers of the prime
            if x * prime <= most:
                found.append(x * prime)
    return found


def work_at(length: int) -> float:
    """Of a transform of a length that has passes."""
    return length * sum(map(work, factors(length) or ()))


def work_of(n: int) -> float:
    """The work of the two transforms for a line of `n` elements."""
    return 2 * work_at(room(n))


def work(radix: int) -> float:
    """Of the pass of a factor, for each element: its memory and its butterfly."""
    return 3 + (radix if radix % 2 else log2(radix))


@cache
def chirp(n: int, element: ElementType) -> np.ndarray:
    """``exp(-pi i k^2 / n)`` for k < n, as pairs of parts."""
    return _pairs(_chirp(n), element)


@cache
def response(n: int, length: int, element: ElementType) -> np.ndarray:
    """The transform of the conjugates of the chirp, both sides of it, over the length, as pairs of parts."""
    w = _chirp(n).conj().astype(np.complex128)
    sides = np.zeros(length, np.complex128)
    sides[:n] = w
    sides[length - n + 1 :] = w[:0:-1]
    return _pairs(np.fft.fft(sides) / length, element)


def _chirp(n: int) -> np.ndarray:
    turns = np.arange(n, dtype=object) ** 2 % (2 * n)
    angles = np.longdouble("3.14159265358979323846264338327950288") * turns.astype(np.longdouble) / n
    return np.cos(angles) - 1j * np.sin(angles)


def _pairs(z: Any, element: ElementType) -> np.ndarray:
    return np.ascontiguousarray(np.stack([z.real, z.imag], axis=-1), element.dtype)


class ChirpWriter(Vectors):
    """The functions of `CHIRP_PASSES`."""

    def text(self, chirp_pass: str, name: str) -> str:
        count = "%length" if chirp_pass == "convolve" else "%n"
        with self.loop(0, count) as k:
            x, w = self.pair("%from", k), self.root("%table", k)
            if chirp_pass == "leave":
                x = x[1], x[0]
            y = self.mul(x, w)
            # a transform with the parts exchanged goes the other way
            self.put((y[1], y[0]) if chirp_pass == "convolve" else y, "%to", k)
        if chirp_pass == "enter":
            with self.loop("%n", "%length") as k:
                self.put(("zeroinitializer", "zeroinitializer"), "%to", k)
        arrays = "ptr noalias %from, ptr noalias %to, ptr noalias %table"
        return self.function(f"void @{name}({arrays}, i64 %n, i64 %length) nounwind")
