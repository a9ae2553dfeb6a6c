"""Truth values of the host: each byte of an array of bools but 0 is true, for every kind of kernel that reads one."""

from __future__ import annotations

import numpy as np
import pytest

import heron

N = 67
_TEXTS = {
    "convert": "ROOT r = s32[67] convert(a)",
    "not": "ROOT r = pred[67] not(a)",
    "xor": "ROOT r = pred[67] xor(a, b)",
    "equal": "ROOT r = pred[67] compare(a, b), direction=EQ",
    "less": "ROOT r = pred[67] compare(a, b), direction=LT",
    "select": "x = f32[67] iota(), iota_dimension=0\n n = f32[67] negate(x)\n ROOT r = f32[67] select(a, x, n)",
    "reverse": "v = pred[67] reverse(a), dimensions={0}\n ROOT r = f32[67] convert(v)",
    "transpose": "t = pred[67,67] broadcast(a), dimensions={0}\n u = pred[67,67] transpose(t), dimensions={1,0}\n"
    " ROOT r = s8[67,67] convert(u)",
    "any": "z = pred[] constant(false)\n ROOT r = pred[] reduce(a, z), dimensions={0}, to_apply=either",
    "all": "z = pred[] constant(true)\n ROOT r = pred[] reduce(a, z), dimensions={0}, to_apply=both",
    "count": "s = s32[67] convert(a)\n z = s32[] constant(0)\n ROOT r = s32[] reduce(s, z), dimensions={0}, to_apply=sum",
    "sort": "ROOT r = pred[67] sort(a), dimensions={0}, is_stable=true, to_apply=before",
    "branch": "c = pred[1] slice(a), slice={[1:2]}\n p = pred[] reshape(c)\n x = f32[] constant(1)\n"
    " ROOT r = f32[] conditional(p, x, x), true_computation=twice, false_computation=minus",
    "loop": "c = pred[1] slice(a), slice={[1:2]}\n p = pred[] reshape(c)\n z = s32[] constant(0)\n"
    " t = (pred[], s32[]) tuple(p, z)\n w = (pred[], s32[]) while(t), condition=goes, body=step\n"
    " ROOT r = s32[] get-tuple-element(w), index=1",
    "product": "f = f32[67] convert(a)\n g = f32[67] convert(b)\n"
    " ROOT r = f32[] dot(f, g), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    "gather": "i = s32[67,1] iota(), iota_dimension=0\n g = pred[67] gather(a, i), offset_dims={},"
    " collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n ROOT r = s32[67] convert(g)",
}
_PROGRAM = """HloModule bools
either { x = pred[] parameter(0) y = pred[] parameter(1) ROOT r = pred[] or(x, y) }
both { x = pred[] parameter(0) y = pred[] parameter(1) ROOT r = pred[] and(x, y) }
sum { x = s32[] parameter(0) y = s32[] parameter(1) ROOT r = s32[] add(x, y) }
before { x = pred[] parameter(0) y = pred[] parameter(1) ROOT r = pred[] compare(x, y), direction=LT }
twice { x = f32[] parameter(0) ROOT r = f32[] add(x, x) }
minus { x = f32[] parameter(0) ROOT r = f32[] negate(x) }
goes { t = (pred[], s32[]) parameter(0) ROOT r = pred[] get-tuple-element(t), index=0 }
step { t = (pred[], s32[]) parameter(0) n = s32[] get-tuple-element(t), index=1 k = s32[] constant(1)
 m = s32[] add(n, k) f = pred[] constant(false) ROOT r = (pred[], s32[]) tuple(f, m) }
ENTRY main {
 a = pred[67] parameter(0)
 b = pred[67] parameter(1)
 %s
}
"""


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("kind", _TEXTS)
def test_a_bool_is_false_only_where_its_byte_is_0(kind: str, target: str) -> None:
    bits = np.random.default_rng(7).integers(0, 2, (2, N))
    bits[0, 1] = 1  # decides what a branch and a loop do
    bytes_ = (bits * np.array([[2], [128]]) + bits * np.arange(N) % 2).astype(np.uint8)
    program = heron.compile(_PROGRAM % _TEXTS[kind], target)
    got = program(*bytes_.view(bool))
    want = program(*bits.astype(bool))
    np.testing.assert_array_equal(got.view(np.uint8) != 0 if got.dtype == bool else got, want)
