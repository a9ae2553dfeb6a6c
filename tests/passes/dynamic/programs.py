"""Programs on arrays of any size, an op or two each, for the padder and for compiled programs.

``x`` is f32[<=6,3], ``y`` f32[3,<=5], ``u`` f32[<=6,3], ``v`` f32[3] and ``k`` s32[4].
"""

from __future__ import annotations

import numpy as np

HEAD = """HloModule m
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
mul {{ ma = f32[] parameter(0) mb = f32[] parameter(1) ROOT mc = f32[] multiply(ma, mb) }}
max {{ xa = f32[] parameter(0) xb = f32[] parameter(1) ROOT xc = f32[] maximum(xa, xb) }}
last {{ la = f32[] parameter(0) ROOT lb = f32[] parameter(1) }}
total {{ ta = f32[] parameter(0) tb = f32[] parameter(1) one = f32[] constant(1) tc = f32[] multiply(ta, one)
  ROOT td = f32[] add(tc, tb) }}
best {{ ba = f32[] parameter(0) bi = s32[] parameter(1) bb = f32[] parameter(2) bj = s32[] parameter(3)
  more = pred[] compare(ba, bb), direction=GE  bv = f32[] select(more, ba, bb)  bw = s32[] select(more, bi, bj)
  ROOT bt = (f32[], s32[]) tuple(bv, bw) }}
less {{ sa = f32[] parameter(0) sb = f32[] parameter(1) ROOT sc = pred[] compare(sa, sb), direction=LT }}
less_first {{ fa = f32[] parameter(0) fb = f32[] parameter(1) fc = s32[] parameter(2) fd = s32[] parameter(3)
  ROOT fe = pred[] compare(fa, fb), direction=LT }}
at_least {{ ga = f32[] parameter(0) gb = f32[] parameter(1) ROOT gc = pred[] compare(ga, gb), direction=GE }}
running {{ ra = f32[3] parameter(0) rb = f32[3] parameter(1) rc = f32[3] add(ra, rb)
  ROOT rd = (f32[3], f32[3]) tuple(rc, rc) }}
summing {{ ua = f32[3] parameter(0) ub = f32[3] parameter(1) ROOT uc = f32[3] add(ua, ub) }}
ENTRY e {{
  x = f32[<=6,3] parameter(0)
  y = f32[3,<=5] parameter(1)
  u = f32[<=6,3] parameter(2)
  v = f32[3] parameter(3)
  k = s32[4] parameter(4)
  zero = f32[] constant(0)
  one = f32[] constant(1)
  low = f32[] constant(-inf)
  five = f32[] constant(5)
  zi = s32[] constant(0)
  ci = s32[] constant(1)
  n = s32[] get-dimension-size(x), dimensions={{0}}
  {0}
}}"""

PROGRAMS = {
    "negate": "ROOT r = f32[<=6,3] negate(x)",
    "product": "ROOT r = f32[3] reduce(x, five), dimensions={0}, to_apply=mul",
    "largest": "ROOT r = f32[3] reduce(x, low), dimensions={0}, to_apply=max",
    "sum_in_two_ops": "ROOT r = f32[3] reduce(x, five), dimensions={0}, to_apply=total",
    "sum_of_all_in_two_ops": "ROOT r = f32[] reduce(x, five), dimensions={0,1}, to_apply=total",
    "last_one": "ROOT r = f32[3] reduce(x, five), dimensions={0}, to_apply=last",
    "argmax": "i = s32[6,3] iota(), iota_dimension=0 j = s32[<=6,3] set-dimension-size(i, n), dimensions={0} "
    "ROOT r = (f32[3], s32[3]) reduce(x, j, low, zi), dimensions={0}, to_apply=best",
    "windows": "ROOT r = f32[<=6,3] reduce-window(x, five), window={size=3x1 pad=1_1x0_0}, to_apply=add",
    "windows_in_two_ops": "ROOT r = f32[<=6,3] reduce-window(x, five), window={size=3x1 pad=1_1x0_0}, to_apply=total",
    "apart": "ROOT r = f32[<=3,3] reduce-window(x, five), window={size=2x1 stride=2x1}, to_apply=add",
    "dilated": "ROOT r = f32[<=9,3] reduce-window(x, five), window={size=3x1 lhs_dilate=2x1}, to_apply=add",
    "wide": "ROOT r = f32[<=4,1] reduce-window(x, low), window={size=2x3 rhs_dilate=2x1}, to_apply=max",
    "outer": "ROOT r = f32[<=6,<=5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "inner": "ROOT r = f32[3,3] dot(x, u), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    "everywhere": "a = f32[<=6,3,<=5] broadcast(x), dimensions={0,1} m = s32[] get-dimension-size(y), dimensions={1} "
    "b = f32[<=6,3,<=5] set-dimension-size(a, m), dimensions={2} "
    "ROOT r = f32[<=6,<=5,3,3] dot(b, b), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={}, "
    "rhs_contracting_dims={}",
    "batched": "a = f32[<=6,3,2] broadcast(x), dimensions={0,1} "
    "ROOT r = f32[<=6,2,2] dot(a, a), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, "
    "rhs_contracting_dims={1}",
    "flat": "ROOT r = f32[<=18] reshape(x)",
    "flat_rows": "ROOT r = f32[<=15] reshape(y)",
    "split": "a = f32[<=15] reshape(y) ROOT r = f32[3,<=5] reshape(a)",
    "both_merged": "a = f32[<=6,<=5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} "
    "ROOT r = f32[<=30] reshape(a)",
    "both_merged_and_split": "a = f32[<=6,4,<=5] broadcast(d), dimensions={0,2} "
    "b = f32[<=24,<=5] reshape(a) c = f32[2,<=12,<=5] reshape(b) ROOT r = f32[2,<=60] reshape(c)",
    "dynamic_reshape": "m = s32[] get-dimension-size(y), dimensions={1} three = s32[] constant(3) "
    "ROOT r = f32[<=5,<=3] dynamic-reshape(y, m, three)",
    "reversed": "ROOT r = f32[3,<=5] reverse(y), dimensions={0,1}",
    "transposed": "ROOT r = f32[<=5,3] transpose(y), dimensions={1,0}",
    "concatenated": "t = f32[<=5,3] transpose(y), dimensions={1,0} o = f32[2,3] broadcast(one), dimensions={} "
    "ROOT r = f32[<=19,3] concatenate(t, x, o, u), dimensions={0}",
    "sorted": "ROOT r = f32[<=6,3] sort(x), dimensions={0}, to_apply=less",
    "rows_sorted": "ROOT r = f32[<=6,3] sort(x), dimensions={1}, to_apply=less",
    "two_sorted": "i = s32[6,3] iota(), iota_dimension=0 j = s32[<=6,3] set-dimension-size(i, n), dimensions={0} "
    "ROOT r = (f32[<=6,3], s32[<=6,3]) sort(x, j), dimensions={0}, is_stable=true, to_apply=less_first",
    "padded": "ROOT r = f32[<=13,3] pad(x, one), padding=1_1_1x0_0",
    "cut": "ROOT r = f32[<=3,3] pad(x, one), padding=-1_-2x0_0",
    "sliced": "ROOT r = f32[<=3,3] slice(x), slice={[1:6:2],[0:3]}",
    "moved": "ROOT r = f32[2,3] dynamic-slice(x, ci, zi), dynamic_slice_sizes={2,3}",
    "columns": "ROOT r = f32[<=6,2] dynamic-slice(x, zi, ci), dynamic_slice_sizes={6,2}",
    "updated": "o = f32[1,3] broadcast(one), dimensions={} ROOT r = f32[<=6,3] dynamic-update-slice(x, o, ci, zi)",
    "updated_by_some": "o = f32[8,3] broadcast(one), dimensions={} "
    "ROOT r = f32[8,3] dynamic-update-slice(o, x, ci, zi)",
    "image": "w = f32[2,3,2] broadcast(v), dimensions={1} i = f32[1,<=6,3] reshape(x) "
    "ROOT r = f32[1,<=7,2] convolution(i, w), window={size=2 pad=1_1}, dim_labels=b0f_0io->b0f",
    "strided_image": "w = f32[2,3,2] broadcast(v), dimensions={1} i = f32[1,<=6,3] reshape(x) "
    "ROOT r = f32[1,<=5,2] convolution(i, w), window={size=2 stride=2 lhs_dilate=2}, dim_labels=b0f_0io->b0f",
    "images": "w = f32[2,1,2] broadcast(one), dimensions={} i = f32[<=6,3,1] reshape(x) "
    "ROOT r = f32[<=6,2,2] convolution(i, w), window={size=2}, dim_labels=b0f_0io->b0f",
    "features": "i = f32[2,3,<=6] broadcast(x), dimensions={2,1} w = f32[2,<=6,3] broadcast(u), dimensions={1,2} "
    "ROOT r = f32[2,2,3] convolution(i, w), window={size=2}, dim_labels=b0f_0io->b0f",
    "kernels": "i = f32[2,4,3] broadcast(v), dimensions={2} w = f32[2,3,<=5] broadcast(y), dimensions={1,2} "
    "ROOT r = f32[2,3,<=5] convolution(i, w), window={size=2}, dim_labels=b0f_0io->b0f",
    "gathered_columns": "i = s32[2] constant({2,0}) ROOT r = f32[2,<=6] gather(x, i), offset_dims={1}, "
    "collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={6,1}",
    "gathered_rows": "ROOT r = f32[4,3] gather(x, k), offset_dims={1}, collapsed_slice_dims={0}, "
    "start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}",
    "gathered_from_one": "o = f32[<=1,3] slice(x), slice={[0:1],[0:3]} ROOT r = f32[4,3] gather(o, k), "
    "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}",
    "gathered_pairs": "ROOT r = f32[4,2,3] gather(x, k), offset_dims={1,2}, collapsed_slice_dims={}, "
    "start_index_map={0}, index_vector_dim=1, slice_sizes={2,3}",
    "scattered_rows": "o = f32[4,3] broadcast(v), dimensions={1} ROOT r = f32[<=6,3] scatter(x, k, o), "
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
    "to_apply=add",
    "scattered_pairs": "o = f32[4,2,3] broadcast(v), dimensions={2} ROOT r = f32[<=6,3] scatter(x, k, o), "
    "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
    "to_apply=last",
    "scattered_columns": "i = s32[2] constant({2,0}) o = f32[2,<=6] broadcast(c), dimensions={1} "
    "ROOT r = f32[<=6,3] scatter(x, i, o), update_window_dims={1}, inserted_window_dims={1}, "
    "scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=last",
    "scattered_parts": "o = f32[4,<=6] broadcast(c), dimensions={1} z = f32[9] broadcast(one), dimensions={} "
    "ROOT r = f32[9] scatter(z, k, o), update_window_dims={1}, inserted_window_dims={}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=last",
    "summed_parts": "o = f32[4,<=6] broadcast(c), dimensions={1} z = f32[9] broadcast(one), dimensions={} "
    "ROOT r = f32[9] scatter(z, k, o), update_window_dims={1}, inserted_window_dims={}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    "some_scattered": "m = s32[<=4] set-dimension-size(k, ci), dimensions={0} o = f32[4,3] broadcast(v), dimensions={1}"
    " p = f32[<=4,3] set-dimension-size(o, ci), dimensions={0} ROOT r = f32[<=6,3] scatter(x, m, p), "
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
    "to_apply=add",
    "selected": "s = f32[<=7,3] reduce-window(u, zero), window={size=2x1 pad=1_1x0_0}, to_apply=add "
    "ROOT r = f32[<=6,3] select-and-scatter(x, s, five), window={size=2x1 pad=1_1x0_0}, select=at_least, scatter=add",
    "selected_apart": "s = f32[<=3,1] reduce-window(u, zero), window={size=2x3 stride=2x3}, to_apply=add "
    "ROOT r = f32[<=6,3] select-and-scatter(x, s, zero), window={size=2x3 stride=2x3}, select=at_least, scatter=add",
    "scanned": "ROOT r = (f32[<=6,3], f32[3]) scan(x, v), dimensions={0}, num_carries=1, to_apply=running",
    "scanned_back": "ROOT r = (f32[<=6,3], f32[3]) scan(x, v), dimensions={0}, num_carries=1, is_reverse=true, "
    "to_apply=running",
    "scanned_columns": "ROOT r = (f32[3,<=5], f32[3]) scan(y, v), dimensions={1}, num_carries=1, to_apply=running",
    "carried": "ROOT r = f32[3] scan(x, v), dimensions={0}, num_carries=1, to_apply=summing",
    "normalised": "ROOT r = f32[<=6,3] batch-norm-inference(x, v, v, v, w), epsilon=0.5, feature_index=1",
    "trained": "ROOT r = (f32[<=6,3], f32[3], f32[3]) batch-norm-training(x, v, v), epsilon=0.5, feature_index=1",
    "gradients": "ROOT r = (f32[<=6,3], f32[3], f32[3]) batch-norm-grad(x, v, v, w, u), epsilon=0.5, feature_index=1",
    "features_trained": "ROOT r = (f32[<=6,3], f32[<=6], f32[<=6]) batch-norm-training(x, c, c), epsilon=0.5, "
    "feature_index=0",
    "rows_of_largest": "ROOT r = (f32[<=6,2], s32[<=6,2]) topk(x), k=2, largest=true",
    "rows_called": 'ROOT r = (f32[<=6,2], s32[<=6,2]) custom-call(x), custom_call_target="TopK"',
    "out_and_in": 'p = (f32[6,3], s32[], s32[]) custom-call(x), custom_call_target="PadToStatic" '
    "q = f32[6,3] get-tuple-element(p), index=0 m = s32[] get-tuple-element(p), index=1 "
    'three = s32[] constant(3) ROOT r = f32[<=6,3] custom-call(q, m, three), custom_call_target="SliceToDynamic"',
    "part_of_a_tuple": "s = (f32[3,<=5], f32[<=6,3]) tuple(y, x) ROOT r = (f32[<=6], (f32[3,<=5], f32[<=6,3])) "
    "tuple(c, s)",
    "factored": "t = f32[<=6,<=6] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1} "
    "i = s32[6,6] iota(), iota_dimension=0 j = s32[6,6] iota(), iota_dimension=1 p = pred[6,6] compare(i, j), "
    "direction=EQ g = f32[6,6] convert(p) a = f32[<=6,<=6] add(t, g) ROOT r = f32[<=6,<=6] cholesky(a), lower=true",
    "solved": "t = f32[<=6,<=6] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1} "
    "i = s32[6,6] iota(), iota_dimension=0 j = s32[6,6] iota(), iota_dimension=1 p = pred[6,6] compare(i, j), "
    "direction=EQ g = f32[6,6] convert(p) h = f32[<=6,<=6] multiply(g, t) a = f32[<=6,<=6] add(h, g) "
    "ROOT r = f32[<=6,3] triangular-solve(a, u), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
    "solved_for_rows": "t = f32[<=6,3,3] broadcast(x), dimensions={0,2} i = s32[3,3] iota(), iota_dimension=0 "
    "j = s32[3,3] iota(), iota_dimension=1 p = pred[3,3] compare(i, j), direction=EQ o = f32[3,3] convert(p) "
    "g = f32[<=6,3,3] broadcast(o), dimensions={1,2} q = f32[<=6,3,3] set-dimension-size(g, n), dimensions={0} "
    "a = f32[<=6,3,3] add(t, q) f = f32[<=6,3,3] multiply(a, a) m = f32[<=6,3,3] add(f, q) "
    "ROOT r = f32[<=6,3,3] triangular-solve(m, t), left_side=false, lower=true, transpose_a=TRANSPOSE",
    "transformed": "ROOT r = c64[<=6,2] fft(x), fft_type=RFFT, fft_length={3}",
    "all_reduced": "ROOT r = f32[<=6,3] all-reduce(x), replica_groups={}, to_apply=add",
    "barred": "b = (f32[<=6,3], f32[3,<=5]) opt-barrier(s) ROOT r = f32[<=6,3] get-tuple-element(b), index=0",
    "size_of_a_copy": "a = f32[<=6,3] copy(x) m = s32[] get-dimension-size(a), dimensions={0} ROOT r = s32[] add(m, m)",
}
#: lines that programs above use and need not repeat
SHARED = {
    "c": "c = f32[<=6] reduce(x, zero), dimensions={1}, to_apply=add",
    "d": "d = f32[<=6,<=5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "w": "w = f32[3] multiply(v, v)",
    "s": "s = (f32[<=6,3], f32[3,<=5]) tuple(x, y)",
}

#: actual sizes of dimension 0 of x and 1 of y: the bounds, less, none
SIZES = ((6, 5), (4, 2), (1, 0), (0, 3))


def text(program: str) -> str:
    """The module with that body."""
    names = set(program.replace("(", " ").replace(",", " ").replace(")", " ").split())
    shared = [line for name, line in SHARED.items() if name in names and f"{name} = " not in program]
    return HEAD.format(" ".join([*shared, program]))


def inputs(rows: int, columns: int) -> list[np.ndarray]:
    """Small whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(rows * 10 + columns)
    dims = ((rows, 3), (3, columns), (rows, 3), (3,))
    return [*(rng.integers(-4, 5, d).astype(np.float32) for d in dims), np.array([1, 0, 5, 3], np.int32)]
