"""Norms by NumPy, as cuDNN computes them: summed wide, rounded once."""

from __future__ import annotations

import numpy as np

from heron.evaluator.calls.norm import compute
from heron.hlo.calls.norm import NormConfig
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Norm:
    """The call on that many operands, its results and workspace."""

    config: NormConfig
    operands: int

    def __str__(self) -> str:
        return self.config.kind

    def __call__(self, *arrays: np.ndarray) -> None:
        found = compute(self.config, arrays[: self.operands])
        for out, value in zip(arrays[self.operands :], found, strict=False):
            out[...] = value.astype(out.dtype)
