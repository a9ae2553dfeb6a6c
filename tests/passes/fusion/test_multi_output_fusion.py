from __future__ import annotations

from heron.hlo.text import parse
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from tests.buffers.compiled import FUSED, assert_survives, kernels, run_passes
from tests.passes.fusion.test_instruction_fusion import PLUS, entry


def joined(text: str) -> list[int]:
    """Outputs of each kernel."""
    module = parse(text)
    run_passes(module, ("instruction-fusion", "multi-output-fusion", "fusion-wrapper", "dce"))
    assert_survives(text, FUSED)
    return [len(list(i.shape.leaves())) for i in module.entry.instructions if i.opcode == "fusion"]


def test_producer_and_consumer_that_are_both_outputs() -> None:
    assert joined(entry("""
  g = f32[64]{0} parameter(0)
  m = f32[64]{0} parameter(1)
  n = f32[64]{0} add(m, g)
  p = f32[64]{0} multiply(n, n)
  ROOT t = (f32[64]{0}, f32[64]{0}) tuple(n, p)""")) == [2]  # fmt: skip


def test_reductions_of_one_array() -> None:
    assert joined(entry("""
  x = f32[64,64]{1,0} parameter(0)
  zero = f32[] constant(0)
  q = f32[64,64]{1,0} multiply(x, x)
  a = f32[64]{0} reduce(x, zero), dimensions={1}, to_apply=plus
  b = f32[64]{0} reduce(q, zero), dimensions={1}, to_apply=plus
  c = f32[64]{0} reduce(x, zero), dimensions={0}, to_apply=plus
  ROOT t = (f32[64]{0}, f32[64]{0}, f32[64]{0}) tuple(a, b, c)""")) in ([2, 1], [1, 2])  # fmt: skip


def test_a_reduction_is_not_recomputed_by_its_reader() -> None:
    """Both read x, but the second needs the first one whole."""
    assert joined(entry("""
  x = f32[512,512]{1,0} parameter(0)
  zero = f32[] constant(0)
  a = f32[512]{0} reduce(x, zero), dimensions={1}, to_apply=plus
  w = f32[512,512]{1,0} broadcast(a), dimensions={0}
  d = f32[512,512]{1,0} subtract(x, w)
  ROOT b = f32[512]{0} reduce(d, zero), dimensions={1}, to_apply=plus""")) == [1, 1]  # fmt: skip


def test_no_cycles() -> None:
    """a and c read x, but c needs a dot of a."""
    text = entry("""
  x = f32[32,32]{1,0} parameter(0)
  a = f32[32,32]{1,0} sine(x)
  d = f32[32,32]{1,0} dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[32,32]{1,0} add(d, x)
  ROOT t = (f32[32,32]{1,0}, f32[32,32]{1,0}) tuple(a, c)""")
    assert joined(text) == [1, 1]


def test_adam_step_is_one_kernel_a_tensor() -> None:
    from tests.support import program

    module, _, _ = assert_survives(
        program("adam_200").read_text(), ("call-inliner", "algebraic-simplifier", "dce", *FUSED)
    )
    scalars = [i for i in module.entry.instructions if i.opcode == "fusion" and i.shape.is_array and not i.shape.dims]
    assert kernels(module) - len(scalars) == 12  # scalars of all tensors are computed once


def test_unused_parts_are_dropped() -> None:
    assert PLUS  # the intermediate n is read by p alone: no output for it
    assert joined(entry("""
  g = f32[64]{0} parameter(0)
  s = f32[64]{0} sine(g)
  r = f32[64]{0} reverse(g), dimensions={0}
  ROOT t = (f32[64]{0}, f32[64]{0}) tuple(s, r)""")) == [2]  # fmt: skip


def test_reductions_with_several_results_and_one_with_other_dimensions() -> None:
    """The least and the greatest, and a sum, of one array: one kernel; its loop sees the array as it is."""
    text = """HloModule m
both {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  least = f32[] minimum(a, c)
  most = f32[] maximum(b, d)
  ROOT t = (f32[], f32[]) tuple(least, most)
}
plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[16,64] parameter(0)
  high = f32[] constant(inf)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  y = f32[16,64] add(x, x)
  cut = f32[4,4,64] reshape(y)
  r = (f32[4], f32[4]) reduce(cut, cut, high, low), dimensions={1,2}, to_apply=both
  least = f32[4] get-tuple-element(r), index=0
  sum = f32[4] reduce(cut, zero), dimensions={1,2}, to_apply=plus
  ROOT t = (f32[16,64], f32[4], f32[4]) tuple(y, least, sum)
}"""
    assert joined(text) == [3]


def test_reductions_and_the_pieces_of_a_concatenation() -> None:
    text = entry("""
  x = f32[32,64]{1,0} parameter(0)
  y = f32[32,64]{1,0} parameter(1)
  zero = f32[] constant(0)
  e = f32[32,64]{1,0} exponential(x)
  c = f32[32,128]{1,0} concatenate(e, y), dimensions={1}
  s = f32[128]{0} reduce(c, zero), dimensions={0}, to_apply=plus
  ROOT t = (f32[32,128]{1,0}, f32[128]{0}) tuple(c, s)""")
    assert joined(text) == [2]
    apart = parse(text)
    run_passes(apart, ("instruction-fusion",))
    assert not get("multi-output-fusion", joins_pieces=False).run(apart, PassContext())


JOINED = """
  x = f32[32,64]{1,0} parameter(0)
  y = f32[32,64]{1,0} parameter(1)
  zero = f32[] constant(0)
  c = f32[32,128]{1,0} concatenate(x, y), dimensions={1}
  e = f32[32,128]{1,0} exponential(c)
  p = f32[32,128]{1,0} multiply(e, c)
  s = f32[%d]{0} reduce(e, zero), dimensions={%d}, to_apply=plus
  r = f32[%d]{0} reduce(p, zero), dimensions={%d}, to_apply=plus
  ROOT t = (f32[%d]{0}, f32[%d]{0}) tuple(s, r)"""


def test_reductions_with_equal_loops_over_a_concatenation() -> None:
    """Along the dimension in which the operands meet each sum has a loop for each of them; both have the same ones."""
    for kept, dimension, changes in (32, 1, True), (128, 0, False):
        module = parse(entry(JOINED % (kept, dimension, kept, dimension, kept, kept)))
        run_passes(module, ("instruction-fusion",))
        assert get("multi-output-fusion", joins_pieces=False).run(module, PassContext()) == changes
