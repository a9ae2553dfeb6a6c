"""gemm-rewriter: what a call of cuBLASLt takes in, what it refuses, and that values stay."""

from __future__ import annotations

import pytest

from heron import Options, targets
from heron.hlo.calls import gemm
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.checks import ValueCheck
from heron.passes.framework.context import PassContext

HEAD = "HloModule m\nENTRY main {\n"
DOT = """  x = T[8,32] parameter(0)
  y = T[32,16] parameter(1)
  d = T[8,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
"""
BIAS = "  b = T[16] parameter(2)\n  bs = T[8,16] broadcast(b), dimensions={1}\n  s = T[8,16] add(d, bs)\n"
GELU = """  c1 = T[] constant(0.044715)
  c2 = T[] constant(0.797884583)
  c3 = T[] constant(1)
  c4 = T[] constant(0.5)
  k1 = T[8,16] broadcast(c1), dimensions={}
  k2 = T[8,16] broadcast(c2), dimensions={}
  k3 = T[8,16] broadcast(c3), dimensions={}
  k4 = T[8,16] broadcast(c4), dimensions={}
  g1 = T[8,16] multiply(V, V)
  g2 = T[8,16] multiply(g1, V)
  g3 = T[8,16] multiply(g2, k1)
  g4 = T[8,16] add(V, g3)
  g5 = T[8,16] multiply(g4, k2)
  g6 = T[8,16] tanh(g5)
  g7 = T[8,16] add(g6, k3)
"""


def rewritten(body: str, t: str = "f32", math: str = "ieee", **options: str) -> tuple[Module, PassContext]:
    """The program after the pass and dce, its values compared."""
    module = parse(HEAD + body.replace("T[", f"{t}[") + "}\n")
    verify(module)
    before = ValueCheck(module)
    ctx = PassContext(Options(math=math, **options), target=targets.get("sm_90"))
    registry.get("gemm-rewriter").run(module, ctx)
    registry.get("dce").run(module, ctx)
    verify(module)
    before.after("gemm-rewriter", module)
    return module, ctx


def calls(module: Module) -> list[str]:
    """Each call as its epilogue with alpha and beta where they are not the plain ones."""
    found = []
    for i in module.instructions():
        if i.opcode == "custom-call":
            c = gemm.read(i)
            found.append(
                c.epilogue + (f" alpha={c.alpha:g}" if c.alpha != 1 else "") + (f" beta={c.beta:g}" if c.beta else "")
            )
    return found


def opcodes(module: Module) -> list[str]:
    return sorted(i.opcode for i in module.entry.instructions if i.opcode not in ("parameter", "custom-call"))


def test_bias_and_gelu_in_f32() -> None:
    module, _ = rewritten(
        DOT + BIAS + GELU.replace("V", "s") + "  g8 = T[8,16] multiply(g7, k4)\n  ROOT r = T[8,16] multiply(s, g8)\n"
    )
    assert calls(module) == ["BIAS_GELU"]
    assert not opcodes(module)


def test_gelu_with_the_half_on_the_other_side() -> None:
    module, _ = rewritten(
        DOT + GELU.replace("V", "d") + "  h = T[8,16] multiply(d, k4)\n  ROOT r = T[8,16] multiply(h, g7)\n"
    )
    assert calls(module) == ["GELU"]


def test_what_gelu_reads_is_a_result_when_it_is_used_elsewhere() -> None:
    module, _ = rewritten(
        DOT
        + GELU.replace("V", "d")
        + "  g8 = T[8,16] multiply(g7, k4)\n  g9 = T[8,16] multiply(d, g8)\n"
        + "  e = T[8,16] exponential(d)\n  ROOT r = (T[8,16], T[8,16]) tuple(g9, e)\n"
    )
    assert calls(module) == ["GELU_AUX"]
    assert opcodes(module) == ["exponential", "get-tuple-element", "get-tuple-element", "tuple"]


@pytest.mark.parametrize("constant", ["0.05", "-0.044715"])
def test_another_formula_is_no_gelu(constant: str) -> None:
    body = DOT + GELU.replace("V", "d").replace("0.044715", constant)
    module, _ = rewritten(body + "  g8 = T[8,16] multiply(g7, k4)\n  ROOT r = T[8,16] multiply(d, g8)\n")
    assert calls(module) == ["DEFAULT"]


def test_narrow_types_keep_their_roundings_unless_math_lets_them_go() -> None:
    body = DOT + BIAS.replace("  s = ", "  ROOT s = ")
    module, ctx = rewritten(body, "bf16")
    assert calls(module) == ["DEFAULT"]
    assert any(d.object == "vector_bias s" and "rounded" in d.reason for d in ctx.trace.decisions if not d)
    assert calls(rewritten(body, "bf16", "reassociate")[0]) == ["BIAS"]


def test_scales_are_exact_by_powers_of_two() -> None:
    body = (
        DOT + "  c = T[] constant(C)\n  cs = T[8,16] broadcast(c), dimensions={}\n  ROOT r = T[8,16] multiply(cs, d)\n"
    )
    assert calls(rewritten(body.replace("C)", "0.125)"), "bf16")[0]) == ["DEFAULT alpha=0.125"]
    assert calls(rewritten(body.replace("C)", "0.3"[:3] + ")"), "bf16")[0]) == ["DEFAULT"]
    assert calls(rewritten(body.replace("C)", "0.3)"))[0])[0].startswith("DEFAULT alpha=0.3")


def test_matrix_bias_then_vector_bias() -> None:
    body = (
        DOT
        + "  c = T[2,4,16] parameter(3)\n  d3 = T[2,4,16] reshape(d)\n  m = T[2,4,16] add(c, d3)\n"
        + "  b = T[16] parameter(2)\n  bs = T[2,4,16] broadcast(b), dimensions={2}\n  ROOT r = T[2,4,16] add(m, bs)\n"
    )
    module, _ = rewritten(body)
    assert calls(module) == ["BIAS beta=1"]
    assert opcodes(module) == ["reshape", "reshape"]


def test_a_bias_that_would_have_to_be_stored_first_stays_out() -> None:
    body = DOT + "  c = T[8,16] parameter(2)\n  e = T[8,16] exponential(c)\n  ROOT r = T[8,16] add(d, e)\n"
    assert calls(rewritten(body)[0]) == ["DEFAULT"]


def test_relu_is_for_finite_values() -> None:
    body = (
        DOT + "  z = T[] constant(0)\n  zs = T[8,16] broadcast(z), dimensions={}\n  ROOT r = T[8,16] maximum(d, zs)\n"
    )
    assert calls(rewritten(body)[0]) == ["DEFAULT"]
    assert calls(rewritten(body, math="fast")[0]) == ["RELU"]


def test_a_product_is_made_in_the_type_it_is_converted_to() -> None:
    body = DOT.replace("d = T[", "d = f32[") + "  ROOT r = T[8,16] convert(d)\n"
    module, _ = rewritten(body, "bf16")
    assert calls(module) == ["DEFAULT"] and not opcodes(module)


@pytest.mark.parametrize(("t", "result"), [("f64", "f64"), ("c64", "c64"), ("s8", "s32"), ("f16", "f32")])
def test_types(t: str, result: str) -> None:
    module, _ = rewritten(DOT.replace("d = T[", f"ROOT d = {result}["), t)
    assert calls(module) == ["DEFAULT"]


@pytest.mark.parametrize(
    ("body", "t", "why"),
    [
        (DOT.replace("d =", "ROOT d ="), "s32", "no product of s32"),
        (DOT.replace("d =", "ROOT d =").replace("={0}", "={0}, algorithm=dot_bf16_bf16_f32_x3"), "f32", "no algorithm"),
    ],
)
def test_refusals(body: str, t: str, why: str) -> None:
    module, ctx = rewritten(body, t)
    assert not calls(module)
    assert any(why in d.reason for d in ctx.trace.decisions)


@pytest.mark.parametrize("libraries", ["none", "cudnn,cufft"])
def test_an_excluded_library_makes_no_calls_and_says_so(libraries: str) -> None:
    module, ctx = rewritten(DOT.replace("d =", "ROOT d ="), libraries=libraries)
    assert not calls(module)
    assert any(libraries in d.reason for d in ctx.trace.decisions)


def test_a_target_that_is_no_gpu() -> None:
    module = parse(HEAD + DOT.replace("T[", "f32[").replace("d =", "ROOT d =") + "}\n")
    ctx = PassContext(Options(), target=targets.get("cpu"))
    assert not registry.get("gemm-rewriter").run(module, ctx)
