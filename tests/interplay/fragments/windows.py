"""Convolutions and pooling: one to three dimensions, strides, dilation, groups, transposes, their gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.interplay.fragment import Fragment as F


def _conv(x, w, *args, **kwargs):
    spatial = "DHW"[3 - (x.ndim - 2) :]
    numbers = (f"NC{spatial}", f"OI{spatial}", f"NC{spatial}")
    return lax.conv_general_dilated(x, w, *args, dimension_numbers=numbers, **kwargs)


def _pool(x, init, op, window, strides=None, padding="VALID"):
    return lax.reduce_window(x, init, op, window, strides or (1,) * x.ndim, padding)


FRAGMENTS = [
    F("convolve", "f32[n+2]; f32[3]", lambda x, w: jnp.convolve(x, w)),
    F("correlate", "f32[n+4]; f32[4]", lambda x, w: jnp.correlate(x, w, mode="same")),
    F("conv1d", "f32[2,3,n+2]; f32[4,3,3]", lambda x, w: _conv(x, w, (1,), "VALID"), most=64),
    F("conv1d_same", "f32[1,2,n]; f32[3,2,5]", lambda x, w: _conv(x, w, (1,), "SAME")),
    F("conv1d_stride", "f32[1,2,n+4]; f32[3,2,3]", lambda x, w: _conv(x, w, (2,), [(1, 0)])),
    F("conv1d_causal", "f32[2,3,n]; f32[3,3,4]", lambda x, w: _conv(x, w, (1,), [(3, 0)]), most=64),
    F("conv1d_depthwise", "f32[1,4,n+2]; f32[4,1,3]", lambda x, w: _conv(x, w, (1,), "SAME", feature_group_count=4)),
    F("conv1d_f64", "f64[1,2,n+2]; f64[3,2,3]", lambda x, w: _conv(x, w, (1,), "SAME")),
    F("conv1d_c64", "c64[1,2,n+2]; c64[2,2,3]", lambda x, w: _conv(x, w, (1,), "SAME"), most=37),
    F("conv1d_ints", "s32[1,2,n+2]; s32[3,2,3]", lambda x, w: _conv(x, w, (1,), "SAME"), exact=True),
    F("conv2d", "f32[1,3,n+2,6]; f32[2,3,3,3]", lambda x, w: _conv(x, w, (1, 1), "SAME"), most=37),
    F("conv2d_stride", "f32[2,2,n+3,7]; f32[3,2,3,3]", lambda x, w: _conv(x, w, (2, 2), "VALID"), most=37),
    F(
        "conv2d_dilated",
        "f32[1,2,n+4,8]; f32[2,2,3,3]",
        lambda x, w: _conv(x, w, (1, 1), "SAME", rhs_dilation=(2, 2)),
        most=37,
    ),
    F(
        "conv2d_grouped",
        "f32[1,4,n+2,5]; f32[6,2,3,3]",
        lambda x, w: _conv(x, w, (1, 1), "SAME", feature_group_count=2),
        most=37,
    ),
    F(
        "conv2d_transposed",
        "f32[1,2,n,4]; f32[3,2,3,3]",
        lambda x, w: _conv(x, w, (1, 1), [(2, 2), (2, 2)], lhs_dilation=(2, 2)),
        most=24,
    ),
    F("conv_transpose", "f32[1,n,4,2]; f32[3,3,2,3]", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), most=24),
    F(
        "conv2d_nhwc",
        "f32[2,n+2,5,3]; f32[3,3,3,4]",
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        most=37,
    ),
    F("conv2d_1x1", "f32[2,3,n,4]; f32[5,3,1,1]", lambda x, w: _conv(x, w, (1, 1), "VALID"), most=37),
    F("conv2d_bf16", "bf16[1,2,n+2,4]; bf16[2,2,3,3]", lambda x, w: _conv(x, w, (1, 1), "SAME"), ulps=8, most=33),
    F(
        "conv2d_bias_relu",
        "f32[1,2,n+2,5]; f32[3,2,3,3]; f32[3]",
        lambda x, w, b: jax.nn.relu(_conv(x, w, (1, 1), "SAME") + b[:, None, None]),
        most=33,
    ),
    F(
        "conv2d_grad",
        "f32[1,2,n+2,5]; f32[3,2,3,3]",
        jax.grad(lambda x, w: jnp.sum(_conv(x, w, (1, 1), "SAME") ** 2), (0, 1)),
        most=24,
    ),
    F(
        "conv1d_stride_grad",
        "f32[1,2,n+4]; f32[3,2,3]",
        jax.grad(lambda x, w: jnp.sum(jnp.sin(_conv(x, w, (2,), "SAME"))), (0, 1)),
        most=64,
    ),
    F(
        "conv2d_grouped_grad",
        "f32[1,4,n+2,3]; f32[4,2,2,2]",
        jax.grad(lambda x, w: jnp.sum(_conv(x, w, (1, 1), "SAME", feature_group_count=2) ** 2), 1),
        most=24,
    ),
    F("conv3d", "f32[1,2,n+1,4,3]; f32[2,2,2,2,2]", lambda x, w: _conv(x, w, (1, 1, 1), "SAME"), most=17),
    F(
        "conv_batch_groups",
        "f32[4,2,n+2]; f32[4,2,3]",
        lambda x, w: _conv(x, w, (1,), "SAME", batch_group_count=2),
        most=64,
    ),
    F(
        "conv_patches",
        "f32[1,2,n+2,5]",
        lambda x: lax.conv_general_dilated_patches(x, (2, 2), (1, 1), "VALID"),
        most=24,
    ),
    F("conv_reversed", "f32[1,2,n+2]; f32[2,2,3]", lambda x, w: _conv(x, w[:, :, ::-1], (1,), "SAME")),
    F("vmap_conv", "f32[3,1,2,n+2]; f32[3,2,2,3]", jax.vmap(lambda x, w: _conv(x, w, (1,), "SAME")), most=37),
    F(
        "max_pool",
        "f32[1,2,n+1,6]",
        lambda x: _pool(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2)),
        exact=True,
        most=64,
    ),
    F("max_pool_overlap", "f32[n+2,5]", lambda x: _pool(x, -jnp.inf, lax.max, (3, 3), (1, 2), "SAME"), exact=True),
    F("avg_pool", "f32[1,2,n+1,6]", lambda x: _pool(x, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 1, 1), "SAME") / 4, most=64),
    F("min_pool_ints", "s32[n+2,3]", lambda x: _pool(x, np.int32(2**31 - 1), lax.min, (3, 1)), exact=True),
    F(
        "sum_pool_dilated",
        "f32[n+4]",
        lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (1,), "VALID", window_dilation=(2,)),
    ),
    F(
        "max_pool_base_dilated",
        "f32[n+2]",
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3,), (1,), "SAME", base_dilation=(2,)),
        exact=True,
    ),
    F(
        "max_pool_grad",
        "f32[1,1,n+1,6] distinct",
        jax.grad(lambda x: jnp.sum(_pool(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2)) ** 2)),
        most=64,
    ),
    F(
        "max_pool_overlap_grad",
        "f32[n+2,5] distinct",
        jax.grad(lambda x: jnp.sum(_pool(x, -jnp.inf, lax.max, (3, 2), (1, 1), "SAME"))),
        most=64,
    ),
    F(
        "max_pool_1d_grad",
        "f32[n+2] distinct",
        jax.grad(lambda x: jnp.sum(_pool(x, -jnp.inf, lax.max, (3,), (2,)) * 3)),
        exact=True,
    ),
    F(
        "avg_pool_grad",
        "f32[1,1,n+1,6]",
        jax.grad(lambda x: jnp.sum(_pool(x, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2)) ** 2)),
        most=64,
    ),
    F("pool_f64", "f64[n+1,3]", lambda x: _pool(x, -jnp.inf, lax.max, (2, 2)), exact=True),
    F("pool_bf16", "bf16[n+1,4]", lambda x: _pool(x, -jnp.inf, lax.max, (2, 2), (1, 2)), exact=True),
    F("pool_product", "f32[n+2] positive", lambda x: _pool(x, np.float32(1), lax.mul, (3,))),
    F(
        "pool_pair",
        "f32[n+2] distinct; s32[n+2]",
        lambda x, k: lax.reduce_window((x, k), (jnp.float32(-jnp.inf), jnp.int32(0)), _larger, (3,), (1,), "VALID"),
        exact=True,
    ),
    F("local_response", "f32[1,5,n]", lambda x: x / (1 + _pool(x * x, 0.0, lax.add, (1, 3, 1), None, "SAME")) ** 0.75),
    F(
        "cumsum_by_window",
        "f32[n]",
        lambda x: lax.reduce_window(x, 0.0, lax.add, (x.size,), (1,), [(x.size - 1, 0)]),
        most=37,
    ),
    F("median_filter", "f32[n+2]", lambda x: jnp.median(jnp.stack([x[:-2], x[1:-1], x[2:]]), 0), exact=True),
    F("laplacian", "f32[n+2,6]", lambda x: x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1]),
    F(
        "blur",
        "f32[n+2,5]",
        lambda x: jax.scipy.signal.convolve2d(x, jnp.ones((3, 3), x.dtype) / 9, mode="same"),
        most=37,
    ),
    F("resize_linear", "f32[n,5]", lambda x: jax.image.resize(x, (7, 9), "linear"), most=64),
    F("resize_nearest", "f32[n,4]", lambda x: jax.image.resize(x, (5, 3), "nearest"), exact=True, most=64),
    F("resize_cubic", "f32[n,4]", lambda x: jax.image.resize(x, (6, 6), "cubic"), most=37),
    F("upsample", "f32[n,3]", lambda x: jnp.repeat(jnp.repeat(x, 2, 0), 2, 1), exact=True),
    F("unfold", "f32[n+3]", lambda x: x[jnp.arange(x.size - 3)[:, None] + jnp.arange(4)], exact=True),
]


def _larger(a, b):
    take = a[0] > b[0]
    return jnp.where(take, a[0], b[0]), jnp.where(take, a[1], b[1])
