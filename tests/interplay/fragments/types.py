"""Types: conversions, bits, integers of every width, sub-byte and 8-bit types, complex numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from tests.interplay.fragment import Fragment as F

_INT_CASTS = ("int8", "uint8", "int16", "int32", "float32", "bfloat16")

FRAGMENTS = [
    *[F(f"cast_s32_to_{t}", "s32[n]", lambda x, t=t: x.astype(t), exact=True, least=0) for t in _INT_CASTS],
    *[
        F(f"cast_f32_to_{t}", "f32[n]", lambda x, t=t: x.astype(t), exact=True)
        for t in ("bfloat16", "float16", "int32", "bool")
    ],
    *[
        F(f"cast_f32_to_{t}", "f32[n]", lambda x, t=t: x.astype(t), exact=True)
        for t in ("float8_e4m3fn", "float8_e5m2", "complex64")
    ],
    F("cast_f64_down", "f64[n]", lambda x: (x.astype("float32"), x.astype("int64"), x.astype("float16")), exact=True),
    F("cast_chain", "f32[n]", lambda x: x.astype("bfloat16").astype("float32") * 2, exact=True),
    F("f8_multiply", "f8e4m3fn[n]; f8e4m3fn[n]", lambda x, y: x * y, ulps=2),
    F("f8_scale", "f8e5m2[n,3]", lambda x: (x.astype("float32") * 0.5).astype("float8_e4m3fn"), exact=True),
    F("f8_dot", "f8e4m3fn[3,n]; f8e4m3fn[n,5]", lambda x, y: jnp.matmul(x, y, preferred_element_type=jnp.float32)),
    F("f8_transpose", "f8e5m2[n,3]", lambda x: (x.T, x[::-1]), exact=True),
    F("s4_arithmetic", "s4[n]; s4[n]", lambda x, y: x + y, exact=True),
    F("s4_widen", "s4[n,3]", lambda x: x.astype("int32") * 3 - 1, exact=True),
    F("s4_dequantize", "s4[n,4]; f32[4] positive", lambda x, s: x.astype("float32") * s, exact=True),
    F(
        "s4_dot",
        "s4[3,n]; s8[n,4]",
        lambda x, y: jnp.matmul(x.astype("int8"), y, preferred_element_type=jnp.int32),
        exact=True,
    ),
    F("u4_shift", "u4[n]", lambda x: (x.astype("uint8") >> 1).astype("uint4"), exact=True),
    F("u4_slice", "u4[2*n+1]", lambda x: x[1::2], exact=True),
    F("s4_pack", "s8[n]", lambda x: x.astype("int4"), exact=True),
    F("s4_transpose", "s4[n,5]", lambda x: jnp.transpose(x), exact=True),
    F("bitcast_f32", "f32[n]", lambda x: lax.bitcast_convert_type(x, jnp.uint32) >> 23, exact=True),
    F("bitcast_bytes", "f32[n]", lambda x: lax.bitcast_convert_type(x, jnp.uint8), exact=True),
    F("bitcast_join", "u16[n,2] bits", lambda x: lax.bitcast_convert_type(x, jnp.uint32), exact=True),
    F("bitcast_f64", "f64[n]", lambda x: lax.bitcast_convert_type(x, jnp.uint32), exact=True),
    F("bitcast_bf16", "bf16[n]", lambda x: lax.bitcast_convert_type(x, jnp.int16), exact=True),
    F("view_halves", "u32[n] bits", lambda x: lax.bitcast_convert_type(x, jnp.uint16)[..., 0], exact=True),
    F(
        "shifts",
        "s32[n]; s32[n] shift",
        lambda x, k: (lax.shift_left(x, k), lax.shift_right_arithmetic(x, k), lax.shift_right_logical(x, k)),
        exact=True,
    ),
    F(
        "shifts_u8",
        "u8[n] bits; u8[n] shift",
        lambda x, k: (lax.shift_left(x, k), lax.shift_right_logical(x, k)),
        exact=True,
    ),
    F("shifts_s64", "s64[n]; s64[n] shift", lambda x, k: (x << k, x >> k), exact=True),
    F("bit_logic", "u32[n] bits; u32[n] bits", lambda x, y: (x & y, x | ~y, x ^ y), exact=True),
    F("popcount", "u32[n] bits", lambda x: (lax.population_count(x), lax.clz(x)), exact=True),
    F("popcount_s8", "s8[n]", lambda x: (lax.population_count(x), lax.clz(x)), exact=True),
    F("popcount_u64", "u64[n] bits", lambda x: (lax.population_count(x), lax.clz(x)), exact=True),
    F("rotate_left", "u32[n] bits", lambda x: (x << 7) | (x >> 25), exact=True),
    F("int_wrap", "s32[n]; s32[n]", lambda x, y: x * 1664525 + y * 1013904223, exact=True),
    F("int_wrap_s8", "s8[n]; s8[n]", lambda x, y: x * y + 100, exact=True),
    F("int_wrap_u16", "u16[n] bits", lambda x: x * x - 3, exact=True),
    F("int_power", "s32[n]", lambda x: (x**3, lax.integer_pow(x, 4)), exact=True),
    F("int_divide_s64", "s64[n]; s64[n] nonzero", lambda x, y: (x // y, lax.div(x, y), lax.rem(x, y)), exact=True),
    F("int_sign", "s16[n]", lambda x: (jnp.sign(x), jnp.abs(x), -x), exact=True),
    F("gcd", "s32[n]; s32[n] nonzero", jnp.gcd, exact=True),
    F("isqrt_bits", "u32[n] bits", lambda x: _isqrt(x >> 8), exact=True),
    F("bool_logic", "pred[n]; pred[n]", lambda x, y: (x & y, x | y, x ^ y, ~x), exact=True, least=0),
    F("bool_count", "pred[n,3]", lambda x: (x.sum(), x.any(0), x.all(1)), exact=True),
    F("packbits", "pred[8*n]", jnp.packbits, exact=True),
    F("unpackbits", "u8[n] bits", jnp.unpackbits, exact=True),
    F("hash_mix", "u32[n] bits", lambda x: _mix(x), exact=True),
    F("crc_table", "u8[n] bits", lambda x: (x.astype("uint32") * jnp.uint32(0xEDB88320)) >> 3, exact=True),
    F("saturate", "s32[n]", lambda x: jnp.clip(x * 9, -128, 127).astype("int8"), exact=True),
    F("quantize", "f32[n,3]", lambda x: jnp.clip(jnp.round(x * 16), -128, 127).astype("int8"), exact=True),
    F("quantized_dot", "s8[3,n]; s8[n,5]", lambda x, y: lax.dot(x, y, preferred_element_type=jnp.int32), exact=True),
    F(
        "fixed_point_multiply",
        "s32[n]; s32[n]",
        lambda x, y: ((x.astype("int16") * y.astype("int16")).astype("int32")) >> 4,
        exact=True,
    ),
    # complex
    F("complex_multiply", "c64[n]; c64[n]", lambda x, y: x * y + jnp.conj(x)),
    F("complex_divide", "c64[n]; c64[n]", lambda x, y: x / (2 + jnp.abs(y)).astype(x.dtype)),
    F("complex_exp_log", "c64[n]", lambda x: (jnp.exp(x * 0.5), jnp.log(x + 3))),
    F("complex_sqrt", "c64[n]", lambda x: jnp.sqrt(x + 3)),
    F("complex_trig", "c64[n] ", lambda x: (jnp.sin(x * 0.5), jnp.tanh(x * 0.3))),
    F("complex_abs", "c64[n]", lambda x: (jnp.abs(x), jnp.angle(x + 3))),
    F("complex_parts", "c64[n,3]", lambda x: (x.real, x.imag, lax.complex(x.imag, x.real)), exact=True, least=0),
    F("complex_power", "c64[n]", lambda x: (x + 3) ** 1.5),
    F("complex_dot", "c64[3,n]; c64[n,4]", lambda x, y: x @ y),
    F("complex_grad", "c64[n]", jax.grad(lambda x: jnp.sum(jnp.abs(x * x) + x.real))),
    F("complex_c128", "c128[n]; c128[n]", lambda x, y: (x * y, jnp.exp(x * 1j), jnp.conj(y))),
    F("complex_polar", "f32[n] positive; f32[n]", lambda r, a: r * jnp.exp(1j * a).astype("complex64")),
    F("complex_sum", "c64[n,3]", lambda x: (x.sum(0), x.mean())),
    F("complex_where", "pred[n]; c64[n]", lambda p, x: jnp.where(p, x, x.conj()), exact=True),
    F("half_sum", "f16[n,3]", lambda x: x.sum(1), ulps=8),
    F("half_dot", "bf16[4,n]; bf16[n,3]", lambda x, y: x @ y, ulps=8),
    F("half_dot_wide", "bf16[4,n]; bf16[n,3]", lambda x, y: jnp.matmul(x, y, preferred_element_type=jnp.float32)),
    F("half_chain", "bf16[n]", lambda x: jnp.sin(x) * x + 1, ulps=8),
    F("half_max", "f16[n,3]", lambda x: (x.max(0), x.argmax(1)), exact=True),
    F("mixed_types", "f32[n]; s32[n]; pred[n]", lambda x, k, p: jnp.where(p, x * k, x + k)),
    F("promote_all", "s8[n]; u8[n]; bf16[n]", lambda a, b, c: (a + b, a * c), exact=True),
]


def _isqrt(x):
    r = jnp.zeros_like(x)
    for k in range(11, -1, -1):
        t = r | jnp.uint32(1 << k)
        r = jnp.where(t * t <= x, t, r)
    return r


def _mix(x):
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)
