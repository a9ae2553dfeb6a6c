"""Generated programs keep their values through the simplifier in both its modes, whatever rules come together."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings

from heron.evaluator import Evaluator
from heron.hlo.ir.module import Module
from heron.hlo.verifier import VerifierOptions, verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from tests.hlo.generate import Program, programs

SMALL_PASSES = (
    "slice-sinker",
    "reshape-mover",
    "convert-mover",
    "dot-strength-reduction",
    "dot-merger",
    "dot-dimension-merger",
    "dot-normalizer",
    "broadcast-canonicalizer",
    "simplify-fp-conversions",
    "reduction-degenerate-dim-remover",
    "reduction-dimension-grouper",
    "reduction-splitter",
    "topk-rewriter",
    "sanitize-constant-names",
    "variadic-op-splitter",
)


def _outputs(module: Module, program: Program) -> list[np.ndarray]:
    value = Evaluator(module).run(*program.inputs)
    return [np.asarray(v) for v in (value if isinstance(value, tuple) else (value,))]


def _assert_same(before: list[np.ndarray], module: Module, program: Program) -> None:
    for old, new, error in zip(before, _outputs(module, program), program.errors, strict=True):
        if not error:
            np.testing.assert_array_equal(old, new)
        else:
            np.testing.assert_allclose(old.astype(np.float64), new.astype(np.float64), atol=2 * error)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(programs())
def test_values(program: Program) -> None:
    module = program.module
    before = _outputs(module, program)
    ctx = PassContext(Options())
    ctx.run_pass(registry.pipeline("simplify"), module)
    for name in SMALL_PASSES:
        ctx.run_pass(get(name), module)
    verify(module)
    _assert_same(before, module, program)
    ctx.run_pass(get("layout-assignment"), module)
    ctx.run_pass(get("algebraic-simplifier", is_layout_sensitive=True), module)
    verify(module, VerifierOptions(layout_sensitive=True))
    _assert_same(before, module, program)


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(programs())
def test_all_rules_settle(program: Program) -> None:
    """With every class of rules allowed, what is left is well formed; its values may differ."""
    for math in ("reassociate", "fast"):
        module = program.module.clone()
        PassContext(Options(math=math)).run_pass(registry.pipeline("simplify"), module)
        verify(module)
