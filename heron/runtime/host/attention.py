"""Attention by NumPy, as cuDNN computes it: summed wide, rounded once."""

from __future__ import annotations

import numpy as np

from heron.evaluator.calls.attention import compute
from heron.hlo.calls.attention import AttentionConfig
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Attention:
    """The call on that many operands, its results and workspace."""

    config: AttentionConfig
    operands: int

    def __str__(self) -> str:
        return self.config.target

    def __call__(self, *arrays: np.ndarray) -> None:
        results = arrays[self.operands :]
        found = compute(self.config, arrays[: self.operands], [r.shape for r in results])
        for out, value in zip(results, found, strict=False):
            out[...] = value.astype(out.dtype)
