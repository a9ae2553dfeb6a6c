"""Transforms on the CPU keep their lines in one piece, whatever order of the other arrays would move fewer bytes."""

from __future__ import annotations

from heron.compiling import compile
from heron.hlo.text import parse

WINDOWS = """HloModule windows

ENTRY main {
  x = f32[512,16,32] parameter(0)
  t = f32[32,16,512] transpose(x), dimensions={2,1,0}
  w = f32[512] parameter(1)
  b = f32[32,16,512] broadcast(w), dimensions={2}
  m = f32[32,16,512] multiply(t, b)
  f = c64[32,16,257] fft(m), fft_type=RFFT, fft_length={512}
  ROOT p = f32[32,16,257] abs(f)
}
"""


def test_lines_stay_together() -> None:
    assert "scipy" not in str(compile(parse(WINDOWS), "cpu").stage("thunks"))
