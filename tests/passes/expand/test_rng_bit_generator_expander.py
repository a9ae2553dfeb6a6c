"""Both generators, for every width, shape of state and shape of result, bit for bit what the evaluator gives."""

from __future__ import annotations

import numpy as np
import pytest

from heron.evaluator import Evaluator
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext

ALL_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)  # a counter about to overflow
STATES = {
    "rng_default": ("u64[2]", "u64[3]", "u32[4]", "u32[6]"),
    "rng_philox": ("u64[2]", "u64[3]", "u32[4]", "u32[6]"),
    "rng_three_fry": ("u64[2]", "u32[4]"),
}
CASES = [(algorithm, state) for algorithm, states in STATES.items() for state in states]
BITS = ("u32[]", "u32[7]", "u32[4,6]", "u64[5]", "u64[]", "u32[3,5]", "u8[9]", "s16[4]", "s64[2,3]")


@pytest.mark.parametrize(("algorithm", "state"), CASES)
@pytest.mark.parametrize("bits", BITS)
def test_bits(algorithm: str, state: str, bits: str) -> None:
    body = f"  s = {state} parameter(0)\n  ROOT r = ({state}, {bits}) rng-bit-generator(s), algorithm={algorithm}\n"
    module = parse("HloModule m\n\nENTRY main {\n" + body + "}\n")
    shape = module.entry.parameters[0].shape
    words = shape.num_elements * shape.element_type.bits // 64
    given = np.array([0x0123456789ABCDEF, ALL_ONES, 7][:words], np.uint64).view(shape.element_type.dtype)
    wanted = Evaluator(module).run(given)
    assert PassContext().run_pass(registry.get("rng-bit-generator-expander"), module)
    verify(module)
    for found, value in zip(Evaluator(module).run(given), wanted, strict=True):
        assert found.dtype == value.dtype
        np.testing.assert_array_equal(found, value)
