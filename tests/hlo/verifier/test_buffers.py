"""Buffers verify: a value and the memory it is put in are alike."""

from __future__ import annotations

import numpy as np

import heron
from heron.hlo.text import parse

PINNED = """HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  b = b(f32[4]) custom-call(p), custom_call_target="Pin", output_to_operand_aliasing={{}: (0, {})}
  ROOT u = f32[4] custom-call(b), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
}
"""


def test_a_pinned_value() -> None:
    x = np.arange(4, dtype=np.float32)
    (found,) = heron.evaluate(parse(PINNED, verify=True), x)
    np.testing.assert_array_equal(found, x)
