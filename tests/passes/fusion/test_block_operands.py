"""Operands of block products: types that matrix units multiply or that are made such, and why others are not."""

from __future__ import annotations

import numpy as np
import pytest

from heron import targets
from heron.backends.compiler import Compilation
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.text import parse
from heron.options import Options
from heron.passes.fusion.model.tiled import unfit, unpacks
from heron.trace import Trace

SIM = targets.get("sim:sm_90")


def program(body: str) -> str:
    return f"HloModule m\nENTRY e {{\n{body}\n}}\n"


NIBBLES = """
  x = bf16[64,256] parameter(0)
  q = s8[256,64] parameter(1)
  t = s4[256,64,2] bitcast-convert(q)
  r = s4[256,128] reshape(t)
  c = bf16[256,128] convert(r)
  d = bf16[64,128] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT n = bf16[64,128] negate(d)
"""
CASES = {
    "two integers of 4 bits a byte": NIBBLES,
    "integers of 4 bits": """
      x = bf16[64,256] parameter(0)
      q = s4[256,128] parameter(1)
      c = bf16[256,128] convert(q)
      d = bf16[64,128] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT n = bf16[64,128] negate(d)
    """,
    "floats of 8 bits of both kinds": """
      a = f8e4m3fn[64,256] parameter(0)
      b = f8e5m2[256,128] parameter(1)
      d = f32[64,128] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT n = f32[64,128] negate(d)
    """,
}


@pytest.mark.parametrize("name", CASES)
def test_one_kernel(name: str) -> None:
    """Through the whole pipeline: nothing is left to compute ahead of the product."""
    module, trace = parse(program(CASES[name])), Trace()
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-7, 8, p.shape.dims).astype(p.shape.element_type.dtype) for p in module.entry.parameters]
    got = compile(parse(program(CASES[name])), SIM, Options(sim_check="all"), trace)(*inputs)
    assert [k.emitter for k in trace.kernels] == ["block"]
    (wanted,) = evaluate(module, *inputs)
    np.testing.assert_array_equal(np.asarray(got, np.float64), np.asarray(wanted, np.float64))


@pytest.mark.parametrize(
    ("a", "b", "to", "k", "target", "why"),
    [
        ("f8e4m3fn", "f8e5m2", "f32", 64, "sm_90", ""),
        ("f8e4m3fn", "f8e5m2", "f32", 64, "sm_80", "no floats of 8 bits"),
        ("f8e4m3fn", "bf16", "f32", 64, "sm_90", "no product of f8e4m3fn and bf16"),
        ("s8", "s8", "s32", 1 << 17, "sm_90", ""),
        ("s8", "s8", "s32", 1 << 17, "sm_100", ""),
        ("s8", "s8", "s32", 1 << 17, "sm_89", "may leave s32"),
        ("s8", "s8", "s32", 1 << 10, "sm_80", ""),
        ("s4", "s4", "s32", 64, "sm_90", "no product of s4"),
        ("u8", "u8", "s32", 64, "sm_90", "no product of u8"),
    ],
)
def test_reasons(a: str, b: str, to: str, k: int, target: str, why: str) -> None:
    text = f"""
      a = {a}[16,{k}] parameter(0)
      b = {b}[{k},16] parameter(1)
      ROOT d = {to}[16,16] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
    """
    found = unfit(parse(program(text)).entry.root, target=targets.get(target))
    assert why in found and bool(why) == bool(found)


def test_what_goes_with_4_bits() -> None:
    """They are taken apart, moved and widened; arithmetic on them is not done in block kernels."""
    entry = parse(
        program("""
      q = s4[8,16] parameter(0)
      t = s4[16,8] transpose(q), dimensions={1,0}
      c = s32[16,8] convert(t)
      n = s4[16,8] negate(t)
      w = s32[16,8] convert(n)
      ROOT s = s32[16,8] add(c, w)
    """)
    ).entry
    assert {i.name for i in entry.instructions if unpacks(i)} == {"t", "c", "w"}


def test_floats_of_8_bits_are_not_read_where_they_are_unknown() -> None:
    """On sm_80 a conversion of them is no part of a block kernel, which Triton would refuse."""
    text = program("""
      a = f8e4m3fn[512,512] parameter(0)
      b = bf16[512,512] parameter(1)
      c = bf16[512,512] convert(a)
      d = bf16[512,512] dot(c, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT n = bf16[512,512] tanh(d)
    """)
    _, uses = Compilation(parse(text), targets.get("sm_80"), Options(triton="on"), Trace()).lowered
    tiled = [use.instruction.calls for use in uses.values() if use.kernel.emitter == "block"]
    assert all(p.shape.element_type.bits > 8 for c in tiled for p in c.parameters)
