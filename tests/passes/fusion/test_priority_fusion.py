"""What goes into which kernel by the model of time, and why not."""

from __future__ import annotations

import pytest

from heron.analysis.cost.compose import work_of
from heron.analysis.cost.estimate import clock_of, estimate
from heron.analysis.cost.kernel import kernel_cost
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.targets import get
from heron.trace import Decision
from tests.buffers.compiled import FUSED, assert_survives, run_passes
from tests.passes.fusion.test_instruction_fusion import MAX, PLUS, SOFTMAX, entry

STEPS = tuple("priority-fusion" if name == "instruction-fusion" else name for name in FUSED)


def fuse(text: str) -> tuple[Module, list[Decision], list[str]]:
    """The module, what was decided, and the root op of each kernel; values survive."""
    assert_survives(text, STEPS)
    module = parse(text)
    ctx = run_passes(module, ("priority-fusion", "dce"))
    kernels = [i.fused_root.opcode for i in module.entry.instructions if i.opcode == "fusion"]
    return module, [d for d in ctx.trace.decisions if d.rule == "priority-fusion"], kernels


def about(name: str, told: list[Decision]) -> list[tuple[bool, str]]:
    return [(d.ok, d.reason) for d in told if d.subject == name]


def test_softmax() -> None:
    _, told, kernels = fuse(entry(SOFTMAX, PLUS + "\n" + MAX))
    assert sorted(kernels) == ["divide", "reduce", "reduce"]
    assert about("e", told) == [(True, "all 2 readers compute it themselves")]
    assert all(d.cost_after <= d.cost_before for d in told if d.cost_before is not None and d.ok)


def test_a_dear_producer_is_not_computed_over_and_over() -> None:
    """Each element of the tanh is wanted 2048 times by the rows it is added to."""
    _, told, kernels = fuse(entry("""
  x = f32[2048]{0} parameter(0)
  y = f32[2048,2048]{1,0} parameter(1)
  a = f32[2048]{0} tanh(x)
  b = f32[2048,2048]{1,0} broadcast(a), dimensions={1}
  ROOT c = f32[2048,2048]{1,0} multiply(b, y)"""))  # fmt: skip
    assert about("a", told) == [(False, "most of it would be computed over and over")]
    assert about("b", told) == [(True, "costs nothing to compute")]
    assert kernels == ["multiply"]


def test_what_a_product_reads_stays_in_memory() -> None:
    _, told, _ = fuse(entry("""
  x = f32[64,64]{1,0} parameter(0)
  a = f32[64,64]{1,0} exponential(x)
  d = f32[64,64]{1,0} dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = f32[64,64]{1,0} add(d, a)"""))  # fmt: skip
    assert about("a", told) == [(False, "'d' (dot) needs it in memory")]


def test_a_cheap_value_that_stays_is_computed_where_that_is_faster() -> None:
    """The dot needs x + x; the subtraction reads x anyway."""
    _, told, kernels = fuse(entry("""
  x = f32[2048,2048]{1,0} parameter(0)
  a = f32[2048,2048]{1,0} add(x, x)
  d = f32[2048,2048]{1,0} dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[2048,2048]{1,0} subtract(a, x)
  ROOT t = (f32[2048,2048]{1,0}, f32[2048,2048]{1,0}) tuple(d, e)"""))  # fmt: skip
    assert about("a", told)[0] == (True, "cheaper to compute than to read")
    assert kernels == ["subtract"]


def test_a_short_sum_is_done_where_it_is_wanted() -> None:
    _, told, kernels = fuse(entry("""
  x = f32[512,512,3]{2,1,0} parameter(0)
  zero = f32[] constant(0)
  s = f32[512,512]{1,0} reduce(x, zero), dimensions={2}, to_apply=plus
  ROOT r = f32[512,512]{1,0} sqrt(s)"""))  # fmt: skip
    assert about("s", told) == [(True, "its only reader")] and kernels == ["sqrt"]


def test_what_reads_an_overwritten_array_stays_out() -> None:
    """The array may be overwritten: nobody wants it after the update."""
    _, told, _ = fuse("""HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  x = f32[64] parameter(0)
  n = s32[] parameter(1)
  a = f32[8] slice(x), slice={[0:8]}
  b = f32[8] negate(a)
  ROOT u = f32[64] dynamic-update-slice(x, b, n)
}""")
    assert about("a", told) == [(False, "it is computed from what the kernel overwrites")]
    assert about("b", told) == [(True, "its only reader")]


def test_an_update_of_an_array_that_is_wanted_later_writes_all_of_it() -> None:
    """A copy would come first. So the kernel reads the old array and writes a new one: the stencil may be inside."""
    _, told, kernels = fuse(entry("""
  x = f32[64,64]{1,0} parameter(0)
  one = s32[] constant(1)
  a = f32[62,62]{1,0} slice(x), slice={[0:62], [1:63]}
  b = f32[62,62]{1,0} slice(x), slice={[2:64], [1:63]}
  s = f32[62,62]{1,0} add(a, b)
  u = f32[64,64]{1,0} dynamic-update-slice(x, s, one, one)
  ROOT d = f32[64,64]{1,0} subtract(u, x)"""))  # fmt: skip
    assert kernels == ["subtract"] and about("u", told) == [(True, "its only reader")]


def test_a_value_whose_reader_comes_to_compute_it_is_gone() -> None:
    """q is in p, and p goes into the reader of both: q has no reader left."""
    _, _, kernels = fuse(entry("""
  x = f32[256]{0} parameter(0)
  q = f32[256]{0} sine(x)
  p = f32[256]{0} cosine(q)
  ROOT r = f32[256]{0} add(p, q)"""))  # fmt: skip
    assert kernels == ["add"]


@pytest.mark.parametrize("opcode", ["add", "reduce"])
def test_the_model_gives_single_ops_the_time_of_a_kernel(opcode: str) -> None:
    target = get("sm_90")
    module = parse(entry("""
  x = f32[1024,1024]{1,0} parameter(0)
  zero = f32[] constant(0)
  reduce = f32[1024]{0} reduce(x, zero), dimensions={1}, to_apply=plus
  add = f32[1024,1024]{1,0} add(x, x)
  ROOT t = (f32[1024]{0}, f32[1024,1024]{1,0}) tuple(reduce, add)"""))  # fmt: skip
    i = next(i for i in module.entry.instructions if i.name == opcode)
    wanted = estimate(kernel_cost(i), target).seconds
    assert work_of(i, clock_of(target)).seconds == pytest.approx(wanted, rel=1e-3)


def test_views_that_meet_again_are_read_once() -> None:
    """A view is taken into a kernel by two ways, the second one after it was taken in by the first."""
    _, _, kernels = fuse(entry("""
  x = f32[1,8]{1,0} parameter(0)
  y = f32[8,8]{1,0} parameter(1)
  m = f32[1,8]{1,0} multiply(x, x)
  r = f32[8]{0} reshape(m)
  b = f32[8,8]{1,0} broadcast(r), dimensions={0}
  c = f32[8,8]{1,0} broadcast(r), dimensions={1}
  a = f32[8,8]{1,0} add(b, c)
  ROOT t = f32[8,8]{1,0} add(a, y)"""))  # fmt: skip
    assert kernels == ["add"]


def test_what_an_update_writes_into_stays_in_memory_though_others_compute_it() -> None:
    """A view of a parameter is what indices are clamped to, and what is updated."""
    module, told, kernels = fuse(entry("""
  k = s32[3000]{0} parameter(0)
  z = s32[30,100]{1,0} parameter(1)
  zeros = s32[3000]{0} reshape(z)
  m = s32[3000]{0} maximum(zeros, k)
  i = s32[3000,1]{1,0} reshape(m)
  one = s32[] constant(1)
  ones = s32[3000]{0} broadcast(one), dimensions={}
  ROOT c = s32[3000]{0} scatter(zeros, i, ones), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=plus""", PLUS.replace("f32", "s32")))  # fmt: skip # noqa: E501
    scatter = next(i for i in module.instructions() if i.opcode == "scatter")
    assert scatter.operands[0].opcode == "parameter" and "scatter" in kernels
    assert about("m", told) == [(False, "it computes itself what 'c' (scatter) needs in memory")]
