"""Arguments that are views of larger arrays begin anywhere; programs take them all."""

from __future__ import annotations

import numpy as np
import pytest

import heron

PROGRAM = """HloModule m
ENTRY e {
  p = TYPE[SIZE] parameter(0)
  c = TYPE[] constant(3)
  b = TYPE[SIZE] broadcast(c), dimensions={}
  ROOT r = TYPE[SIZE] add(p, b)
}
"""


@pytest.mark.parametrize("element_type", ["s8", "s32", "f32", "f64"])
@pytest.mark.parametrize("size", [1, 3, 7, 40, 1001])
def test_a_view_may_begin_at_any_element(element_type: str, size: int) -> None:
    program = heron.compile(PROGRAM.replace("TYPE", element_type).replace("SIZE", str(size)))
    whole = np.arange(size + 64).astype(program.signature.parameters[0].element_type.dtype)
    for start in range(17):
        view = whole[start : start + size]
        np.testing.assert_array_equal(program(view), view + 3)
        np.testing.assert_array_equal(program.run([view])[0], view + 3)
