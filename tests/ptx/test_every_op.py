"""The part that `tests/codegen/suite` leaves out: types and machines that LLVM's backend has ways of its own for."""

from __future__ import annotations

import pytest

from heron.hlo.ir import types
from tests.codegen.run_kernel import evaluate
from tests.codegen.suite.compare import difference
from tests.codegen.suite.heroes import HEROES
from tests.codegen.suite.ops import table
from tests.codegen.suite.run import legal_ops, programs, reason_against
from tests.ptx import floats
from tests.ptx.run import emit_and_run_ptx


def check(type_: str, sm: str, *names: str) -> None:
    """Ops of a type in loops, by the PTX of a machine; all that are exact, unless some are named."""
    t = types.by_name(type_)
    ops = [op for op in legal_ops(t) if (op.name in names if names else op.exact) and not reason_against(op, t)]
    assert ops and len(ops) >= len(names)
    for program in programs(HEROES[0], t, ops, after=False):
        got, _ = emit_and_run_ptx(program.root(), program.inputs, sm, every_step=False)
        for op, g, w in zip(program.labels, got, evaluate(program.root(), program.inputs), strict=True):
            assert not (what := difference(g, w)), f"{op.name} of {t} on {sm}: {what}"


@pytest.mark.parametrize("t", ["s1", "u1", "u64"])
def test_types(t: str) -> None:
    check(t, "sm_90")


@pytest.mark.parametrize("sm", ["sm_70", "sm_80", "sm_89", "sm_100", "sm_120"])
@pytest.mark.parametrize("t", ["bf16", "f16", "f8e4m3fn", "s64"])
def test_machines(t: str, sm: str) -> None:
    names = [
        op.name for op in table() if op.name in ("add", "multiply", "maximum", "shift-left", "shift-right-logical")
    ]
    check(t, sm, *(n for n in names if n in {op.name for op in legal_ops(types.by_name(t))}))


@pytest.mark.parametrize("error", [1, -1])
def test_functions_take_what_approximate_instructions_may_be_off(error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of f32 stay within four units of the last place when each such instruction is off by NVIDIA's bound."""
    monkeypatch.setattr(floats, "error", error)
    ops = [op for op in legal_ops(types.F32) if not op.exact and not reason_against(op, types.F32)]
    for program in programs(HEROES[0], types.F32, ops, after=False):
        got, _ = emit_and_run_ptx(program.root(), program.inputs, every_step=False)
        for op, g, w in zip(program.labels, got, evaluate(program.root(), program.inputs), strict=True):
            assert not (what := difference(g, w, 4.0)), f"{op.name}: {what}"
