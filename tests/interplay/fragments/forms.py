"""Forms of products, convolutions, windows, sorts and scans that layers do not take: odd dimension numbers and paddings."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax import random as jr

from tests.interplay.fragment import Fragment as F


def _dot(x, y, contract, batch=((), ()), **kwargs):
    return lax.dot_general(x, y, (contract, batch), **kwargs)


def _conv(x, w, numbers, strides, padding, **kwargs):
    return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=numbers, **kwargs)


FRAGMENTS = [
    # products
    F("dot_batch_last", "f32[4,n,3]; f32[5,n,3]", lambda x, y: _dot(x, y, ((1,), (1,)), ((2,), (2,)))),
    F("dot_batch_middle", "f32[4,3,n]; f32[n,3,2]", lambda x, y: _dot(x, y, ((2,), (0,)), ((1,), (1,)))),
    F("dot_two_batches_crossed", "f32[2,3,n]; f32[3,2,n]", lambda x, y: _dot(x, y, ((2,), (2,)), ((0, 1), (1, 0)))),
    F("dot_batches_apart", "f32[2,n,3,4]; f32[3,4,2,5]", lambda x, y: _dot(x, y, ((3,), (1,)), ((0, 2), (2, 0)))),
    F("dot_contract_crossed", "f32[n,3,4]; f32[4,2,3]", lambda x, y: _dot(x, y, ((1, 2), (2, 0)))),
    F("dot_contract_all", "f32[n,3,2]; f32[2,n,3]", lambda x, y: _dot(x, y, ((0, 1, 2), (1, 2, 0))), ulps=256),
    F("dot_outer_ranks", "f32[n,2]; f32[3]", lambda x, y: _dot(x, y, ((), ())), exact=True),
    F("dot_batch_only", "f32[n,3]; f32[n,3]", lambda x, y: _dot(x, y, ((), ()), ((0, 1), (0, 1))), exact=True),
    F("dot_batched_vectors", "f32[n,4]; f32[n,4]", lambda x, y: _dot(x, y, ((1,), (1,)), ((0,), (0,)))),
    F("dot_batched_matvec", "f32[3,n,4]; f32[4,3]", lambda x, y: _dot(x, y, ((2,), (0,)), ((0,), (1,)))),
    F("dot_ints_batched", "s8[3,n,4]; s8[3,4,2]", lambda x, y: _dot(x, y, ((2,), (1,)), ((0,), (0,)), preferred_element_type=jnp.int32), exact=True),
    F("dot_u8_s8", "u8[3,n] bits; s8[n,5]", lambda x, y: _dot(x.astype("int32"), y.astype("int32"), ((1,), (0,))), exact=True),
    F("dot_complex_batched", "c64[2,n,3]; c64[3,2,4]", lambda x, y: _dot(x, y, ((2,), (0,)), ((0,), (1,)))),
    F("dot_complex_adjoint", "c64[n,3]; c64[n,2]", lambda x, y: (x.conj().T @ y, jnp.vdot(x, x))),
    F("dot_f64_f32", "f32[3,n]; f32[n,4]", lambda x, y: _dot(x, y, ((1,), (0,)), precision="highest")),
    F("dot_transposed_output", "f32[3,n,4]; f32[4,2]", lambda x, y: jnp.einsum("bnd,de->ebn", x, y)),
    F("dot_strided_operands", "f32[2*n,4]; f32[8,3]", lambda x, y: x[::2] @ y[::-2]),
    F("dot_broadcast_operand", "f32[4]; f32[4,n]", lambda x, y: jnp.broadcast_to(x, (3, 4)) @ y),
    F("dot_masked", "f32[n,n]; pred[n,n]; f32[n,2]", lambda a, p, x: jnp.where(p, a, 0) @ x, most=37),
    F("dot_symmetric", "f32[n,3]", lambda x: (x.T @ x, x @ x.T), most=37),
    F("dot_scan", "f32[5,n,n] small; f32[n]", lambda a, x: lax.scan(lambda v, m: (jnp.tanh(m @ v), v[0]), x, a), most=17, ulps=512),
    F("dot_of_concatenation", "f32[n,2]; f32[n,3]; f32[5,4]", lambda x, y, w: jnp.concatenate([x, y], 1) @ w),
    F("dot_split_result", "f32[n,3]; f32[3,6]", lambda x, w: jnp.split(x @ w, 3, 1)),
    F("dot_2x2_tree", "f32[n,2,2] small", lambda a: lax.fori_loop(0, 3, lambda i, v: v @ a + jnp.eye(2, dtype=a.dtype), a), ulps=256),
    F("dot_3x3_pairs", "f32[n,3,3]; f32[n,3,3]", lambda a, b: jnp.einsum("nij,nkj->nik", a, b)),
    F("dot_vectors_bf16", "bf16[n]; bf16[n]", lambda x, y: jnp.dot(x, y, preferred_element_type=jnp.float32), ulps=128),
    F("einsum_repeated", "f32[n,3,3]", lambda x: (jnp.einsum("nii->n", x), jnp.einsum("nij,nji->n", x, x))),
    F("einsum_ellipsis", "f32[2,3,n]; f32[n,4]", lambda x, y: jnp.einsum("...i,ij->j...", x, y)),
    F("einsum_outer_three", "f32[n]; f32[2]; f32[3]", lambda x, y, z: jnp.einsum("i,j,k->kij", x, y, z)),
    F("einsum_sum_alone", "f32[n,3,4]; f32[4]", lambda x, y: jnp.einsum("abc,c->b", x, y), ulps=256),
    F("einsum_ints", "s32[n,3]; s32[3,n]", lambda x, y: jnp.einsum("ij,ji->i", x, y), exact=True),
    F("ragged_dot_groups", "f32[n,3]; f32[3,3,4]; s32[3] index", lambda x, w, k: lax.ragged_dot(x, w, jnp.minimum(k, x.shape[0] // 3))),
    F("tri_products", "f32[n,n]; f32[n,n]", lambda a, b: jnp.tril(a) @ jnp.triu(b), most=37),
    # convolutions
    F("conv_all_options", "f32[1,4,n+5,6]; f32[6,2,2,3]", lambda x, w: _conv(x, w, ("NCHW", "OIHW", "NCHW"), (2, 1), [(2, 1), (0, 3)], lhs_dilation=(1, 2), rhs_dilation=(3, 1), feature_group_count=2), most=24),
    F("conv_negative_padding", "f32[1,2,n+6]; f32[3,2,3]", lambda x, w: _conv(x, w, ("NCH", "OIH", "NCH"), (1,), [(-2, 1)])),
    F("conv_more_padding_than_input", "f32[1,1,n]; f32[2,1,2]", lambda x, w: _conv(x, w, ("NCH", "OIH", "NCH"), (3,), [(7, 9)])),
    F("conv_kernel_larger", "f32[1,2,n]; f32[2,2,9]", lambda x, w: _conv(x, w, ("NCH", "OIH", "NCH"), (1,), "SAME")),
    F("conv_channels_outside", "f32[3,n+2,2]; f32[3,3,5]", lambda x, w: _conv(x, w, ("CHN", "HIO", "HNC"), (1,), "SAME")),
    F("conv_mixed_layout", "f32[n+2,2,3,4]; f32[2,4,3,3]", lambda x, w: _conv(x, w, ("HNCW"[0:4], "OWIH", "WNHC"), (1, 1), "SAME"), most=24),
    F("conv_no_space", "f32[n,3]; f32[4,3]", lambda x, w: lax.conv_general_dilated(x, w, (), [])),
    F("conv_depth_multiplier", "f32[1,3,n+2]; f32[6,1,3]", lambda x, w: _conv(x, w, ("NCH", "OIH", "NCH"), (1,), "SAME", feature_group_count=3)),
    F("conv_depthwise_nhwc", "f32[2,n+2,4,3]; f32[3,2,1,6]", lambda x, w: _conv(x, w, ("NHWC", "HWIO", "NHWC"), (2, 1), "SAME", feature_group_count=3), most=24),
    F("conv_separable", "f32[1,n+2,4,3]; f32[3,3,1,3]; f32[1,1,3,2]", lambda x, d, p: _conv(_conv(x, d, ("NHWC", "HWIO", "NHWC"), (1, 1), "SAME", feature_group_count=3), p, ("NHWC", "HWIO", "NHWC"), (1, 1), "VALID"), most=24),
    F("conv_batch_groups_stride", "f32[6,2,n+3]; f32[3,2,2]", lambda x, w: _conv(x, w, ("NCH", "OIH", "NCH"), (2,), [(1, 2)], batch_group_count=3), most=64),
    F("conv_c64_strided", "c64[1,2,n+3]; c64[2,2,3]", lambda x, w: _conv(x, w, ("NCH", "OIH", "NCH"), (2,), [(2, 0)]), most=37),
    F("conv_s8_wide", "s8[1,3,n+2]; s8[2,3,3]", lambda x, w: _conv(x, w, ("NCH", "OIH", "NCH"), (1,), "SAME", preferred_element_type=jnp.int32), exact=True),
    F("conv_transpose_odd", "f32[1,n,3,2]; f32[3,2,3,2]", lambda x, w: lax.conv_transpose(x, w, (3, 2), [(1, 2), (0, 1)], rhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWOI", "NHWC"), transpose_kernel=False), most=24),
    F("conv_3d_strided", "f32[1,2,n+2,3,4]; f32[2,2,2,1,3]", lambda x, w: _conv(x, w, ("NCDHW", "OIDHW", "NCDHW"), (2, 1, 2), [(0, 1), (0, 0), (1, 2)]), most=13),
    F("conv_f16", "f16[2,2,n+2]; f16[2,2,3]", lambda x, w: _conv(x, w, ("NCH", "OIH", "NCH"), (1,), "VALID"), ulps=8, most=33),
    F("conv_f64_2d", "f64[1,2,n+2,4]; f64[2,2,2,2]", lambda x, w: _conv(x, w, ("NCHW", "OIHW", "NCHW"), (1, 2), "SAME"), most=24),
    F("conv_two_chained", "f32[1,2,n+4]; f32[3,2,3]; f32[2,3,2]", lambda x, a, b: _conv(jnp.tanh(_conv(x, a, ("NCH", "OIH", "NCH"), (1,), "VALID")), b, ("NCH", "OIH", "NCH"), (2,), "SAME"), most=37),
    F("conv_of_transposed", "f32[n+2,1,2]; f32[3,2,3]", lambda x, w: _conv(x.transpose(1, 2, 0), w[..., ::-1], ("NCH", "OIH", "HNC"), (1,), "SAME")),
    F("conv_vmapped_kernel", "f32[1,2,n+2]; f32[3,2,2,3]", jax.vmap(lambda x, w: _conv(x, w, ("NCH", "OIH", "NCH"), (1,), "SAME"), (None, 0)), most=37),
    F("conv_local", "f32[1,2,n+2]; f32[3,6,n]", lambda x, w: lax.conv_general_dilated_local(x, w, (1,), "VALID", (3,)), most=24),
    F("patches_grad", "f32[1,2,n+3,4]", jax.grad(lambda x: jnp.sum(jnp.sin(lax.conv_general_dilated_patches(x, (3, 2), (2, 1), "SAME")))), most=17, ulps=256),
    # windows
    F("window_all_options", "f32[n+4,5]", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 3), (2, 1), [(1, 2), (0, 3)], (2, 1), (1, 2)), exact=True),
    F("window_sum_ints", "s32[n+3]", lambda x: lax.reduce_window(x, np.int32(0), lax.add, (4,), (3,), [(3, 2)]), exact=True),
    F("window_larger", "f32[n]", lambda x: lax.reduce_window(x, jnp.inf, lax.min, (9,), (2,), [(5, 6)]), exact=True),
    F("window_of_bools", "pred[n+2,3]", lambda x: lax.reduce_window(x, False, lax.bitwise_or, (2, 2), (1, 2), "SAME"), exact=True),
    F("window_grad_strided", "f32[1,n+3,6,2] distinct", jax.grad(lambda x: jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2, 1), (1, 2, 3, 1), "SAME") ** 2)), most=33, ulps=128),
    F("window_grad_f64", "f64[n+2,4] distinct", jax.grad(lambda x: jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (3, 2), (1, 2), [(1, 1), (0, 1)]) ** 2)), most=33),
    F("window_grad_bf16", "bf16[n+2] distinct", jax.grad(lambda x: jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID"))), most=33, ulps=4),
    F("window_mean_counts", "f32[1,n,4,2]", lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME"), most=37),
    F("window_logsumexp", "f32[n+2]", lambda x: jnp.log(lax.reduce_window(jnp.exp(x), 0.0, lax.add, (3,), (1,), "VALID"))),
    # sorts and scans
    F("sort_five", "s32[n] index; f32[n]; s8[n]; pred[n]; u32[n] bits", lambda *a: lax.sort(a, num_keys=1, is_stable=True), exact=True),
    F("sort_middle_axis", "s32[2,n,3] index; f32[2,n,3]", lambda a, b: lax.sort((a, b), dimension=1, num_keys=1, is_stable=True), exact=True),
    F("sort_all_keys", "s8[n]; bf16[n] distinct; pred[n]", lambda *a: lax.sort(a, num_keys=3), exact=True),
    F("sort_in_scan", "f32[4,n] distinct", lambda x: lax.scan(lambda c, r: (jnp.sort(c + r), jnp.argsort(r)), x[0], x), most=33),
    F("sort_key_computed", "f32[n] distinct; s32[n]", lambda x, k: k[jnp.argsort(-jnp.abs(x) + jnp.sign(x) * 1e-3)], exact=True),
    F("approx_top_k", "f32[2,n] distinct", lambda x: lax.approx_max_k(x, 2, recall_target=1.0), exact=True, least=2),
    F("top_k_axis", "f32[n,3] distinct", lambda x: lax.top_k(x.T, 2), exact=True, least=2),
    F("top_k_then_gather", "f32[n] distinct; f32[n,3]", lambda x, y: y[lax.top_k(x, 3)[1]], exact=True, least=3),
    F("top_k_s8", "s8[3,n]", lambda x: lax.top_k(x, 2), exact=True, least=2),
    F("scan_of_dict", "f32[n] small; f32[n]", lambda a, b: lax.associative_scan(lambda p, q: {"a": p["a"] * q["a"], "b": q["a"] * p["b"] + q["b"]}, {"a": a, "b": b}), most=33),
    F("scan_axis_two", "f32[2,3,n]", lambda x: lax.associative_scan(jnp.add, x, axis=2), most=33),
    F("scan_complex", "c64[n] ", lambda z: lax.associative_scan(lambda p, q: p * q, z / (jnp.abs(z) + 0.1)), most=17, ulps=256),
    F("scan_quaternions", "f32[n,4]", lambda q: lax.associative_scan(_quaternion, q / (jnp.linalg.norm(q, axis=1, keepdims=True) + 0.1)), most=13, ulps=512),
    F("scan_int_max_index", "s32[n] distinct", lambda x: lax.associative_scan(lambda p, q: (jnp.where(p[0] >= q[0], p[0], q[0]), jnp.where(p[0] >= q[0], p[1], q[1])), (x, jnp.arange(x.size))), exact=True, most=33),
    F("cumulative_middle", "f32[2,n,3]; s32[2,n,3]", lambda x, k: (jnp.cumsum(x, 1), lax.cummax(k, 1), lax.cumprod(k, 1, reverse=True), lax.cumlogsumexp(x, 1)), most=33),
    # loops over updated arrays
    F("loop_swap_rows", "f32[n+1,3]", lambda x: lax.fori_loop(0, x.shape[0] // 2, lambda i, v: v.at[i].set(v[-1 - i]).at[-1 - i].set(v[i]), x), exact=True, most=33),
    F("loop_insertion_sort", "f32[n] distinct", lambda x: lax.fori_loop(1, x.size, lambda i, v: lax.while_loop(lambda c: (c[0] > 0) & (c[1][c[0] - 1] > c[1][c[0]]), lambda c: (c[0] - 1, c[1].at[c[0]].set(c[1][c[0] - 1]).at[c[0] - 1].set(c[1][c[0]])), (i, v))[1], x), exact=True, most=17),
    F("loop_two_buffers", "s32[n]; s32[n]", lambda x, y: lax.fori_loop(0, 4, lambda i, c: (c[0].at[i % x.size].set(c[1][0]), c[1].at[0].add(c[0][-1])), (x, y)), exact=True),
    F("loop_shift_buffer", "f32[n,2]", lambda x: lax.scan(lambda c, v: (jnp.concatenate([c[1:], v[None]]), c.sum(0)), jnp.zeros((3, 2)), x), most=33),
    F("loop_window_of_buffer", "f32[n+4]", lambda x: lax.fori_loop(0, 4, lambda i, v: lax.dynamic_update_slice(v, lax.dynamic_slice(v, (i,), (3,)) * 0.5, (v.size - 3 - i,)), x), exact=True),
    F("loop_prime_sieve", "s32[n]", lambda x: lax.fori_loop(2, 6, lambda i, v: jnp.where((jnp.arange(v.size) % i == 0) & (jnp.arange(v.size) > i), 0, v), x), exact=True),
    F("loop_stack", "s32[n] wild", lambda x: lax.scan(lambda c, v: (lambda top: ((c[0].at[top].set(v), jnp.where(v > 2, c[1] - 1, c[1] + 1) % 5), c[0][c[1] - 1]))(c[1] % 5), (jnp.zeros(5, jnp.int32), 0), x), exact=True),
    F("loop_lu_by_hand", "f32[n,n]", lambda a: _lu(a @ a.T / a.shape[0] + 3 * jnp.eye(a.shape[0])), most=13, ulps=4096),
    F("loop_batched_update", "f32[3,n]; s32[3] index", lambda x, k: lax.fori_loop(0, 3, lambda i, v: jax.vmap(lambda r, j: r.at[(j + i) % r.size].multiply(0.5))(v, k), x), exact=True),
    F("switch_of_many", "s32[] wild; f32[n]", lambda k, x: lax.switch(k, [lambda v, s=s: jnp.roll(v, s) * (s + 1) for s in range(9)], x), exact=True),
    F("switch_mapped", "s32[n] wild; f32[n]", lambda k, x: jax.vmap(lambda j, v: lax.switch(j, [lambda a: a, lambda a: -a, lambda a: a * a], v))(k, x), exact=True),
    F("switch_updates", "s32[] index; f32[n+3]", lambda k, x: lax.switch(k, [lambda v: v.at[0].set(1), lambda v: v.at[1:3].add(1), lambda v: v[::-1]], x), exact=True),
    # random numbers of what else there is
    *[F(f"random_{name}", "u32[2] key; f32[n]", (lambda k, x, draw=draw: draw(jr.wrap_key_data(k), x.shape)), most=13, ulps=4096) for name, draw in {
        "binomial": lambda k, s: jr.binomial(k, 5, 0.4, s), "chisquare": lambda k, s: jr.chisquare(k, 3.0, shape=s),
        "geometric": lambda k, s: jr.geometric(k, 0.3, s), "lognormal": lambda k, s: jr.lognormal(k, 0.5, s),
        "pareto": lambda k, s: jr.pareto(k, 2.0, s), "rayleigh": lambda k, s: jr.rayleigh(k, 1.5, s),
        "maxwell": jr.maxwell, "triangular": lambda k, s: jr.triangular(k, -1.0, 0.5, 2.0, s), "wald": lambda k, s: jr.wald(k, 1.0, s),
        "generalized_normal": lambda k, s: jr.generalized_normal(k, 1.5, s), "f": lambda k, s: jr.f(k, 3.0, 4.0, s),
        "loggamma": lambda k, s: jr.loggamma(k, 0.3, s), "double_sided_maxwell": lambda k, s: jr.double_sided_maxwell(k, 0.0, 1.0, s),
        "weibull": lambda k, s: jr.weibull_min(k, 2.0, 3.0, s), "multinomial": lambda k, s: jr.multinomial(k, 9.0, jnp.array([0.2, 0.3, 0.5])),
        "ball": lambda k, s: jr.ball(k, 3, shape=s), "orthogonal": lambda k, s: jnp.abs(jr.orthogonal(k, 3)),
        "normal_f16": lambda k, s: jr.normal(k, s, "float16"), "gumbel_low": lambda k, s: jr.gumbel(k, s, mode="low"),
    }.items()],
]  # fmt: skip


def _quaternion(p, q):
    a, b, c, d = jnp.moveaxis(p, -1, 0)
    e, f, g, h = jnp.moveaxis(q, -1, 0)
    return jnp.stack([a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g, a * g - b * h + c * e + d * f, a * h + b * g - c * f + d * e], -1)  # fmt: skip


def _lu(a):
    def column(k, m):
        at = jnp.arange(m.shape[0])
        factor = jnp.where(at > k, m[:, k] / m[k, k], 0)
        return (m - factor[:, None] * jnp.where(at >= k, m[k], 0)).at[:, k].add(factor)

    return lax.fori_loop(0, a.shape[0] - 1, column, a)
