"""Window and convolution dimension numbers: structured attributes of reduce-window, convolution and their kin."""

from __future__ import annotations

from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class WindowDim:
    """One dimension of a window; ``pad_low``/``pad_high`` may be negative."""

    size: int
    stride: int = 1
    pad_low: int = 0
    pad_high: int = 0
    base_dilation: int = 1  # text: lhs_dilate
    window_dilation: int = 1  # text: rhs_dilate
    reversal: bool = False

    def output_size(self, input_size: int) -> int:
        """Number of window positions over `input_size` elements."""
        dilated = (input_size - 1) * self.base_dilation + 1 if input_size else 0
        padded = dilated + self.pad_low + self.pad_high
        reach = (self.size - 1) * self.window_dilation + 1
        return 0 if padded < reach or self.size == 0 else (padded - reach) // self.stride + 1


Window = tuple[WindowDim, ...]


@dataclass(frozen=True, slots=True)
class ConvDims:
    """The role of each dimension of input, kernel and output (text: ``b01f_01io->b01f``)."""

    input_batch: int
    input_feature: int
    input_spatial: tuple[int, ...]
    kernel_input: int
    kernel_output: int
    kernel_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]
