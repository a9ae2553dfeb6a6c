"""Which declared ops elemental emission does not know, and how it says so."""

from __future__ import annotations

import pytest

from heron.codegen.elemental import supported, uncovered_ops
from heron.codegen.elemental.registry import require
from heron.errors import HeronError
from heron.hlo import text

#: ops that no element of a loop can compute: control flow, communication, whole-array algorithms, random state, and
#: what passes expand before code generation
NOT_ELEMENTAL = """
add-dependency after-all all-gather all-gather-done all-gather-start all-reduce all-reduce-done all-reduce-start
all-to-all async-done async-start async-update batch-norm-grad batch-norm-inference batch-norm-training call cholesky
collective-broadcast collective-permute collective-permute-done collective-permute-start conditional copy-done
copy-start domain dynamic-reshape fft fusion get-dimension-size infeed opt-barrier outfeed
ragged-all-to-all ragged-dot recv recv-done reduce-scatter rng rng-bit-generator rng-get-and-update-state
scaled-dot scan scatter send send-done set-dimension-size sort topk triangular-solve while
""".split()


def test_what_is_not_covered() -> None:
    """A new op needs a rule, or a word here why not."""
    assert set(uncovered_ops()) == set(NOT_ELEMENTAL)


@pytest.mark.parametrize(
    "body, reason",
    [
        ("p = f32[4] parameter(0)\n ROOT r = f32[4] sort(p), dimensions={0}, to_apply=lt", "no elemental rule"),
        ("p = c64[4] parameter(0)\n ROOT r = f32[8] bitcast(p)", "mixes complex and real"),
        ("p = c64[4] parameter(0)\n ROOT r = c64[4] cbrt(p)", "not on c64"),
        ("ROOT r = u32[] replica-id()", "which of the 2 devices"),
        ("p = f32[<=4] parameter(0)\n ROOT r = f32[<=4] negate(p)", "dynamic dimensions"),
    ],
)
def test_refusals_say_why(body: str, reason: str) -> None:
    source = "HloModule m, replica_count=2\nlt { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = pred[] compare(a, b), "
    source += f"direction=LT }}\nENTRY e {{\n{body}\n}}\n"
    i = text.parse(source).entry.root
    decision = supported(i)
    assert not decision and reason in decision.reason
    with pytest.raises(HeronError, match="GEN001"):
        require(i)


def test_called_computations_are_asked_too() -> None:
    source = """HloModule m
f { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] custom-call(a, b), custom_call_target="x" }
ENTRY e {
  p = f32[4] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=f
}
"""
    assert "custom-call" in supported(text.parse(source).entry.root).reason
