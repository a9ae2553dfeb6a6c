"""Sums of arrays that updates are added to: one array takes all updates."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.compiling import compile
from heron.hlo.ir.module import Module

_SUM = """HloModule m

sum {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT c = {t}[] add(a, b)
}}

ENTRY e {{
  zero = {t}[] constant(0)
  z = {t}[50,4] broadcast(zero), dimensions={{}}
{body}
}}
"""


def gradient(t: str, total: str, start: str = "z") -> Module:
    """A table's gradient where rows are looked up four times: ``total`` adds s0 to s3 up."""
    lines: list[str] = []
    for n in range(4):
        lines += [
            f"  n{n} = s32[20] parameter({2 * n})",
            f"  u{n} = {t}[20,4] parameter({2 * n + 1})",
            f"  s{n} = {t}[50,4] scatter({start}, n{n}, u{n}), update_window_dims={{1}}, inserted_window_dims={{0}},"
            " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum",
        ]
    return heron.parse(_SUM.format(t=t, body="\n".join([*lines, total])))


def inputs(t: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    kind = np.float32 if t == "f32" else np.int32
    updates = [rng.standard_normal((20, 4)).astype(kind) if t == "f32" else rng.integers(-9, 9, (20, 4), kind)] * 4
    return [x for u in updates for x in (rng.integers(-3, 55, 20, np.int32), u)]


def additions(module: Module, t: str) -> int:
    return str(compile(module, "cpu").stage("fused")).count(f"= {t}[50,4]{{1,0}} add(")


IN_TURN = "  a = {t}[50,4] add(s0, s1)\n  b = {t}[50,4] add(a, s2)\n  ROOT r = {t}[50,4] add(b, s3)"
IN_PAIRS = "  a = {t}[50,4] add(s0, s1)\n  b = {t}[50,4] add(s2, s3)\n  ROOT r = {t}[50,4] add(a, b)"


@pytest.mark.parametrize("total", [IN_TURN, IN_PAIRS])
@pytest.mark.parametrize("t", ["f32", "s32"])
def test_one_array_takes_all_updates(t: str, total: str) -> None:
    module = gradient(t, total.format(t=t))
    exe = compile(module, "cpu")
    assert additions(module, t) == 0
    assert exe.memory.temp == 0
    given = inputs(t)
    np.testing.assert_allclose(exe(*given), heron.evaluate(module, *given)[0], rtol=1e-5, atol=1e-6)


def test_narrow_sums_stay() -> None:
    assert additions(gradient("bf16", IN_TURN.format(t="bf16")), "bf16") + additions(
        gradient("f16", IN_TURN.format(t="f16")), "f16"
    )


def test_what_others_read_stays() -> None:
    total = "  a = f32[50,4] add(s0, s1)\n  ROOT r = (f32[50,4], f32[50,4], f32[50,4]) tuple(a, s0, s1)"
    assert additions(gradient("f32", total), "f32") == 1


def test_an_array_added_to_itself_stays() -> None:
    module = gradient("f32", "  a = f32[50,4] add(s0, s0)\n  ROOT r = f32[50,4] add(a, s1)")
    given = inputs("f32")
    np.testing.assert_allclose(compile(module, "cpu")(*given), heron.evaluate(module, *given)[0], rtol=1e-5, atol=1e-6)
