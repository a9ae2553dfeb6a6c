"""Fourier transforms by SciPy's pocketfft, in the precision of the arrays."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from heron.hlo.meaning.scipy_part import scipy_part
from heron.records import dataclass

#: elements from which on threads share a transform
_SHARED = 1 << 16


@dataclass(frozen=True, slots=True)
class Transform:
    """The transform of the last ``len(lengths)`` dimensions; ``kind`` is FFT, IFFT, RFFT or IRFFT as HLO has them.

    Lines are shared by ``threads``; each is done by one, so values do not depend on how many there are.
    """

    kind: str
    lengths: tuple[int, ...]
    threads: int = field(default=1, repr=False)  # plans are the same on every machine

    def __call__(self, x: np.ndarray, out: np.ndarray) -> None:
        if not out.size:
            return
        if not x.size:  # nothing sums to nothing
            out[...] = 0
            return
        fft = scipy_part("fft")
        function: Any = {"FFT": fft.fftn, "IFFT": fft.ifftn, "RFFT": fft.rfftn, "IRFFT": fft.irfftn}[self.kind]
        axes = tuple(range(x.ndim - len(self.lengths), x.ndim))
        in_place = self.kind in ("FFT", "IFFT") and out.flags.c_contiguous
        if in_place and x.ctypes.data != out.ctypes.data:  # fresh memory costs more than a copy
            out[...] = x
            x = out
        workers = self.threads if x.size >= _SHARED else 1
        result = function(x, self.lengths, axes, overwrite_x=in_place, workers=workers)
        if result.ctypes.data != out.ctypes.data:
            out[...] = result
