"""Products of packed nibbles: every byte of an operand is two integers of 4 bits."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron import HeronError
from heron.compiling import compile

PACKED = "operand_precision={packed_nibble,packed_nibble}"


def halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By arithmetic: the low digit of base 16, from -8 to 7 where there is a sign, and the high one."""
    low = x.astype(np.int64) % 16
    low = np.where(low > 7, low - 16, low) if x.dtype.kind == "i" else low
    return low, np.floor_divide(x.astype(np.int64), 16)


@pytest.mark.parametrize("machine", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("t", ["s8", "u8"])
@pytest.mark.parametrize("result", ["s32", "f32"])
def test_dot(t: str, result: str, machine: str) -> None:
    module = heron.parse(f"""HloModule m
ENTRY e {{
  x = {t}[5,7] parameter(0)
  y = {t}[7,3] parameter(1)
  ROOT d = {result}[5,3] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, {PACKED}
}}
""")
    rng, dtype = np.random.default_rng(0), np.int8 if t == "s8" else np.uint8
    x, y = (rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, n, dtype, endpoint=True) for n in ((5, 7), (7, 3)))
    wanted = sum(a @ b for a, b in zip(halves(x), halves(y), strict=True))
    np.testing.assert_array_equal(heron.evaluate(module, x, y)[0], wanted)
    np.testing.assert_array_equal(compile(module, machine).run([x, y])[0], wanted)


@pytest.mark.parametrize("machine", ["cpu", "sim:sm_90"])
def test_convolution(machine: str) -> None:
    module = heron.parse(f"""HloModule m
ENTRY e {{
  x = s8[2,9,3] parameter(0)
  k = s8[3,3,4] parameter(1)
  ROOT c = s32[2,9,4] convolution(x, k), window={{size=3 pad=1_1}}, dim_labels=b0f_0io->b0f, {PACKED}
}}
""")
    rng = np.random.default_rng(0)
    x, k = rng.integers(-128, 127, (2, 9, 3), np.int8), rng.integers(-128, 127, (3, 3, 4), np.int8)
    padded = [np.pad(a, ((0, 0), (1, 1), (0, 0))) for a in halves(x)]
    wanted = sum(a[:, n : n + 9] @ b[n] for a, b in zip(padded, halves(k), strict=True) for n in range(3))
    np.testing.assert_array_equal(heron.evaluate(module, x, k)[0], wanted)
    np.testing.assert_array_equal(compile(module, machine).run([x, k])[0], wanted)


def test_scales_are_refused() -> None:
    text = f"""HloModule m
ENTRY e {{
  x = s8[4,4] parameter(0)
  s = s8[1,1] parameter(1)
  ROOT d = s32[4,4] scaled-dot(x, x, s, s), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, {PACKED}
}}
"""
    with pytest.raises(HeronError, match="HLO010"):
        heron.parse(text, verify=True)
