"""Dynamic sizes: what a program gives on arrays of the actual size, against XLA:CPU where it runs such programs.

XLA hands out a dynamic array's elements packed at the front of a buffer for the bound.
"""

from __future__ import annotations

import numpy as np
import pytest

from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.hlo.text import parse
from tests import xla_cpu

HEAD = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
less {
  l0 = f32[] parameter(0)
  l1 = f32[] parameter(1)
  ROOT l = pred[] compare(l0, l1), direction=LT
}
less_first {
  k0 = f32[] parameter(0)
  k1 = f32[] parameter(1)
  k2 = f32[] parameter(2)
  k3 = f32[] parameter(3)
  ROOT k = pred[] compare(k0, k1), direction=LT
}
double {
  v = f32[<=4,3] parameter(0)
  ROOT vv = f32[<=4,3] add(v, v)
}
minus {
  vn = f32[<=4,3] parameter(0)
  ROOT vvn = f32[<=4,3] negate(vn)
}
thrice {
  cs = (f32[<=4,3], s32[]) parameter(0)
  ck = s32[] get-tuple-element(cs), index=1
  three = s32[] constant(3)
  ROOT cc = pred[] compare(ck, three), direction=LT
}
grow {
  bs = (f32[<=4,3], s32[]) parameter(0)
  bx = f32[<=4,3] get-tuple-element(bs), index=0
  bk = s32[] get-tuple-element(bs), index=1
  one = s32[] constant(1)
  bn = s32[] add(bk, one)
  by = f32[<=4,3] add(bx, bx)
  ROOT bt = (f32[<=4,3], s32[]) tuple(by, bn)
}
ENTRY e {
  p = f32[4,3] parameter(0)
  n = s32[] parameter(1)
  q = f32[3,4] parameter(2)
  d = f32[<=4,3] set-dimension-size(p, n), dimensions={0}
  dq = f32[3,<=4] set-dimension-size(q, n), dimensions={1}
  z = f32[] constant(0)
  zi = s32[] constant(0)
  c1 = s32[] constant(1)
  c2 = s32[] constant(2)
  c3 = s32[] constant(3)
  five = f32[] constant(5)
  idx = s32[2,1] constant({{1},{0}})
  upd = f32[2,3] broadcast(five), dimensions={}
"""

#: each line an output; a line may use those above
AGREED = """
neg = f32[<=4,3] negate(d)
size = s32[] get-dimension-size(d), dimensions={0}
mixed = f32[<=4,3] add(d, p)
rows = f32[3] reduce(d, z), dimensions={0}, to_apply=add
columns = f32[<=4] reduce(d, z), dimensions={1}, to_apply=add
all = f32[] reduce(d, z), dimensions={0,1}, to_apply=add
inner = f32[3,3] dot(dq, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
outer = f32[<=4,<=4] dot(d, dq), lhs_contracting_dims={1}, rhs_contracting_dims={0}
twice = f32[<=8,3] concatenate(d, d), dimensions={0}
twice_rows = f32[3] reduce(twice, z), dimensions={0}, to_apply=add
after = f32[<=8,3] concatenate(d, p), dimensions={0}
beside = f32[<=4,6] concatenate(d, d), dimensions={1}
turned = f32[3,<=4] transpose(d), dimensions={1,0}
back = f32[<=4,3] reverse(d), dimensions={0}
sorted = f32[<=4,3] sort(d), dimensions={0}, to_apply=less
pair = (f32[<=4,3], f32[<=4,3]) sort(d, neg), dimensions={0}, to_apply=less_first
pair1 = f32[<=4,3] get-tuple-element(pair), index=1
padded = f32[<=9,3] pad(d, z), padding=1_1_1x0_0
cut = f32[<=2,3] pad(d, z), padding=-1_-1x0_0
many = f32[2,<=4,3] broadcast(d), dimensions={1,2}
flat = f32[<=12] reshape(d)
split = f32[<=4,3] reshape(flat)
thin = f32[<=4,3,1] reshape(d)
sliced = f32[<=4,2] slice(d), slice={[0:4],[1:3]}
window = f32[<=4,1] dynamic-slice(d, zi, c1), dynamic_slice_sizes={4,1}
slid = f32[<=3,3] reduce-window(d, z), window={size=2x1}, to_apply=add
same = pred[<=4,3] compare(d, d), direction=EQ
whole = s32[<=4,3] convert(d)
chosen = f32[<=4,3] select(same, d, p)
clamped = f32[<=4,3] clamp(z, d, p)
powers = f32[<=4,3] exponential(d)
start = (f32[<=4,3], s32[]) tuple(d, zi)
loop = (f32[<=4,3], s32[]) while(start), condition=thrice, body=grow
looped = f32[<=4,3] get-tuple-element(loop), index=0
branch = f32[<=4,3] conditional(zi, d, d), branch_computations={double, minus}
called = f32[<=4,3] call(d), to_apply=minus
reshaped = f32[<=4,<=3] dynamic-reshape(d, n, c3)
gathered = f32[2,3] gather(d, idx), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}
gathered_rows = f32[2,<=4] gather(d, idx), offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={4,1}
few = s32[<=2,1] set-dimension-size(idx, c1), dimensions={0}
few_upd = f32[<=2,3] set-dimension-size(upd, c1), dimensions={0}
gathered_few = f32[<=2,3] gather(p, few), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}
scattered = f32[<=4,3] scatter(d, idx, upd), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
scattered_few = f32[4,3] scatter(p, few, few_upd), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
updated = f32[<=4,3] dynamic-update-slice(d, few_row, c1, zi)
both = f32[<=4,<=3] set-dimension-size(d, c2), dimensions={1}
both_all = f32[] reduce(both, z), dimensions={0,1}, to_apply=add
both_turned = f32[<=3,<=4] transpose(both), dimensions={1,0}
both_dot = f32[<=4,<=4] dot(both, both), lhs_contracting_dims={1}, rhs_contracting_dims={1}
deep = f32[<=4,3,2] broadcast(d), dimensions={0,1}
batched = f32[<=4,2,2] dot(deep, deep), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}
image = f32[<=4,2,3] broadcast(d), dimensions={0,2}
kernel = f32[2,3,2] broadcast(five), dimensions={}
filtered = f32[<=4,1,2] convolution(image, kernel), window={size=2}, dim_labels=b0f_0io->b0f
"""
HIDDEN = ("pair", "start", "loop", "few", "few_upd", "deep", "image", "kernel")


def module_text(lines: str, hidden: tuple[str, ...] = ()) -> str:
    rows = [line.strip() for line in lines.strip().splitlines()]
    shown = [row.split(" = ")[0] for row in rows if row.split(" = ")[0] not in hidden]
    shapes = {row.split(" = ")[0]: row.split(" = ")[1].split(" ")[0] for row in rows}
    root = f"  ROOT all_of_it = ({', '.join(shapes[s] for s in shown)}) tuple({', '.join(shown)})\n}}\n"
    return HEAD + "  few_row = f32[1,3] broadcast(five), dimensions={}\n" + "".join(f"  {r}\n" for r in rows) + root


RNG = np.random.default_rng(0)
P, Q = RNG.integers(-9, 9, (4, 3)).astype(np.float32), RNG.integers(-9, 9, (3, 4)).astype(np.float32)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_dynamic_programs_agree_with_xla(n: int) -> None:
    text = module_text(AGREED, HIDDEN)
    inputs = P, np.array(n, np.int32), Q
    names = [row.split(" = ")[0] for row in AGREED.strip().splitlines() if row.split(" = ")[0] not in HIDDEN]
    for name, g, w in zip(names, evaluate(parse(text), *inputs), xla_cpu.run(text, *inputs), strict=True):
        np.testing.assert_allclose(g, w.ravel()[: g.size].reshape(g.shape), rtol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("lines", "shape", "first"),
    [
        ("r = f32[<=4,3] fusion(d), kind=kLoop, calls=minus", (2, 3), -P[0]),
        # XLA counts the windows of this one without its padding
        ("r = f32[<=2,3] reduce-window(d, z), window={size=2x1 stride=1x1 pad=1_0x0_0}, to_apply=add", (2, 3), P[0]),
        (
            "i = f32[1,<=4,3] reshape(d)\nk = f32[2,3,2] broadcast(five), dimensions={}\n"
            "r = f32[1,<=3,2] convolution(i, k), window={size=2}, dim_labels=b0f_0io->b0f",
            (1, 1, 2),
            np.full((1, 2), 5 * P[:2].sum()),
        ),
        ("r = f32[4,3] set-dimension-size(d, c4), dimensions={0}", (4, 3), P[0]),
        ('t = (f32[4,3], s32[], s32[]) custom-call(d), custom_call_target="PadToStatic"\n'
         "r = s32[] get-tuple-element(t), index=1", (), 2),
        ('r = f32[<=4,<=3] custom-call(p, c1, c2), custom_call_target="SliceToDynamic"', (1, 2), P[0, :2]),
        ("r = f32[1,3] dynamic-slice(d, c1, zi), dynamic_slice_sizes={1,3}", (1, 3), P[1]),
    ],
)  # fmt: skip
def test_what_xla_does_not_run(lines: str, shape: tuple[int, ...], first: np.ndarray) -> None:
    text = module_text("c4 = s32[] constant(4)\n" + lines, ("t",))
    got = evaluate(parse(text), P, np.array(2, np.int32), Q)[-1]
    assert got.shape == shape
    np.testing.assert_array_equal(got[0] if shape else got, first)


@pytest.mark.parametrize(
    ("lines", "n", "code", "says"),
    [
        ("r = f32[<=4,3] negate(d)", 5, "EVAL009", "dimension 0 is set to 5 elements"),
        ("r = f32[<=4,3] negate(d)", -1, "EVAL009", "it may have 0 to 4"),
        ("r = f32[4,3] set-dimension-size(d, c2), dimensions={0}", 2, "EVAL009", "the program states 4"),
        ("r = f32[<=4,<=3] dynamic-reshape(d, n, c2)", 3, "EVAL009", "has 6 elements, the operand 9"),
        ("r = f32[2,3] slice(d), slice={[1:3],[0:3]}", 2, "EVAL008", "takes elements 1 to 3"),
        ("f = f32[<=12] reshape(d)\nr = f32[<=6,2] reshape(f)", 3, "EVAL004", "9 elements at run time"),
        (
            "b = f32[<=4,3] set-dimension-size(p, c1), dimensions={0}\nr = f32[<=4,3] add(d, b)",
            2,
            "HLO010",
            "dimensions",
        ),
    ],
)
def test_sizes_that_do_not_fit(lines: str, n: int, code: str, says: str) -> None:
    with pytest.raises(HeronError, match=says) as caught:
        evaluate(parse(module_text(lines)), P, np.array(n, np.int32), Q)
    assert caught.value.code == code and caught.value.where


def test_bounded_inputs_may_be_smaller() -> None:
    module = parse("""HloModule m
ENTRY e {
  p = (f32[<=4,2]) parameter(0)
  x = f32[<=4,2] get-tuple-element(p), index=0
  s = s32[] get-dimension-size(x), dimensions={0}
  y = f32[<=4,2] add(x, x)
  ROOT t = (f32[<=4,2], s32[]) tuple(y, s)
}
""")
    for n in (0, 1, 4):
        y, s = evaluate(module, np.ones((n, 2), np.float32))
        assert y.shape == (n, 2) and s == n
    for dims in ((5, 2), (3, 1), (2,)):
        with pytest.raises(HeronError, match="EVAL003"):
            evaluate(module, np.ones(dims, np.float32))
