"""Fourier transforms and scans: every kind and odd length, cumulative ops, associative scans."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from tests.interplay.fragment import Fragment as F

FRAGMENTS = [
    F("fft", "c64[n]", jnp.fft.fft),
    F("ifft", "c64[3,n]", jnp.fft.ifft),
    F("fft_real", "f32[n]", jnp.fft.fft),
    F("fft_axis0", "c64[n,3]", lambda x: jnp.fft.fft(x, axis=0)),
    F("fft_c128", "c128[n]", lambda x: (jnp.fft.fft(x), jnp.fft.ifft(x))),
    F("rfft", "f32[2,n]", jnp.fft.rfft),
    F("rfft_f64", "f64[n]", jnp.fft.rfft),
    F("rfft_axis0", "f32[n,3]", lambda x: jnp.fft.rfft(x, axis=0)),
    F("irfft", "c64[n+1]", lambda x: jnp.fft.irfft(x, 2 * x.shape[0] - 2)),
    F("irfft_odd", "c64[n+1]", lambda x: jnp.fft.irfft(x, 2 * x.shape[0] - 1)),
    F("hfft", "c64[n+1]", lambda x: jnp.fft.hfft(x)),
    F("fft2", "c64[n,5]", jnp.fft.fft2, most=37),
    F("fftn", "c64[3,4,n]", jnp.fft.fftn, most=37),
    F("rfft2", "f32[3,n,6]", jnp.fft.rfft2, most=37),
    F("irfft2", "c64[n,4]", jnp.fft.irfft2, most=37),
    F("fft_padded", "c64[n]", lambda x: jnp.fft.fft(x, x.shape[0] + 3)),
    F("fft_norm", "c64[n]", lambda x: jnp.fft.fft(x, norm="ortho")),
    F("fftshift", "f32[n,3]", lambda x: (jnp.fft.fftshift(x), jnp.fft.ifftshift(x, 0)), exact=True),
    F(
        "fft_convolve",
        "f32[n]; f32[n]",
        lambda x, y: jnp.fft.irfft(jnp.fft.rfft(x, 2 * x.size) * jnp.fft.rfft(y, 2 * x.size), 2 * x.size),
    ),
    F("fft_grad", "f32[n]", jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.rfft(x)) ** 2))),
    F("rfft_grad", "f32[2,n]", jax.grad(lambda x: jnp.sum(jnp.fft.rfft(x).real * 2))),
    F(
        "spectral_derivative",
        "f32[n]",
        lambda x: jnp.fft.ifft(1j * jnp.fft.fftfreq(x.size).astype("float32") * jnp.fft.fft(x)).real,
    ),
    F("dct", "f32[n]", lambda x: jax.scipy.fft.dct(x)),
    F(
        "stft_frames",
        "f32[n+8]",
        lambda x: jnp.fft.rfft(jnp.stack([x[k : k + 8] for k in range(0, x.size - 7, 4)])),
        most=128,
    ),
    F("cumsum", "f32[n,3]", lambda x: jnp.cumsum(x, 0), least=0),
    F("cumsum_last", "f32[3,n]", lambda x: jnp.cumsum(x, 1)),
    F("cumsum_reverse", "f32[n]", lambda x: lax.cumsum(x, reverse=True)),
    F("cumsum_ints", "s32[n]", jnp.cumsum, exact=True, least=0),
    F("cumsum_flat", "s32[n,5]", jnp.cumsum, exact=True, most=64),
    F("cumsum_grad", "f32[n]", jax.grad(lambda x: jnp.sum(jnp.cumsum(x) ** 2))),
    F("cumprod", "f32[n] unit", lambda x: jnp.cumprod(x + 0.5)),
    F("cumprod_ints", "s32[3,n]", lambda x: lax.cumprod(x, 1), exact=True),
    F("cummax", "f32[n,2]", lambda x: lax.cummax(x), exact=True),
    F("cummin", "f32[2,n]", lambda x: lax.cummin(x, 1, reverse=True), exact=True),
    F("cumlogsumexp", "f32[n]", lax.cumlogsumexp),
    F("cumsum_bf16", "bf16[n]", jnp.cumsum, ulps=16, most=33),
    F("cumsum_c64", "c64[n]", jnp.cumsum),
    F("associative_add", "f32[n]", lambda x: lax.associative_scan(jnp.add, x)),
    F(
        "associative_affine",
        "f32[n] small; f32[n]",
        lambda a, b: lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (a, b)),
        most=33,
    ),
    F("associative_max", "f32[n,2]", lambda x: lax.associative_scan(jnp.maximum, x, reverse=True), exact=True),
    F("associative_matmul", "f32[n,2,2] small", lambda a: lax.associative_scan(jnp.matmul, a * 0.7), most=17),
    F(
        "associative_grad",
        "f32[n]",
        jax.grad(lambda x: jnp.sum(lax.associative_scan(jnp.multiply, jnp.tanh(x) + 1.2))),
        most=17,
    ),
    F(
        "segmented_scan",
        "f32[n]; pred[n]",
        lambda x, p: lax.associative_scan(lambda a, b: (jnp.where(b[1], b[0], a[0] + b[0]), a[1] | b[1]), (x, p)),
        most=33,
    ),
    F("diff", "f32[n+2]", lambda x: (jnp.diff(x), jnp.ediff1d(x)), exact=True),
    F("gradient", "f32[n+3]", jnp.gradient),
    F("running_mean", "f32[n+4]", lambda x: (jnp.cumsum(x)[4:] - jnp.cumsum(x)[:-4]) / 4),
    F("exponential_average", "f32[n]", lambda x: lax.scan(lambda c, v: (0.9 * c + 0.1 * v,) * 2, x[0], x)[1]),
]
