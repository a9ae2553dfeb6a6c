"""Reductions, statistics, dots and einsums."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from tests.interplay.fragment import Fragment as F

FRAGMENTS = [
    F("sum", "f32[n]", jnp.sum, least=0),
    F("sum_rows", "f32[n,5]", lambda x: x.sum(1), least=0),
    F("sum_columns", "f32[n,5]", lambda x: x.sum(0), least=0),
    F("sum_middle", "f32[3,n,4]", lambda x: x.sum(1)),
    F("sum_outer", "f32[3,n,4]", lambda x: x.sum((0, 2))),
    F("sum_ints", "s32[n,3]", lambda x: (x.sum(), x.sum(0)), exact=True, least=0),
    F("sum_s8", "s8[n,3]", lambda x: x.sum(1, dtype=jnp.int8), exact=True),
    F("sum_f64", "f64[n,3]", lambda x: (x.sum(), x.sum(1))),
    F("sum_bf16", "bf16[n,3]", lambda x: x.sum(1), ulps=8),
    F("prod", "f32[n] positive", lambda x: jnp.prod(x * 0.6)),
    F("prod_ints", "s32[n,3]", lambda x: x.prod(1), exact=True),
    F("max_min", "f32[n,5]", lambda x: (x.max(1), x.min(0), x.max()), exact=True),
    F("max_u8", "u8[n,3] bits", lambda x: (x.max(0), x.min(1)), exact=True),
    F("max_f64", "f64[3,n]", lambda x: x.max(1), exact=True),
    F("any_all", "pred[n,4]", lambda x: (x.any(1), x.all(0)), exact=True, least=0),
    # the identity: XLA takes an initial value several times, or not at all over one element
    F("reduce_xor", "u32[n,3] bits", lambda x: lax.reduce(x, jnp.uint32(0), lax.bitwise_xor, (0,)), exact=True),
    F("reduce_or", "s32[3,n]", lambda x: lax.reduce(x, jnp.int32(0), lax.bitwise_or, (1,)), exact=True),
    F(
        "reduce_pair",
        "f32[n,3]; s32[n,3]",
        lambda x, k: lax.reduce((x, k), (jnp.float32(-jnp.inf), jnp.int32(0)), _larger, (0,)),
        exact=True,
    ),
    F(
        "reduce_pair_rows",
        "f32[n,5]; s32[n,5]",
        lambda x, k: lax.reduce((x, k), (jnp.float32(-jnp.inf), jnp.int32(0)), _larger, (1,)),
        exact=True,
    ),
    F(
        "reduce_three",
        "f32[n]; f32[n]; s32[n]",
        lambda x, y, k: lax.reduce(
            (x, y, k),
            (jnp.float32(0), jnp.float32(-jnp.inf), jnp.int32(0)),
            lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1]), a[2] | b[2]),
            (0,),
        ),
    ),
    F("welford", "f32[n,4]", lambda x: (x.mean(0), x.var(0)), ulps=256),
    F("mean_var_rows", "f32[n,7]", lambda x: (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-3)),
    F("std_ddof", "f32[n]", lambda x: jnp.std(x, ddof=1), least=2),
    F("logsumexp", "f32[n,5]", lambda x: jax.nn.logsumexp(x, 1)),
    F("logsumexp_weighted", "f32[n]; f32[n] positive", lambda x, w: jax.nn.logsumexp(x, b=w)),
    F("average", "f32[n,3]; f32[n] positive", lambda x, w: jnp.average(x, 0, w)),
    F("covariance", "f32[3,n]", jnp.cov, least=2),
    F("correlation", "f32[3,n]", jnp.corrcoef, least=5),
    F("moments", "f32[n]", lambda x: [jnp.mean((x - x.mean()) ** k) for k in (2, 3, 4)]),
    F("ptp", "f32[n,3]", lambda x: jnp.ptp(x, 0), exact=True),
    F(
        "nansum",
        "f32[n]",
        lambda x: (jnp.nansum(jnp.where(x > 1, jnp.nan, x)), jnp.nanmax(jnp.where(x > 9, jnp.nan, x))),
    ),
    F("softmax", "f32[n,7]", lambda x: jax.nn.softmax(x)),
    F("softmax_columns", "f32[n,3]", lambda x: jax.nn.softmax(x, 0)),
    F("log_softmax_grad", "f32[n,4]", jax.grad(lambda x: jnp.sum(jax.nn.log_softmax(x)[:, 0]))),
    F("sum_of_products", "f32[n]; f32[n]", lambda x, y: (jnp.vdot(x, y), jnp.sum(x * x), jnp.sum(x) * jnp.sum(y))),
    F("reduce_twice", "f32[n,4]", lambda x: jnp.sum(jnp.max(x, 1) * 2)),
    F("reduce_broadcast", "f32[n,4]", lambda x: x / (jnp.abs(x).sum(1, keepdims=True) + 1)),
    F("reduce_grad", "f32[n,3]", jax.grad(lambda x: jnp.sum(jnp.max(x, 1) ** 2))),
    F("count_nonzero", "s32[n,3]", lambda x: jnp.count_nonzero(x > 0, 0), exact=True),
    F("matmul", "f32[n,5]; f32[5,n]", jnp.matmul),
    F("matmul_square", "f32[n,n]; f32[n,n]", jnp.matmul, least=0),
    F("matmul_f64", "f64[n,3]; f64[3,n]", jnp.matmul),
    F("matmul_transposed", "f32[n,4]; f32[n,4]", lambda x, y: x @ y.T, most=64),
    F("matmul_ints", "s32[n,3]; s32[3,5]", jnp.matmul, exact=True),
    F("matmul_batched", "f32[3,n,4]; f32[3,4,2]", jnp.matmul),
    F("matmul_vector", "f32[n,n]; f32[n]", jnp.matmul),
    F("vector_matmul", "f32[n]; f32[n,3]", jnp.matmul),
    F("matmul_chain", "f32[n,4]; f32[4,4]", lambda x, w: jnp.tanh(x @ w) @ w.T + x),
    F("matmul_grad", "f32[n,3]; f32[3,4]", jax.grad(lambda x, w: jnp.sum(jnp.tanh(x @ w)), (0, 1))),
    F("matmul_bias_relu", "f32[n,6]; f32[6,3]; f32[3]", lambda x, w, b: jax.nn.relu(x @ w + b)),
    F("matmul_same", "f32[n,n]", lambda x: (x @ x, x @ x.T, x.T @ x), most=64),
    F("dot_small", "f32[n,2,2]; f32[n,2]", lambda a, x: jnp.einsum("bij,bj->bi", a, x)),
    F("einsum_outer", "f32[n]; f32[3]", lambda x, y: jnp.einsum("i,j->ij", x, y)),
    F("einsum_trace", "f32[n,n]", lambda x: jnp.einsum("ii->", x), most=64),
    F("einsum_diagonal", "f32[n,n]", lambda x: jnp.einsum("ii->i", x), exact=True, most=64),
    F("einsum_attention", "f32[2,n,4]; f32[2,n,4]", lambda q, k: jnp.einsum("bqd,bkd->bqk", q, k), most=37),
    F("einsum_three", "f32[n,3]; f32[3,4]; f32[4,n]", lambda a, b, c: jnp.einsum("ij,jk,ki->i", a, b, c)),
    F("einsum_batch_last", "f32[3,n,2]; f32[4,n,2]", lambda a, b: jnp.einsum("inb,jnb->bij", a, b)),
    F("einsum_contract_two", "f32[3,4,n]; f32[4,3,2]", lambda a, b: jnp.einsum("ijn,jik->nk", a, b)),
    F("einsum_bf16", "bf16[n,4]; bf16[4,3]", lambda a, b: jnp.einsum("ij,jk->ki", a, b), ulps=8),
    F("einsum_c128", "c128[n,3]; c128[3,n]", lambda a, b: jnp.einsum("ij,jk->ik", a, b), most=37),
    F("tensordot", "f32[2,3,n]; f32[n,3]", lambda a, b: jnp.tensordot(a, b, [[2, 1], [0, 1]])),
    F(
        "dot_general_mixed",
        "f32[3,n]; s8[n,2]",
        lambda a, b: lax.dot_general(a, b.astype("float32"), (((1,), (0,)), ((), ()))),
    ),
    F("bilinear", "f32[n]; f32[n,n]; f32[n]", lambda x, a, y: x @ a @ y, most=64),
    F(
        "ragged_dot",
        "f32[n,3]; f32[2,3,4]",
        lambda x, w: lax.ragged_dot(x, w, jnp.array([x.shape[0] // 2, x.shape[0] - x.shape[0] // 2], jnp.int32)),
        mapped=False,  # JAX maps it over dimension 0 only
    ),
    F("pairwise_distance", "f32[n,3]; f32[5,3]", lambda x, y: jnp.sum((x[:, None] - y[None]) ** 2, -1)),
    F(
        "cosine_similarity",
        "f32[n,4]; f32[n,4]",
        lambda x, y: jnp.sum(x * y, 1) / (jnp.linalg.norm(x, axis=1) * jnp.linalg.norm(y, axis=1) + 0.1),
    ),
    F("kernel_matrix", "f32[n,2]", lambda x: jnp.exp(-0.5 * jnp.sum((x[:, None] - x[None]) ** 2, -1)), most=37),
    F("center_rows", "f32[n,5]", lambda x: x - x.mean(1, keepdims=True)),
    F("normalize", "f32[n,4]", lambda x: x * lax.rsqrt(jnp.sum(x * x, 1, keepdims=True) + 0.1)),
    F("sum_and_max", "f32[n,6]", lambda x: (x.sum(1), x.max(1), (x * x).sum(1))),
    F("transpose_sum", "f32[n,3,5]", lambda x: x.transpose(2, 0, 1).sum(0)),
    # one element, now a number, now an array of it: as steps of solvers of one unknown
    F("one_step", "f32[n]; f32[1]; f32[]", lambda x, a, b: _step(a - x.sum().reshape(1), b)),
    F("one_largest", "s32[n,1]", lambda x: _squared(x.max(0)), exact=True),
    F("one_row", "f32[1,n]", lambda x: _squared(jnp.sqrt((x * x).sum(1, keepdims=True)))),
    F("one_column", "f32[n,1] positive", lambda x: _step(x.min(0), x.max()) + x[0] * x.mean()),
    F("sum_of_halves", "f32[2*n]", lambda x: x[: x.size // 2].sum() - x[x.size // 2 :].sum()),
]


def _step(d, most):
    back = jnp.where(jnp.abs(d) > 0.5, d, 2 * d)
    return jnp.minimum(back.reshape(()), most).reshape(d.shape) * d - back


def _squared(r):
    one = r.reshape(())
    return jnp.where(one > 1, -one, one).reshape(r.shape) * r + jnp.abs(r)


def _larger(a, b):
    take = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
    return jnp.where(take, a[0], b[0]), jnp.where(take, a[1], b[1])
