"""convolution in its variants, against XLA:CPU."""

from __future__ import annotations

import pytest

from tests.hlo.ops.agree import check, program

CONVOLUTIONS = {
    "everything": """ p = f32[2,3,7,6] parameter(0)
 k = f32[4,3,3,2] parameter(1)
 ROOT r = f32[2,4,7,9] convolution(p, k), dim_labels=bf01_oi01->bf01,
   window={size=3x2 stride=2x1 pad=2_3x-1_2 lhs_dilate=2x2 rhs_dilate=2x3 rhs_reversal=1x0}""",
    "batch groups": """ p = f32[4,3,5] parameter(0)
 k = f32[6,3,3] parameter(1)
 ROOT r = f32[2,6,3] convolution(p, k), window={size=3}, dim_labels=bf0_oi0->bf0, batch_group_count=2""",
    "feature groups": """ p = f32[4,6,5] parameter(0)
 k = f32[8,3,3] parameter(1)
 ROOT r = f32[4,8,3] convolution(p, k), window={size=3}, dim_labels=bf0_oi0->bf0, feature_group_count=2""",
    "integers": """ p = s8[4,6,5] parameter(0)
 k = s8[8,6,3] parameter(1)
 ROOT r = s32[4,8,3] convolution(p, k), window={size=3}, dim_labels=bf0_oi0->bf0""",
    "channels last": """ p = bf16[2,8,8,3] parameter(0)
 k = bf16[3,3,3,4] parameter(1)
 ROOT r = bf16[2,4,4,4] convolution(p, k), window={size=3x3 stride=2x2 pad=0_1x1_0}, dim_labels=b01f_01io->b01f""",
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name: str) -> None:
    check(program(CONVOLUTIONS[name]))
