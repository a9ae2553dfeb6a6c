"""Passes of these folders leave any program valid and its values as they were, and have nothing left to do after."""

from __future__ import annotations

from hypothesis import given, settings

from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.checks import ValueCheck
from heron.passes.framework.context import PassContext
from tests.hlo.generate import ALL_TYPES, Program, programs

NAMES = (
    "comparison-expander real-imag-expander optimization-barrier-expander bitcast-dtypes-expander "
    "stochastic-convert-decomposer dynamic-index-splitter convolution-4d-expander ragged-dot-rewriter "
    "scaled-dot-rewriter triangular-solve-expander cholesky-expander gather-expander scatter-expander "
    "result-caster bf16-mixed-precision-removal sub-byte-normalization get-dimension-size-rewriter "
    "dynamic-dimension-simplifier dynamic-padder"
).split()


@given(programs(ALL_TYPES, 10))
@settings(max_examples=25, derandomize=True)
def test_values_stay(program: Program) -> None:
    module = program.module.clone()
    before = ValueCheck(module)
    for name in NAMES:
        if PassContext().run_pass(registry.get(name), module):
            verify(module)
            before.after(name, module)
            assert not PassContext().run_pass(registry.get(name), module), f"a second run of {name} changed something"
