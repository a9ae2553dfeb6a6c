"""Independent small loops become one kernel; what would go wrong if they were not independent stays apart."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.evaluator import evaluate
from heron.hlo.text import parse
from tests.buffers.compiled import COPIES, assert_survives, kernels, run_passes
from tests.passes.fusion.test_instruction_fusion import entry
from tests.support import counting_loop

STEPS = ("layout-assignment", "instruction-fusion", "multi-output-fusion", "horizontal-fusion", "fusion-wrapper", "dce")


def loops(text: str) -> list[int]:
    """Outputs of each kernel."""
    module = parse(text)
    run_passes(module, STEPS)
    assert_survives(text, (*STEPS, *COPIES))
    return [len(list(i.shape.leaves())) for i in module.entry.instructions if i.opcode == "fusion"]


def many(count: int, kinds: int) -> str:
    """`count` updates of arrays of `kinds` sizes."""
    lines, outputs = ["  rate = f32[] parameter(0)"], []
    for n in range(count):
        shape = f"f32[{8 + n % kinds}]{{0}}"
        lines += [
            f"  p{n} = {shape} parameter({2 * n + 1})",
            f"  g{n} = {shape} parameter({2 * n + 2})",
            f"  r{n} = {shape} broadcast(rate), dimensions={{}}",
            f"  s{n} = {shape} multiply(g{n}, r{n})",
            f"  u{n} = {shape} subtract(p{n}, s{n})",
        ]
        outputs.append((shape, f"u{n}"))
    shapes, names = ", ".join(s for s, _ in outputs), ", ".join(n for _, n in outputs)
    return entry("\n".join([*lines, f"  ROOT t = ({shapes}) tuple({names})"]))


def test_updates_are_dealt_out_so_that_kernels_are_equal() -> None:
    assert loops(many(5, 5)) == [5]
    module = parse(many(60, 12))
    run_passes(module, STEPS)
    assert sorted(len(list(i.shape.leaves())) for i in module.entry.instructions if i.opcode == "fusion") == [
        12,
        24,
        24,
    ]
    exe = heron.compile(parse(many(60, 12)), target="sm_90")
    assert (sum(k.uses for k in exe.kernels), len(exe.kernels)) == (3, 2)


def test_one_that_needs_the_other_stays_apart() -> None:
    assert loops(entry("""
  x = f32[4]{0} parameter(0)
  y = f32[5]{0} parameter(1)
  a = f32[4]{0} negate(x)
  d = f32[4,4]{1,0} dot(a, a), lhs_contracting_dims={}, rhs_contracting_dims={}
  s = f32[1,4]{1,0} slice(d), slice={[0:1], [0:4]}
  b = f32[1,4]{1,0} abs(s)
  c = f32[5]{0} negate(y)
  ROOT t = (f32[1,4]{1,0}, f32[5]{0}) tuple(b, c)""")) == [2, 1]  # fmt: skip


def test_two_large_loops_stay_apart_and_a_small_one_goes_along() -> None:
    big = "f32[4096,4096]{1,0}"
    text = entry(f"""
  x = {big} parameter(0)
  y = {big} parameter(1)
  i = s32[] parameter(2)
  one = s32[] constant(1)
  a = {big} negate(x)
  b = {big} abs(y)
  n = s32[] add(i, one)
  ROOT t = ({big}, {big}, s32[]) tuple(a, b, n)""")
    module = parse(text)
    run_passes(module, STEPS)
    assert sorted(len(list(i.shape.leaves())) for i in module.entry.instructions if i.opcode == "fusion") == [1, 2]


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_values_where_outputs_take_over_donated_arguments(target: str) -> None:
    """Each output is written over its own argument, and the other loop reads an array of the same size."""
    text = entry("""
  x = f32[64]{0} parameter(0)
  y = f32[64]{0} parameter(1)
  z = f32[8,8]{1,0} parameter(2)
  a = f32[64]{0} exponential(x)
  b = f32[8,8]{1,0} tanh(z)
  r = f32[64]{0} reverse(y), dimensions={0}
  ROOT t = (f32[64]{0}, f32[8,8]{1,0}, f32[64]{0}) tuple(a, b, r)""").replace(
        "HloModule m",
        "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (2, {}, may-alias), {2}: (1, {}, may-alias) }",
    )
    module = parse(text)
    rng = np.random.default_rng(0)
    x, y, z = (rng.standard_normal(s).astype(np.float32) for s in (64, 64, (8, 8)))
    wanted = evaluate(module, x, y, z)
    found = heron.compile(module, target=target)(x.copy(), y.copy(), z.copy())
    for a, b in zip(wanted[0] if len(wanted) == 1 else wanted, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    if target != "cpu":
        exe = heron.compile(module, target="sm_90")
        assert sum(k.uses for k in exe.kernels) == 1


def test_every_loop_body_keeps_its_counter_in_a_kernel_of_the_body() -> None:
    text = counting_loop(100, 64)
    module, _, _ = assert_survives(text, (*STEPS, *COPIES))
    assert kernels(module) == 2  # the body's and the condition's


def test_kernels_by_rows_stay_what_they_are() -> None:
    """Two of them in one kernel would sum a row for each of its elements."""
    text = entry("""
  x = f32[8,32]{1,0} parameter(0)
  y = f32[4,16]{1,0} parameter(1)
  zero = f32[] constant(0)
  a = f32[8]{0} reduce(x, zero), dimensions={1}, to_apply=plus
  v = f32[8,32]{1,0} broadcast(a), dimensions={0}
  p = f32[8,32]{1,0} divide(x, v)
  b = f32[4]{0} reduce(y, zero), dimensions={1}, to_apply=plus
  w = f32[4,16]{1,0} broadcast(b), dimensions={0}
  q = f32[4,16]{1,0} divide(y, w)
  ROOT t = (f32[8,32]{1,0}, f32[4,16]{1,0}) tuple(p, q)""")
    exe = heron.compile(parse(text), target="sm_90")
    assert [k.emitter for k in exe.kernels] == ["rows", "rows"]


def test_small_reductions_of_different_arrays_are_one_kernel() -> None:
    assert loops(entry("""
  x = f32[64,32]{1,0} parameter(0)
  y = f32[48,128]{1,0} parameter(1)
  zero = f32[] constant(0)
  a = f32[64]{0} reduce(x, zero), dimensions={1}, to_apply=plus
  b = f32[128]{0} reduce(y, zero), dimensions={0}, to_apply=plus
  ROOT t = (f32[64]{0}, f32[128]{0}) tuple(a, b)""")) == [2]  # fmt: skip


def test_a_number_goes_into_the_nearest_kernel_that_is_not_above_it() -> None:
    """n + 1 is at no other kernel's level: the way from the product to the end is longer."""
    assert loops(entry("""
  x = f32[64,64]{1,0} parameter(0)
  n = s32[] parameter(1)
  one = s32[] constant(1)
  m = s32[] add(n, one)
  s = f32[64,64]{1,0} sine(x)
  d = f32[64,64]{1,0} dot(s, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[64,64]{1,0}) tuple(m, d)""")) == [2]  # fmt: skip
