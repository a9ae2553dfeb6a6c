"""Corners: NaN, infinities and zeros with signs, overflow, empty arrays, narrow types in every op, ragged indices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from tests.interplay.fragment import Fragment as F


def _bits(x):
    """What arithmetic comparison does not see: signs of zeros."""
    return lax.bitcast_convert_type(x, {2: jnp.uint16, 4: jnp.uint32}[x.dtype.itemsize])


def _signs(x):
    return jnp.signbit(x) & ~jnp.isnan(x)


_NARROW = ("f16", "bf16", "f8e4m3fn", "f8e5m2")
_INTS = ("s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")

FRAGMENTS = [
    # NaN, infinities, signs of zeros
    F("sort_corners", "f32[n] corners", lambda x: (lambda y: (y, _signs(y)))(jnp.sort(x)), exact=True),
    F("argsort_corners", "f32[n] corners", lambda x: (jnp.argsort(x, stable=True), jnp.argsort(x, descending=True, stable=True)), exact=True),
    F("sort_two_corners", "f16[n] corners; bf16[n] corners; s32[n]", lambda a, b, c: lax.sort((a, b, c), num_keys=2), exact=True),
    F("sort_rows_corners", "f64[3,n] corners", lambda x: jnp.sort(x, axis=1), exact=True),
    F("top_k_corners", "f32[n] corners", lambda x: lax.top_k(x, 3), exact=True, least=3),
    F("unique_corners", "f32[n] corners", lambda x: jnp.unique(x, size=5, fill_value=-7), exact=True),
    F("search_corners", "f32[5] corners; f32[n] corners", lambda x, v: jnp.searchsorted(jnp.sort(x), v), exact=True),
    F("argmax_corners", "f32[n] corners; bf16[n,3] corners", lambda x, y: (jnp.argmax(x), jnp.argmin(x), jnp.argmax(y, 0), jnp.nanargmin(jnp.nan_to_num(x))), exact=True),
    F("max_corners", "f32[n,3] corners", lambda x: (x.max(0), x.min(1), jnp.nanmax(x), _signs(jnp.maximum(x, 0.0))), exact=True),
    F("minimum_corners", "f32[n] corners; f32[n] corners", lambda x, y: (jnp.minimum(x, y), jnp.fmax(x, y), jnp.fmin(x, y)), exact=True),
    F("clip_corners", "f32[n] corners; f32[n] corners", lambda x, y: (jnp.clip(x, -1, y), lax.clamp(jnp.float32(-1), x, jnp.float32(2))), exact=True),
    F("compare_corners", "f32[n] corners; f32[n] corners", lambda x, y: (x < y, x <= y, x == y, x != y, x > y, x >= y), exact=True),
    F("sign_corners", "f32[n] corners", lambda x: (jnp.sign(x), _signs(jnp.sign(x)), _signs(jnp.abs(x)), _signs(-x), _signs(x * 0)), exact=True),
    F("round_corners", "f32[n] corners", lambda x: [y for f in (jnp.floor, jnp.ceil, jnp.trunc, jnp.round) for y in (f(x * 0.5), _signs(f(x * 0.5)))], exact=True),
    F("cast_corners", "f32[n] corners", lambda x: [x.astype(t) for t in ("int8", "uint8", "int16", "int32", "uint32", "bool", "float16", "bfloat16")], exact=True),
    F("cast_f64_corners", "f64[n] corners", lambda x: [x.astype(t) for t in ("int32", "int64", "uint64", "float32", "bfloat16")], exact=True),
    F("cast_f8_corners", "f32[n] corners", lambda x: [x.astype(t).astype("float32") for t in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "float8_e4m3fnuz")], exact=True),
    F("divide_corners", "f32[n] corners; f32[n] corners", lambda x, y: (x / y, x * y, x + y, x - y), exact=True),
    F("remainder_corners", "f32[n] corners; f32[n] corners", lambda x, y: (lax.rem(x, y), jnp.fmod(x, y), jnp.mod(x, y)), exact=True),
    F("power_corners", "f32[n] corners", lambda x: (jnp.power(x, 2.0), jnp.power(2.0, jnp.clip(x, -9, 9)), lax.integer_pow(x, -3), jnp.power(x, 0.0))),
    F("functions_corners", "f32[n] corners", lambda x: [f(x) for f in (jnp.exp, jnp.log, jnp.sqrt, lax.rsqrt, jnp.tanh, jnp.log1p, jnp.expm1, jnp.cbrt, jnp.arctan, jax.nn.sigmoid)]),
    F("atan2_corners", "f32[n] corners; f32[n] corners", lambda x, y: (jnp.arctan2(x, y), jnp.hypot(x, y), jnp.logaddexp(x, y))),
    F("complex_corners", "f32[n] corners; f32[n] corners", lambda x, y: (lambda z: (z + 1, z.conj(), -z, z.real, z == z))(lax.complex(x, y)), exact=True),
    F("nextafter_corners", "f32[n] corners; f32[n] corners", lambda x, y: jnp.where(jnp.abs(x) < 1e-30, x, jnp.nextafter(x, y)), exact=True),
    F("frexp_corners", "f32[n] corners", lambda x: jnp.frexp(jnp.nan_to_num(x)), exact=True),
    F("is_corners", "bf16[n] corners; f16[n] corners", lambda x, y: [f(v) for v in (x, y) for f in (jnp.isnan, jnp.isinf, jnp.isfinite, jnp.signbit, jnp.isneginf)], exact=True),
    F("cumulative_corners", "f32[n] corners", lambda x: (lax.cummax(x), lax.cummin(x, reverse=True)), exact=True),
    F("nan_functions", "f32[n,3] corners", lambda x: (jnp.nansum(jnp.clip(x, -9, 9), 0), jnp.nanmean(jnp.clip(x, -9, 9)), jnp.nanmin(x, 1))),
    F("where_corners", "f32[n] corners", lambda x: jnp.where(jnp.isnan(x), 0, jnp.where(x > 1e30, 5, x)) * 0.5, exact=True),
    F("reduce_precision_corners", "f32[n] corners", lambda x: (lax.reduce_precision(x, 4, 3), lax.reduce_precision(x, 8, 2), lax.reduce_precision(x, 2, 23)), exact=True),
    F("softmax_corners", "f32[n,4] corners", lambda x: (jax.nn.softmax(jnp.where(x > 0, -jnp.inf, jnp.clip(x, -9, 9))), jax.nn.logsumexp(x, 1))),
    F("pool_corners", "f32[n+2] corners", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3,), (1,), "SAME"), exact=True),
    F("scatter_max_corners", "f32[5] corners; f32[n] corners; s32[n] index", lambda x, v, k: (x.at[k].max(v), x.at[k].min(v)), exact=True),
    # reductions by functions whose sides may not change places
    F("reduce_last_nonzero", "f32[3,n]", lambda x: lax.reduce(x * (x > 1), jnp.float32(0), lambda a, b: jnp.where(b != 0, b, a), (1,)), exact=True),
    F("reduce_first_nonzero", "s32[n,3]", lambda x: lax.reduce(x * (x > 9), jnp.int32(0), lambda a, b: jnp.where(a != 0, a, b), (0,)), exact=True),
    F("reduce_affine", "s32[n]; s32[n]", lambda a, b: lax.reduce((a, b), (jnp.int32(1), jnp.int32(0)), lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (0,)), exact=True),
    F("reduce_tied_keys", "s32[2,n] index; f32[2,n]", lambda k, x: lax.reduce((k, x), (jnp.int32(-1), jnp.float32(0)), lambda p, q: (jnp.where(p[0] >= q[0], p[0], q[0]), jnp.where(p[0] >= q[0], p[1], q[1])), (1,)), exact=True),
    # every width of integers
    *[F(f"overflow_{t}", f"{t}[n]; {t}[n]", lambda x, y: (x * x * x + y, x - y - y, (x + y).sum(dtype=x.dtype), x.max(), -x), exact=True) for t in _INTS],
    *[F(f"divide_{t}", f"{t}[n] ends; {t}[n] ends", lambda x, y: (lax.div(x, y), lax.rem(x, y)), exact=True) for t in _INTS[2:]],
    *[F(f"compare_sort_{t}", f"{t}[n] ends; {t}[n] ends", lambda x, y: (jnp.sort(x), x < y, jnp.maximum(x, y), jnp.argmax(x)), exact=True) for t in _INTS],
    *[F(f"ends_to_floats_{t}", f"{t}[n] ends", lambda x: [x.astype(f) for f in ("float32", "float16", "bfloat16")], exact=True) for t in _INTS],
    F("abs_of_least", "s32[n] ends; s8[n] ends", lambda x, y: (jnp.abs(x), jnp.abs(y), jnp.sign(x), -y), exact=True),
    F("mean_of_ints", "s32[n]; u8[n] bits; pred[n]", lambda x, y, p: (x.mean(), y.mean(), p.mean(), y.sum(), p.sum())),
    F("bool_arithmetic", "pred[n]; pred[n]", lambda p, q: (p + q, p * q, p ^ q, p < q, jnp.maximum(p, q), p.astype("int8") - q, jnp.sort(p), jnp.cumsum(p), jnp.prod(p)), exact=True),
    F("bool_dot", "pred[3,n]; pred[n,4]", lambda p, q: (jnp.matmul(p, q), lax.dot(p, q, preferred_element_type=jnp.int32)), exact=True),
    F("bool_reduce_window", "pred[n+2]", lambda p: (lax.reduce_window(p, False, lax.bitwise_or, (3,), (1,), "SAME"), lax.reduce_window(p, True, lax.bitwise_and, (2,), (1,), "VALID")), exact=True),
    F("floor_divide", "s32[n]; s32[n] nonzero; f32[n]; f32[n] positive", lambda a, b, x, y: (a // b, a % b, jnp.divmod(a, -b), jnp.round(x / y) * 0 + a), exact=True),
    F("right_shift_negative", "s8[n]; s16[n]; s8[n] shift", lambda x, y, k: (x >> 1, y >> 3, lax.shift_right_arithmetic(x, k), lax.shift_right_logical(x, k), lax.shift_left(x, k)), exact=True),
    F("int_power_wraps", "s32[n]; u8[n] bits; s32[n] index", lambda x, y, k: (x**7, y**5, jnp.power(x, k)), exact=True),
    # narrow floats in every family
    *[F(f"{t}_arithmetic", f"{t}[n,3]; {t}[n,3]", lambda x, y: (x + y, x * y - x, jnp.maximum(x, y), x < y, -x, jnp.abs(y)), ulps=2) for t in _NARROW],
    *[F(f"{t}_reduce", f"{t}[n,3]", lambda x: (x.max(0), x.min(), jnp.argmax(x, 1), jnp.sort(x, axis=0)), exact=True) for t in _NARROW[:2]],
    *[F(f"{t}_sum", f"{t}[3,n]", lambda x: x.sum(1), ulps=32, most=33) for t in _NARROW[:2]],
    *[F(f"{t}_moves", f"{t}[n,3]; s32[4] wild", lambda x, k: (x.T, x[::-1, ::2], jnp.concatenate([x, x]), jnp.pad(x, 1), x.at[k].set(x[0], mode="drop"), x.at[k].get(mode="clip")), exact=True) for t in (*_NARROW, "s4", "u4")],
    *[F(f"{t}_matmul", f"{t}[4,n]; {t}[n,3]", lambda x, y: (jnp.matmul(x, y, preferred_element_type=jnp.float32), lax.dot(x, y)), ulps=8, most=33) for t in _NARROW],
    *[F(f"{t}_loop", f"{t}[n]", lambda x: lax.fori_loop(0, 3, lambda i, v: (v * 0.5 + x).astype(x.dtype), x), ulps=4) for t in _NARROW],
    *[F(f"{t}_scan", f"{t}[n,2]", lambda x: lax.scan(lambda c, v: (v, c), x[0], x), exact=True) for t in (*_NARROW, "s4", "u4")],
    *[F(f"{t}_functions", f"{t}[n] small", lambda x: [f(x) for f in (jnp.exp, jnp.sin, jnp.tanh, jnp.log1p, jnp.expm1, jax.nn.sigmoid, jnp.arcsin, lax.erf)], ulps=4) for t in _NARROW[:2]],
    F("half_conv", "f16[1,2,n+2]; f16[3,2,3]", lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME"), ulps=8, most=33),
    F("half_cumsum", "f16[n] small", lambda x: (jnp.cumsum(x * 0.1), lax.cummax(x)), ulps=32, most=33),
    F("half_scatter", "bf16[5]; bf16[n]; s32[n] index", lambda x, v, k: (x.at[k].max(v), x.at[k].min(v)), exact=True),
    F("half_window", "bf16[n+2,3]", lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (2, 1), (1, 1), "VALID"), lax.reduce_window(x, 0.0, lax.add, (2, 1), (1, 1), "VALID")), ulps=4),
    F("half_variance", "f16[n,4]", lambda x: (x.mean(0), x.var(0), x.std()), ulps=16, most=33),
    F("half_interleaved", "bf16[n]; f16[n]; f32[n]", lambda a, b, c: (a * b, a.astype("float16") + b, a * c, (b + c).astype("bfloat16")), ulps=4),
    F("s4_arithmetic_all", "s4[n]; s4[n]", lambda x, y: (x - y, x * y, -x, jnp.maximum(x, y), x < y, jnp.where(x > y, x, y)), exact=True),
    F("u4_unpacked", "u8[n] bits", lambda x: (lax.bitcast_convert_type(x, jnp.uint4), (x & 15).astype("uint4"), (x >> 4).astype("uint4")), exact=True),
    F("s4_while", "s4[n]", lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1][::-1]), (0, x))[1], exact=True),
    F("s4_cond", "pred[]; s4[n]", lambda p, x: lax.cond(p, lambda v: v + 1, lambda v: v[::-1], x), exact=True),
    F("mixed_matmul", "bf16[3,n]; f32[n,2]; s8[3,n]; f32[n,2]", lambda a, b, c, d: (lax.dot(a, b, preferred_element_type=jnp.float32), jnp.matmul(c, d)), ulps=128),
    # empty and ragged
    F("empty_arrays", "f32[n]", lambda x: (x[:0].sum(), jnp.concatenate([x[:0], x]), jnp.zeros((0, x.size)) @ x, jnp.zeros((3, 0)) @ jnp.zeros((0, 2)), x[:0].max(initial=3.0), jnp.cumsum(x[:0]), jnp.sort(x[:0]))),
    F("empty_loops", "f32[n]", lambda x: (lax.scan(lambda c, v: (c + v, v), x, jnp.zeros((0, x.size), x.dtype)), lax.fori_loop(3, 3, lambda i, v: v + 1, x)), exact=True),
    F("empty_gather", "f32[n,2]", lambda x: (x[jnp.zeros(0, int)], x.at[jnp.zeros(0, int)].add(1.0), jax.ops.segment_sum(x[:0], jnp.zeros(0, int), 3)), exact=True),
    F("empty_conv", "f32[1,2,n]", lambda x: (lax.conv_general_dilated(x[:0], jnp.ones((3, 2, 1), x.dtype), (1,), "SAME"), lax.conv_general_dilated(x[:, :0], jnp.ones((3, 0, 1), x.dtype), (1,), "SAME")), exact=True),
    F("ragged_all_modes", "f32[n,2]; s32[6] wild", lambda x, k: [x.at[k].get(mode=m, fill_value=5.0) for m in ("clip", "fill")] + [x.at[k].add(1.0, mode=m) for m in ("clip", "drop")], exact=True),
    F("ragged_two_axes", "s32[n,5]; s32[4] wild; s32[4] wild", lambda x, i, j: (x.at[i, j].get(mode="fill", fill_value=-1), x.at[i, j].add(2, mode="drop"), x[i % x.shape[0], :, None][:, ::-2]), exact=True),
    F("ragged_u8_index", "f32[n]; u8[3] bits", lambda x, k: (x.at[k].get(mode="fill", fill_value=0), x.at[k].set(1.0, mode="drop")), exact=True),
    F("ragged_window_scatter", "f32[n+3,4]; s32[2,2] wild; f32[2,2,3]", lambda x, k, v: lax.scatter_add(x, k, v, lax.ScatterDimensionNumbers((1, 2), (), (0, 1)), mode="clip"), ulps=16),
    F("ragged_gather_general", "f32[n+2,4,3]; s32[2,5,2] wild", lambda x, k: lax.gather(x, k, lax.GatherDimensionNumbers((1, 3), (0,), (2, 0)), (1, 2, 2), indices_are_sorted=False, mode="clip"), exact=True),
    F("batched_gather_general", "f32[3,n,2]; s32[3,4] wild", lambda x, k: jnp.take_along_axis(x, k[:, :, None] % x.shape[1], 1), exact=True),
    F("negative_strides", "s32[n,6]", lambda x: (x[::-1, ::-2], x[::-2][:, 4::-3], jnp.flip(x)[:, 1:]), exact=True),
    F("broadcast_strides", "f32[n]", lambda x: (jnp.broadcast_to(x[:, None, None], (x.size, 2, 3)).transpose(2, 0, 1).sum(0), jnp.broadcast_to(x, (3, x.size))[:, ::-1].T.reshape(-1)), exact=True),
    F("bitcast_widths", "u8[n,8] bits", lambda x: (lax.bitcast_convert_type(x.reshape(-1, 2, 4), jnp.uint32), lax.bitcast_convert_type(x.reshape(-1, 4, 2), jnp.int16)), exact=True),
    F("bitcast_complex_parts", "c64[n]", lambda x: (x.view("float32") if x.ndim else x.real, jnp.stack([x.real, x.imag], -1).reshape(-1)), exact=True, mapped=False),
    F("round_half", "s32[n]", lambda x: [f(x * 0.5) for f in (jnp.round, jnp.rint, jnp.trunc)] + [lax.round(x * 0.5, lax.RoundingMethod.AWAY_FROM_ZERO)], exact=True),
    F("float0_scan", "f32[n]", lambda x: jax.grad(lambda v: lax.scan(lambda c, i: (c * v.sum() + i, i), jnp.float32(1), jnp.arange(3))[0])(x), ulps=128),
]  # fmt: skip
