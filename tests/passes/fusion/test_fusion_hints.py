"""What a program asks of fusion, on both machines."""

from __future__ import annotations

import pytest

from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from tests.buffers.compiled import COPIES, assert_survives, run_passes
from tests.passes.fusion.test_instruction_fusion import entry

CPU = ("instruction-fusion", "dce", "fusion-hints", "multi-output-fusion", "dce", "fusion-wrapper", "dce")
GPU = ("priority-fusion", "dce", "fusion-hints", "multi-output-fusion", "horizontal-fusion", "fusion-wrapper", "dce")
both = pytest.mark.parametrize("steps", [CPU, GPU], ids=["cpu", "gpu"])

ALONE = 'frontend_attributes={nofuse="true"}'
OURS = 'frontend_attributes={fuse="ours"}'


def kernels(text: str, steps: tuple[str, ...]) -> list[set[str]]:
    """The ops of each kernel; values survive."""
    assert_survives(text, (*steps, *COPIES))
    module: Module = parse(text)
    run_passes(module, steps)
    found = [i.calls for i in module.entry.instructions if i.opcode == "fusion"]
    return [{i.opcode for i in c.instructions} - {"parameter", "constant", "tuple", "broadcast"} for c in found]


@both
def test_nofuse_is_a_kernel_of_its_own(steps: tuple[str, ...]) -> None:
    text = entry(f"""
  x = f32[64]{{0}} parameter(0)
  half = f32[] constant(0.5)
  halves = f32[64]{{0}} broadcast(half), dimensions={{}}
  a = f32[64]{{0}} sine(x)
  b = f32[64]{{0}} multiply(a, halves), {ALONE}
  c = f32[64]{{0}} negate(b)
  ROOT d = f32[64]{{0}} cosine(c)""")
    assert sorted(map(sorted, kernels(text, steps))) == [["cosine", "negate"], ["multiply"], ["sine"]]


@both
def test_a_group_is_one_kernel(steps: tuple[str, ...]) -> None:
    """Different sizes, nothing in common: nobody would put the two together unasked."""
    text = entry(f"""
  x = f32[640,64]{{1,0}} parameter(0)
  y = f32[4096]{{0}} parameter(1)
  a = f32[640,64]{{1,0}} sine(x), {OURS}
  b = f32[4096]{{0}} negate(y), {OURS}
  d = f32[4096]{{0}} exponential(b)
  e = f32[1]{{0}} slice(d), slice={{[7:8]}}
  ROOT t = (f32[640,64]{{1,0}}, f32[1]{{0}}) tuple(a, e)""")
    assert any({"sine", "negate"} <= kernel for kernel in kernels(text, steps))


@pytest.mark.parametrize(
    ("a", "b", "names", "why"),
    [
        ("sine(x)", f"negate(a), {ALONE}", "'a' and 'c'", "'wrapped', which"),
        ("sine(x)", "dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "'a' and 'c'", "'b' has to run"),
        (
            "dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "negate(x)",
            "'a' and 'c'",
            "(dot) cannot have",
        ),
    ],
    ids=["alone between", "a product between", "a product"],
)
@both
def test_contradictions_name_both(steps: tuple[str, ...], a: str, b: str, names: str, why: str) -> None:
    text = entry(f"""
  x = f32[64,64]{{1,0}} parameter(0)
  a = f32[64,64]{{1,0}} {a}, {OURS}
  b = f32[64,64]{{1,0}} {b}
  ROOT c = f32[64,64]{{1,0}} add(b, a), {OURS}""")
    with pytest.raises(HeronError) as refused:
        run_passes(parse(text), steps)
    assert refused.value.code == "PASS024" and refused.value.what.startswith(names)
    assert why.replace("wrapped", "b") in (refused.value.why or "")


@both
def test_both_hints_on_one_instruction(steps: tuple[str, ...]) -> None:
    text = entry("""
  x = f32[64]{0} parameter(0)
  ROOT a = f32[64]{0} sine(x), frontend_attributes={fuse="ours",nofuse="true"}""")
    with pytest.raises(HeronError, match="PASS024"):
        run_passes(parse(text), steps)


def test_what_replaces_an_instruction_takes_its_hints_over() -> None:
    module = parse(
        entry(f"""
  x = f32[64]{{0}} parameter(0)
  c = f32[] constant(2)
  twos = f32[64]{{0}} broadcast(c), dimensions={{}}
  ROOT d = f32[64]{{0}} divide(x, twos), {ALONE}""")
    )
    run_passes(module, ("algebraic-simplifier",))
    root = module.entry.root
    assert root.opcode == "multiply" and root.extras["frontend_attributes"] == {"nofuse": "true"}
