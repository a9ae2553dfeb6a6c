"""reduction-reuse: which reductions go on from others, and that values stay."""

from __future__ import annotations

import numpy as np
import pytest

from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get


def program(all_: str, op: str = "add", first: str = "0", second: str = "0", t: str = "f32") -> Module:
    """Reductions of x over dimension 0 and over `all_`, by `op`."""
    sizes = {0: 16, 1: 8, 2: 4}
    left = ",".join(str(n) for d, n in sizes.items() if str(d) not in all_.split(","))
    return parse(f"""HloModule m
r {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] {op}(a, b) }}
s {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] {op}(b, a) }}
ENTRY e {{
  x = {t}[16,8,4] parameter(0)
  i = {t}[] constant({first})
  j = {t}[] constant({second})
  p = {t}[8,4] reduce(x, i), dimensions={{0}}, to_apply=r
  q = {t}[{left}] reduce(x, j), dimensions={{{all_}}}, to_apply=s
  ROOT t = ({t}[8,4], {t}[{left}]) tuple(p, q)
}}""")


def reused(module: Module) -> bool:
    changed = get("reduction-reuse").run(module, PassContext())
    whole = module.entry.root.operands[1]
    assert changed == (whole.operands[0].opcode == "reduce")
    return changed


@pytest.mark.parametrize(
    ("all_", "op", "init", "t"),
    [
        ("0,1,2", "add", "0", "f32"),
        ("0,2", "add", "0", "s32"),
        ("0,1", "multiply", "1", "f64"),
        ("0,1,2", "maximum", "-inf", "bf16"),
        ("0,1", "minimum", "3", "s8"),
        ("0,1,2", "or", "false", "pred"),
        ("0,2", "xor", "0", "u32"),
    ],
)
def test_what_goes_on(all_: str, op: str, init: str, t: str) -> None:
    module, given = program(all_, op, init, init, t), program(all_, op, init, init, t)
    assert reused(module)
    rng = np.random.default_rng(1)
    x = (rng.normal(size=(16, 8, 4)) * 2).astype(given.entry.parameters[0].shape.element_type.dtype)
    for mine, wanted in zip(evaluate(module, x), evaluate(given, x), strict=True):
        np.testing.assert_allclose(mine.astype(float), wanted.astype(float), rtol=1e-5)


@pytest.mark.parametrize(
    ("change"),
    [
        {"all_": "1,2"},  # no part of it
        {"all_": "0"},  # the same: for cse
        {"second": "1"},  # begins with something else
        {"first": "1", "second": "1"},  # 1 would go in twice
        {"t": "bf16"},  # the first sum is rounded
        {"op": "subtract"},
    ],
)
def test_what_does_not(change: dict[str, str]) -> None:
    assert not reused(program(**{"all_": "0,1,2", **change}))


def test_each_goes_on_from_the_one_that_leaves_least() -> None:
    module = parse("""HloModule m
r { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[16,8,4] parameter(0)
  z = f32[] constant(0)
  all = f32[] reduce(x, z), dimensions={0,1,2}, to_apply=r
  p = f32[8,4] reduce(x, z), dimensions={0}, to_apply=r
  q = f32[16,4] reduce(x, z), dimensions={1}, to_apply=r
  s = f32[4] reduce(x, z), dimensions={0,1}, to_apply=r
  ROOT t = (f32[], f32[8,4], f32[16,4], f32[4]) tuple(all, p, q, s)
}""")
    assert get("reduction-reuse").run(module, PassContext())
    all_, p, _, s = module.entry.root.operands
    assert s.operands[0] is p and s.dimensions == (0,)
    assert all_.operands[0] is s and all_.dimensions == (0,)
