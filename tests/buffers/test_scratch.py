"""Scratch memory of instructions, among the buffers."""

from __future__ import annotations

import numpy as np
import pytest

from heron.compiling import compile
from heron.hlo.text import parse

SHAPE = (40, 33)
RNG = np.random.default_rng(8)
X = (RNG.normal(size=SHAPE) + 1j * RNG.normal(size=SHAPE)).astype(np.complex64)


def program(after: str, x: str = "c = c64[40,33] negate(x)") -> str:
    return f"""HloModule m
ENTRY e {{
  x = c64[40,33] parameter(0)
  {x}
  f = f32[40,64] fft(c), fft_type=IRFFT, fft_length={{40,64}}
{after}
}}"""


@pytest.mark.parametrize(
    ("text", "arrays"),
    [
        (program("  ROOT r = f32[40,64] reverse(f), dimensions={0}"), 2),
        (program("  g = f32[40,64] negate(f)\n  ROOT t = (f32[40,64], c64[40,33]) tuple(g, c)"), 1),
        (program("  ROOT r = f32[40,64] reverse(f), dimensions={0}", "c = c64[40,33] bitcast(x)"), 2),
    ],
    ids=["over the operand", "operand is a result", "operand is the caller's"],
)
def test_an_inverse_transform_may_use_its_operand_up(text: str, arrays: int) -> None:
    """It takes scratch memory of the size of its operand: that itself where nothing else needs it."""
    executable = compile(parse(text), "cpu")
    before = X.copy()
    found = executable.run([X])
    given = X if "bitcast" in text else -X
    want = np.fft.irfft2(given, (40, 64))
    want = -want if "negate(f)" in text else want[::-1]
    assert np.allclose(found[0], want, atol=1e-6)
    assert np.array_equal(X, before) and (len(found) < 2 or np.array_equal(found[1], given))
    assert executable.memory.temp <= arrays * 10_560
