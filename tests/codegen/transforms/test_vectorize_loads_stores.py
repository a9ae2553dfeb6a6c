"""Vector accesses of every element type hold the elements they should; of small types, they are wide."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from benchmarks import ptx_text
from tests.codegen.run_gpu_kernel import check_sim, ptx

#: enough for two elements a thread on sm_90
N = 2 * 132 * 128
BITS = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("pred", BITS.integers(0, 2, (2, N)).astype(np.bool_)),
        ("s4", BITS.integers(-8, 8, (2, N)).astype(ml_dtypes.int4)),
        ("u2", BITS.integers(0, 4, (2, N)).astype(ml_dtypes.uint2)),
        ("s8", BITS.integers(-128, 128, (2, N)).astype(np.int8)),
    ],
)
def test_elements_of_a_byte_and_less(type_: str, values: np.ndarray) -> None:
    """A sine in between keeps LLVM from joining accesses."""
    source = f"""HloModule m
ENTRY e {{
  a = {type_}[{N}] parameter(0)
  b = {type_}[{N}] parameter(1)
  x = {type_}[{N}] xor(a, b)
  f = f32[{N}] convert(x)
  s = f32[{N}] sine(f)
  c = s32[{N}] convert(s)
  d = {type_}[{N}] convert(c)
  ROOT r = {type_}[{N}] or(d, a)
}}"""
    check_sim(_fused(source, type_), list(values))
    (code,) = ptx_text.kernels(ptx(_fused(source, type_))).values()
    assert dict(code.accesses) == {16: 3}


def _fused(source: str, type_: str) -> str:
    """The entry as a computation that one fusion calls."""
    inner = source.replace("HloModule m\nENTRY e", "HloModule m\nf")
    return f"""{inner}
ENTRY main {{
  a = {type_}[{N}] parameter(0)
  b = {type_}[{N}] parameter(1)
  ROOT r = {type_}[{N}] fusion(a, b), kind=kLoop, calls=f
}}"""
