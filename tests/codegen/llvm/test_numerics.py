"""`Options.math` decides what GPU code does to floating-point values, and nothing else does."""

from __future__ import annotations

import re

import pytest

import heron
from heron import Options
from heron.codegen.llvm import libdevice
from heron.compiling import compile

MATHS = """HloModule maths

ENTRY main {
  x = f32[1024] parameter(0)
  y = f32[1024] parameter(1)
  p = f32[1024] multiply(x, y)
  s = f32[1024] add(p, x)
  d = f32[1024] divide(s, y)
  q = f32[1024] sqrt(d)
  t = f32[1024] tanh(q)
  ROOT e = f32[1024] exponential(t)
}
"""
F64 = MATHS.replace("f32", "f64")
needs_libdevice = pytest.mark.skipif(
    not any(path.is_file() for path in libdevice.candidates()), reason="libdevice is not installed (nvidia-nvvm)"
)


def instructions(text: str, math: str, target: str = "sm_90") -> set[str]:
    ptx = compile(heron.parse(text), target, Options(math=math)).stage("ptx")
    return set(re.findall(r"^\t(?:@!?%p\d+ )?([a-z]\w*(?:\.\w+)*)", ptx, re.M))


@needs_libdevice
def test_ieee_rounds_every_operation() -> None:
    found = instructions(MATHS, "ieee")
    assert {"mul.rn.f32", "add.rn.f32", "div.rn.f32", "sqrt.rn.f32"} <= found
    assert not found & {"tanh.approx.f32", "div.approx.f32", "sqrt.approx.f32"}


@needs_libdevice
def test_reassociate_forms_fmas() -> None:
    text = MATHS[: MATHS.index("  d = ")].replace("  s =", "  ROOT s =") + "}\n"
    assert {"mul.rn.f32", "add.rn.f32"} <= instructions(text, "ieee")
    found = instructions(text, "reassociate")
    assert "fma.rn.f32" in found and not found & {"mul.rn.f32", "add.rn.f32"}


@needs_libdevice
@pytest.mark.parametrize("target", ["sm_75", "sm_90"])
def test_fast_approximates_and_drops_denormals(target: str) -> None:
    found = instructions(MATHS, "fast", target)
    assert {"fma.rn.ftz.f32", "div.approx.ftz.f32", "sqrt.approx.ftz.f32", "tanh.approx.f32"} <= found
    assert not [name for name in found if name.startswith(("add.rn.f32", "mul.rn.f32", "div.rn", "sqrt.rn"))]


@needs_libdevice
def test_fast_without_a_tanh_instruction() -> None:
    assert "tanh.approx.f32" not in instructions(MATHS, "fast", "sm_70")


@needs_libdevice
def test_f64_is_never_approximate() -> None:
    found = instructions(F64, "fast")
    assert "div.rn.f64" in found and "sqrt.rn.f64" in found


def test_the_simulator_computes_as_ieee_says() -> None:
    of = {m: compile(heron.parse(MATHS), "sim:sm_90", Options(math=m)).stage("llvm") for m in ("ieee", "fast")}
    assert of["ieee"] == of["fast"] and "contract" not in of["fast"]
