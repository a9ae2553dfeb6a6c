"""Generated loops, branches and calls keep their values through every pass about control flow, which then rests."""

from __future__ import annotations

import pytest

from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from tests.passes.control_flow.programs import program

PASSES = (
    "module-dce",
    "computation-deduplicator",
    "call-inliner",
    "conditional-canonicalizer",
    "conditional-code-motion",
    "conditional-simplifier",
    "while-loop-constant-sinking",
    "while-loop-invariant-code-motion",
    "while-loop-simplifier",
    "while-loop-trip-count-annotator",
    "while-loop-unroller",
    "defuser",
)
SEEDS = 25


@pytest.mark.parametrize("name", PASSES)
def test_values(name: str) -> None:
    """One pass alone: what it gives verifies and has the same values, and a second run has nothing left to do."""
    fired = 0
    for seed in range(SEEDS):
        module = program(seed)
        if seed % 2:  # passes may leave users before what they use
            for c in module.computations:
                c.reorder(c.instructions[::-1])
        fired += PassContext(Options(check="values")).run_pass(registry.get(name), module)
        assert not registry.get(name).run(module, PassContext()), f"seed {seed}: a second run changed something"
    assert fired or name == "defuser"


@pytest.mark.parametrize("seed", range(SEEDS, 2 * SEEDS))
def test_together(seed: int) -> None:
    """All in a row and twice, on programs other passes have been at."""
    module = program(seed, steps=8)
    ctx = PassContext(Options(check="values"))
    for name in (*PASSES, "tuple-simplifier", "cse", "dce") * 2:
        ctx.run_pass(registry.get(name), module)
    ctx.run_pass(registry.pipeline("simplify"), module)
    verify(module)
    assert not ctx.trace.notes, ctx.trace.notes
