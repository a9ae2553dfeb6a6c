"""Sorting and searching: keys that differ, or ties in a stable sort; top-k, unique, argmax, quantiles."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from tests.interplay.fragment import Fragment as F

FRAGMENTS = [
    F("sort", "f32[n]", jnp.sort, exact=True, least=0),
    F("sort_rows", "f32[3,n]", lambda x: jnp.sort(x, axis=1), exact=True),
    F("sort_columns", "f32[n,3]", lambda x: jnp.sort(x, axis=0), exact=True),
    F("sort_descending", "f32[n]", lambda x: jnp.sort(x, descending=True), exact=True),
    F("sort_ints", "s32[n]", jnp.sort, exact=True),
    F("sort_u8", "u8[n] bits", jnp.sort, exact=True),
    F("sort_bf16", "bf16[n]", jnp.sort, exact=True),
    F("sort_f64", "f64[2,n]", jnp.sort, exact=True),
    F("sort_bool", "pred[n]", jnp.sort, exact=True),
    F("sort_complex", "c64[n]", jnp.sort, exact=True),
    F("argsort", "f32[n] distinct", jnp.argsort, exact=True),
    F("argsort_ties", "s32[n] index", lambda x: jnp.argsort(x, stable=True), exact=True),
    F("argsort_axis0", "f32[n,2] distinct", lambda x: jnp.argsort(x, axis=0), exact=True),
    F("sort_pair", "s32[n] index; f32[n]", lambda k, v: lax.sort((k, v), num_keys=1, is_stable=True), exact=True),
    F(
        "sort_three",
        "s32[n] index; s32[n] index; f32[n]",
        lambda a, b, v: lax.sort((a, b, v), num_keys=2, is_stable=True),
        exact=True,
    ),
    F(
        "sort_by_two",
        "s32[2,n] index; f32[2,n] distinct",
        lambda a, b: lax.sort((a, b), dimension=1, num_keys=2),
        exact=True,
    ),
    F("lexsort", "s32[n] index; f32[n] distinct", lambda a, b: jnp.lexsort((b, a)), exact=True),
    F("sort_grad", "f32[n] distinct", jax.grad(lambda x: jnp.sum(jnp.sort(x) * jnp.arange(x.size, dtype=x.dtype)))),
    F("inverse_permutation", "s32[n] permutation", jnp.argsort, exact=True),
    F("apply_permutation", "s32[n] permutation; f32[n,3]", lambda p, x: x[p], exact=True),
    F("top_k", "f32[n] distinct", lambda x: lax.top_k(x, 2), exact=True, least=2),
    F("top_k_all", "f32[3,n] distinct", lambda x: lax.top_k(x, x.shape[1]), exact=True),
    F("top_k_ints", "s32[n] distinct", lambda x: lax.top_k(x, 1), exact=True),
    F("top_k_grad", "f32[n] distinct", jax.grad(lambda x: jnp.sum(lax.top_k(x, 2)[0])), exact=True, least=2),
    F("top_k_bf16", "bf16[2,n]", lambda x: lax.top_k(x, 3)[0], exact=True, least=3),
    F("partition", "f32[n]", lambda x: jnp.sort(jnp.partition(x, x.size // 2)[: x.size // 2]), exact=True, least=2),
    F("median", "f32[n,3]", lambda x: jnp.median(x, 0)),
    F("quantile", "f32[n]", lambda x: jnp.quantile(x, jnp.array([0.1, 0.5, 0.8], jnp.float32))),
    # XLA multiplies by a rounded 1 / 100: 30 % of 30 would be the place below
    F("percentile_lower", "f32[n]", lambda x: jnp.percentile(x, 33, method="lower"), exact=True),
    F("unique", "s32[n] index", lambda x: jnp.unique(x, size=4, fill_value=-1), exact=True),
    F(
        "unique_counts",
        "s32[n] index",
        lambda x: jnp.unique(x, size=4, return_counts=True, return_inverse=True),
        exact=True,
    ),
    F("searchsorted", "f32[n]; f32[5]", lambda x, v: jnp.searchsorted(jnp.sort(x), v), exact=True),
    F(
        "searchsorted_right",
        "s32[n] index; s32[4] index",
        lambda x, v: jnp.searchsorted(jnp.sort(x), v, side="right"),
        exact=True,
    ),
    F(
        "searchsorted_by_sort",
        "f32[n]; f32[5]",
        lambda x, v: jnp.searchsorted(jnp.sort(x), v, method="sort"),
        exact=True,
    ),
    F("digitize", "f32[n]", lambda x: jnp.digitize(x, jnp.array([-1.0, 0, 1], x.dtype)), exact=True),
    F("bincount", "s32[n] index", lambda x: jnp.bincount(x, length=5), exact=True),
    F("histogram", "f32[n]", lambda x: jnp.histogram(x, bins=jnp.array([-9.0, -1, 0, 1, 9], x.dtype))[0], exact=True),
    F("argmax", "f32[n] distinct", lambda x: (jnp.argmax(x), jnp.argmin(x)), exact=True),
    F("argmax_rows", "f32[n,5] distinct", lambda x: jnp.argmax(x, 1), exact=True),
    F("argmax_columns", "f32[n,5] distinct", lambda x: jnp.argmin(x, 0), exact=True),
    F("argmax_ties", "s32[3,n] index", lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 1)), exact=True),
    F("argmax_bf16", "bf16[n,3]", lambda x: jnp.argmax(x, 0), exact=True),
    F("argmax_bool", "pred[n]", jnp.argmax, exact=True),
    F("nanargmax", "f32[n] distinct", jnp.nanargmax, exact=True),
    F("nonzero", "pred[n]", lambda p: jnp.nonzero(p, size=3, fill_value=-1), exact=True),
    F("compress", "pred[n]; f32[n]", lambda p, x: jnp.compress(p, x, size=x.size, fill_value=0), exact=True),
    F("rank_data", "f32[n] distinct", lambda x: jnp.argsort(jnp.argsort(x)), exact=True),
    F("isin", "s32[n] index; s32[3] index", jnp.isin, exact=True),
    F(
        "intersect",
        "s32[n] permutation",
        lambda x: jnp.intersect1d(x, jnp.arange(3, dtype=x.dtype), size=3, fill_value=-5),
        exact=True,
    ),
    F(
        "group_rank",
        "s32[n] index",
        lambda k: jnp.sum((k[:, None] == k[None]) & jnp.tril(jnp.ones((k.size, k.size), bool), -1), 1),
        exact=True,
        most=37,
    ),
    F("sort_then_segment", "s32[n] index; f32[n]", lambda k, v: jax.ops.segment_sum(v[jnp.argsort(k)], jnp.sort(k), 4)),
    F("approx_max", "f32[n] distinct", lambda x: lax.approx_max_k(x, 1)[0], exact=True),
    F("argpartition", "f32[n] distinct", lambda x: jnp.sort(jnp.argpartition(x, 1)[:2]), exact=True, least=3),
    F("trapezoid_sorted", "f32[n]; f32[n]", lambda x, y: jnp.trapezoid(y, jnp.sort(x))),
]
