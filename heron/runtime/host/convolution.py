"""Convolutions and their derivatives by NumPy, as cuDNN computes them: summed wide, rounded once."""

from __future__ import annotations

import numpy as np

from heron.evaluator.calls.convolution import compute
from heron.hlo.calls.convolution import ConvConfig
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.window import ConvDims, Window
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Convolution:
    """The call of that name on operands, a result of that shape, and workspace."""

    call: str
    config: ConvConfig
    window: Window
    dims: ConvDims
    groups: int
    operands: int
    shape: Shape

    def __str__(self) -> str:
        return self.call

    def __call__(self, *arrays: np.ndarray) -> None:
        operands = arrays[: self.operands]
        found = compute(self.call, self.config, self.window, self.dims, self.groups, self.shape, operands)
        arrays[self.operands][...] = found
