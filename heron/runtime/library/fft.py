"""Fourier transforms by SciPy's pocketfft, in the precision of the arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Transform:
    """The transform of the last ``len(lengths)`` dimensions; ``kind`` is FFT, IFFT, RFFT or IRFFT as HLO has them."""

    kind: str
    lengths: tuple[int, ...]

    def __call__(self, x: np.ndarray, out: np.ndarray) -> None:
        from scipy import fft  # slow to import, seldom needed

        if not out.size:
            return
        if not x.size:  # nothing sums to nothing
            out[...] = 0
            return
        function = {"FFT": fft.fftn, "IFFT": fft.ifftn, "RFFT": fft.rfftn, "IRFFT": fft.irfftn}[self.kind]
        axes = tuple(range(x.ndim - len(self.lengths), x.ndim))
        out[...] = function(x, self.lengths, axes)
