"""bf16-normalization: float-normalization for bf16 alone."""

from __future__ import annotations

from heron.passes.framework.registry import register
from heron.passes.precision.float_normalization import FloatNormalization
from heron.records import dataclass


@register
@dataclass(frozen=True)
class Bf16Normalization(FloatNormalization):
    """Computes in f32 what the target does not compute in bf16 itself, and rounds each result.

    No pipeline has it: `float-normalization` is the same for all narrow types.

    ROOT r = pred[4] compare(bf16[4] x, bf16[4] y), direction=LT
    ->
    a = f32[4] convert(x)
    b = f32[4] convert(y)
    ROOT r = pred[4] compare(a, b), direction=LT
    """

    name = "bf16-normalization"
    types: tuple[str, ...] = ("bf16",)
