"""Values of one bit: signed ones are 0 and -1, truth values read from other types are 0 or 1."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import heron
from tests.backends.agree import TARGETS


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("op", ["minimum", "maximum"])
def test_windows_of_s1(op: str, target: str) -> None:
    """The initial value is known to be 0, which is the larger of the two."""
    module = heron.parse(f"""HloModule m
f {{
  a = s1[] parameter(0)
  b = s1[] parameter(1)
  ROOT r = s1[] {op}(a, b)
}}
ENTRY main {{
  x = s1[6] parameter(0)
  zero = s1[] constant(0)
  ROOT r = s1[6] reduce-window(x, zero), window={{size=3 pad=1_1}}, to_apply=f
}}""")
    x = np.array([0, 0, -1, 0, 0, 0]).astype(ml_dtypes.int1)
    wanted = [0, -1, -1, -1, 0, 0] if op == "minimum" else [0] * 6
    assert heron.evaluate(module, x)[0].astype(int).tolist() == wanted
    assert heron.compile(module, target)(x).astype(int).tolist() == wanted


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("t", ["s8", "u8", "s4"])
def test_bits_as_truth_values(t: str, target: str) -> None:
    count = 2 if t == "s4" else 1
    of = "[5,2]" if count == 2 else "[5]"
    module = heron.parse(f"""HloModule m
ENTRY main {{
  x = {t}{of} parameter(0)
  p = pred[5] bitcast-convert(x)
  n = pred[5] not(p)
  s = s32[5] convert(p)
  ROOT r = (pred[5], pred[5], s32[5]) tuple(p, n, s)
}}""")
    values = np.array([0, 1, 2, 3, 6]) if count == 1 else np.array([[0, 0], [1, 0], [2, 0], [0, 3], [6, 1]])
    x = values.astype(module.entry.parameters[0].shape.element_type.dtype)
    for found in (heron.evaluate(module, x), heron.compile(module, target)(x)):
        assert [a.view(np.uint8).tolist() for a in found[:2]] == [[0, 1, 1, 1, 1], [1, 0, 0, 0, 0]]
        assert found[2].tolist() == [0, 1, 1, 1, 1]
