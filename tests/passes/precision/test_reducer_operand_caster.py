"""Reductions in another type than the arrays': every kind of kernel gives the evaluator's values, inside fusions too."""

from __future__ import annotations

import pytest

import heron
from heron.hlo.verifier import verify
from tests.backends.agree import TARGETS, assert_agrees

#: of an array, and of what is reduced
TYPES = [
    ("bf16", "f32"),
    ("f32", "bf16"),
    ("f32", "f64"),
    ("f64", "f32"),
    ("s8", "s32"),
    ("s32", "s8"),
    ("c64", "c128"),
]
FORMS = {
    "rows": ("[5,37]", "[5]", "reduce(x, z), dimensions={1}, to_apply=f"),
    "columns": ("[70,200]", "[200]", "reduce(x, z), dimensions={0}, to_apply=f"),
    "all": ("[70000]", "[]", "reduce(x, z), dimensions={0}, to_apply=f"),
    "windows": ("[9]", "[9]", "reduce-window(x, z), window={size=3 pad=1_1}, to_apply=f"),
    "running": ("[100]", "[100]", "reduce-window(x, z), window={size=100 pad=99_0}, to_apply=f"),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("given", "taken"), TYPES)
def test_values(given: str, taken: str, form: str, target: str) -> None:
    of, to, op = FORMS[form]
    zero = "(0, 0)" if taken[0] == "c" else "0"
    module = heron.parse(f"""HloModule m
f {{
  a = {taken}[] parameter(0)
  b = {taken}[] parameter(1)
  ROOT r = {taken}[] add(a, b)
}}
ENTRY main {{
  x = {given}{of} parameter(0)
  z = {taken}[] constant({zero})
  ROOT r = {taken}{to} {op}
}}""")
    verify(module)
    assert_agrees(module, target)


@pytest.mark.parametrize("target", TARGETS)
def test_in_a_fusion(target: str) -> None:
    module = heron.parse("""HloModule m
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b)
}
body {
  p = bf16[6,40] parameter(0)
  n = bf16[6,40] negate(p)
  z = f32[] constant(-inf)
  r = f32[6] reduce(n, z), dimensions={1}, to_apply=f
  ROOT e = f32[6] exponential(r)
}
ENTRY main {
  x = bf16[6,40] parameter(0)
  ROOT r = f32[6] fusion(x), kind=kInput, calls=body
}""")
    verify(module)
    assert_agrees(module, target)
