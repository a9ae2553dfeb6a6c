"""Derivatives of odd things: higher orders, jvp and vjp of linear algebra, of scans and loops, custom rules, implicit."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from tests.interplay.fragment import Fragment as F


def _sum(function):
    return lambda *a: jnp.sum(jnp.sin(function(*a)))


def _spd(a):
    return a @ a.T / a.shape[0] + 2 * jnp.eye(a.shape[0], dtype=a.dtype)


def _jvp(function):
    return lambda x, t: jax.jvp(function, (x,), (t,))


@jax.custom_vjp
def _clipped(x):
    return x * 2


_clipped.defvjp(lambda x: (x * 2, x), lambda x, g: (jnp.clip(g, -0.5, 0.5) * jnp.sign(x),))


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def _straight_through(x, levels):
    return jnp.round(x * levels) / levels


_straight_through.defvjp(lambda x, levels: (jnp.round(x * levels) / levels, None), lambda levels, _, g: (g,))


@jax.custom_jvp
def _log1pexp(x):
    return jnp.logaddexp(x, 0)


@_log1pexp.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return _log1pexp(x), jax.nn.sigmoid(x) * t


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _fixed(f, a, x):
    return lax.while_loop(lambda c: c[2] < 12, lambda c: (c[1], f(a, c[1]), c[2] + 1), (x, f(a, x), 0))[1]


def _fixed_forward(f, a, x):
    found = _fixed(f, a, x)
    return found, (a, found)


def _fixed_backward(f, kept, g):
    a, found = kept
    _, pull_a = jax.vjp(lambda v: f(v, found), a)
    _, pull_x = jax.vjp(lambda v: f(a, v), found)
    return pull_a(_fixed(lambda c, u: c + pull_x(u)[0], g, g))[0], jnp.zeros_like(found)


_fixed.defvjp(_fixed_forward, _fixed_backward)


def _root(a):
    return lax.custom_root(
        lambda x: x**3 + x - a,
        jnp.zeros_like(a),
        lambda f, x: lax.fori_loop(0, 8, lambda i, v: v - f(v) / (3 * v * v + 1), x),
        lambda g, y: y / g(jnp.ones_like(y)),
    )


def _linear_solve(a, b):
    m = _spd(a)
    return lax.custom_linear_solve(
        lambda v: m @ v, b, lambda _, v: jnp.linalg.solve(m, v), transpose_solve=lambda _, v: jnp.linalg.solve(m.T, v)
    )


FRAGMENTS = [
    F("third_derivative", "f32[n]", jax.vmap(jax.grad(jax.grad(jax.grad(lambda v: jnp.sin(v) * jnp.exp(-v * v)))))),
    F("taylor_coefficients", "f32[n] small", lambda x: _taylor(jnp.tanh, x)),
    F("hessian_of_softmax", "f32[n]", jax.hessian(lambda x: jax.nn.logsumexp(x) ** 2), most=8),
    F("forward_over_reverse", "f32[n]", jax.jacfwd(jax.grad(lambda x: jnp.prod(jnp.cos(x) + 2))), most=8, ulps=512),
    F("reverse_over_forward", "f32[n]", jax.jacrev(jax.jacfwd(lambda x: jnp.cumprod(jnp.cos(x) + 1))), most=7, ulps=512),
    F("jvp_cholesky", "f32[n,n]; f32[n,n]", _jvp(lambda a: jnp.linalg.cholesky(_spd(a))), most=13, ulps=1024),
    F("vjp_cholesky_solve", "f32[n,n]; f32[n]", jax.grad(_sum(lambda a, b: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(_spd(a)), True), b)), (0, 1)), most=13, ulps=4096),
    F("jvp_inverse", "f32[n,n]; f32[n,n]", _jvp(lambda a: jnp.linalg.inv(_spd(a))), most=13, ulps=1024),
    F("jvp_slogdet", "f64[n,n]; f64[n,n]", _jvp(lambda a: jnp.linalg.slogdet(_spd(a))[1]), most=13, ulps=4096),
    F("grad_det_batched", "f32[n,3,3]", jax.grad(_sum(lambda a: jnp.linalg.det(a + 4 * jnp.eye(3)))), most=17, ulps=4096),
    F("jvp_qr", "f64[n+3,3]; f64[n+3,3]", _jvp(lambda a: jnp.linalg.qr(a + 4 * jnp.eye(a.shape[0], 3))[1] ** 2), most=13, ulps=1 << 14),
    F("jvp_eigh", "f64[n,n]; f64[n,n]", _jvp(lambda a: jnp.linalg.eigvalsh(_spd(a) + jnp.diag(jnp.arange(1.0, a.shape[0] + 1) * 5))), most=8, ulps=1 << 16),
    F("grad_svd_values", "f64[n,n]", jax.grad(_sum(lambda a: jnp.linalg.svd(a + jnp.diag(jnp.arange(1.0, a.shape[0] + 1) * 9), compute_uv=False))), most=8, ulps=1 << 20),
    F("grad_triangular", "f32[n,n]; f32[n,2]", jax.grad(_sum(lambda a, b: jax.scipy.linalg.solve_triangular(a * 0.2 + 2 * jnp.eye(a.shape[0]), b, trans=1, lower=True)), (0, 1)), most=13, ulps=4096),
    F("grad_expm", "f32[3,3] small", jax.grad(_sum(jax.scipy.linalg.expm)), ulps=4096),
    F("grad_lu", "f64[n,n]", jax.grad(_sum(lambda a: jax.scipy.linalg.lu_factor(_spd(a))[0])), most=8, ulps=1 << 14),
    F("grad_pinv", "f64[n+2,2]", jax.grad(_sum(lambda a: jnp.linalg.pinv(a + 3 * jnp.eye(a.shape[0], 2)))), most=8, ulps=1 << 16),
    F("grad_norms", "f32[n,3]", jax.grad(lambda a: jnp.linalg.norm(a) + jnp.sum(jnp.linalg.norm(a, ord=3, axis=1)) + jnp.linalg.norm(a, 1)), ulps=512),
    F("grad_cumsum_cumprod", "f32[n] unit", jax.grad(_sum(lambda x: jnp.cumsum(jnp.cumprod(x + 0.5)))), most=33, ulps=1024),
    F("grad_cummax", "f32[n] distinct", jax.grad(_sum(lax.cummax)), ulps=256),
    F("grad_cumlogsumexp", "f32[n]", jax.grad(_sum(lax.cumlogsumexp)), most=33, ulps=512),
    F("grad_sort_pair", "f32[n] distinct; f32[n]", jax.grad(lambda k, v: jnp.sum(lax.sort((k, v), num_keys=1)[1] * jnp.arange(k.size)), 1)),
    F("grad_top_k_rows", "f32[3,n] distinct", jax.grad(lambda x: jnp.sum(jnp.cumsum(lax.top_k(x, 2)[0], 1) ** 2)), least=2),
    F("grad_median", "f32[n] distinct", jax.grad(lambda x: jnp.median(x) * 3)),
    F("grad_segment_max", "f32[n] distinct; s32[n] index", jax.grad(lambda x, k: jnp.sum(jnp.where(jnp.isfinite(m := jax.ops.segment_max(x, k, 3)), m, 0) ** 2))),
    F("grad_scatter_mul", "f32[n] positive; f32[n] positive; s32[n] permutation", jax.grad(lambda x, y, p: jnp.sum(jnp.sin(x.at[p].multiply(y, unique_indices=True))), (0, 1))),
    F("grad_scatter_max", "f32[n] distinct; s32[4] index; f32[4]", jax.grad(lambda x, k, v: jnp.sum(x.at[k].max(v + 0.01) ** 2), 0), ulps=128),
    F("grad_dynamic_slice", "f32[n+3]; s32[] wild", jax.grad(lambda x, k: jnp.sum(lax.dynamic_slice(x, (k,), (3,)) ** 2))),
    F("grad_dynamic_update", "f32[n+3]; f32[2]; s32[] wild", jax.grad(lambda x, v, k: jnp.sum(lax.dynamic_update_slice(x, v, (k,)) ** 3), (0, 1))),
    F("grad_gather_fill", "f32[n,2]; s32[5] wild", jax.grad(lambda x, k: jnp.sum(x.at[k].get(mode="fill", fill_value=2.0) ** 2))),
    F("grad_take_clip", "f32[n,2]; s32[5] wild", jax.grad(lambda x, k: jnp.sum(jnp.take(x, k, 0, mode="clip") ** 2))),
    F("grad_pad_interior", "f32[n,3]", jax.grad(_sum(lambda x: lax.pad(x, jnp.float32(1), ((1, -1, 2), (-1, 2, 1)))))),
    F("grad_reduce_window_sum", "f32[n+4]", jax.grad(_sum(lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (2,), "VALID", window_dilation=(2,))))),
    F("grad_conv_dilated", "f32[1,2,n+6]; f32[3,2,3]", jax.grad(_sum(lambda x, w: lax.conv_general_dilated(x, w, (2,), [(3, 1)], (2,), (3,))), (0, 1)), most=37, ulps=256),
    F("jvp_conv", "f32[1,2,n+2]; f32[1,2,n+2]", _jvp(lambda x: lax.conv_general_dilated(x, x[:, :, :2].swapaxes(0, 1) * jnp.ones((2, 2, 1), x.dtype), (1,), "SAME", feature_group_count=1)), most=37),
    F("grad_while_forward", "f32[n]; f32[n]", _jvp(lambda x: lax.while_loop(lambda c: c[1] < 4, lambda c: (jnp.sin(c[0]) + x, c[1] + 1), (x, 0))[0])),
    F("grad_scan_checkpoint", "f32[n]", jax.grad(_sum(lambda x: lax.scan(jax.checkpoint(lambda c, _: (jnp.tanh(c * 1.1 + x), c)), x, None, 5)[0]))),
    F("grad_cond_in_scan", "f32[n]", jax.grad(_sum(lambda x: lax.scan(lambda c, v: (lax.cond(v > 0, jnp.sin, lambda a: a * v, c),) * 2, jnp.float32(0.3), x)[1]))),
    F("grad_switch", "s32[] wild; f32[n]", lambda k, x: jax.grad(_sum(lambda v: lax.switch(k, [jnp.sin, jnp.tanh, lambda a: a**3, jnp.exp], v)))(x)),
    F("grad_vmapped_cond", "pred[n]; f32[n]", lambda p, x: jax.grad(lambda v: jnp.sum(jax.vmap(lambda q, a: lax.cond(q, jnp.sin, lambda b: b * b, a))(p, v)))(x)),
    F("grad_associative", "f32[n] unit; f32[n]", jax.grad(lambda a, b: jnp.sum(lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (a, b))[1] ** 2), (0, 1)), most=13, ulps=512),
    F("grad_fft", "f32[n]", jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.fft(x * jnp.arange(x.size)) + 1) ** 2)), most=37, ulps=256),
    F("grad_irfft", "f32[n+1]", jax.grad(lambda x: jnp.sum(jnp.fft.irfft(jnp.fft.rfft(x) ** 2, x.size) ** 2)), most=37, ulps=512),
    F("grad_complex", "c64[n]", jax.grad(lambda z: jnp.sum(jnp.abs(jnp.exp(z * 0.3) * z) ** 2)), ulps=256),
    F("jacobian_holomorphic", "c64[n]", jax.jacfwd(lambda z: jnp.sin(z * 0.5) * jnp.sum(z), holomorphic=True), most=8, ulps=256),
    F("vjp_of_vjp", "f32[n]; f32[n]", lambda x, g: jax.vjp(lambda v: jax.vjp(lambda u: jnp.sin(u) * u, x)[1](v)[0], g)[1](x)[0]),
    F("linearize", "f32[n]; f32[n]", lambda x, t: (lambda pair: (pair[0], pair[1](t), pair[1](t * 2)))(jax.linearize(lambda v: jnp.tanh(jnp.cumsum(v)), x)), ulps=256),
    F("linear_transpose", "f32[n]; f32[n+2]", lambda x, g: jax.linear_transpose(lambda v: jnp.convolve(v, jnp.array([1.0, -2, 0.5], v.dtype)), x)(g)[0]),
    F("clipped_gradient", "f32[n]", jax.grad(_sum(_clipped))),
    F("straight_through", "f32[n]", jax.value_and_grad(_sum(lambda x: _straight_through(x, 8.0)))),
    F("custom_jvp_twice", "f32[n]", jax.vmap(jax.grad(jax.grad(_log1pexp)))),
    F("implicit_fixed_point", "f32[n] unit", jax.grad(lambda a: jnp.sum(_fixed(lambda c, x: jnp.cos(x) * 0.3 + c, a, jnp.zeros_like(a))))),
    F("implicit_root", "f32[n]", jax.grad(_sum(_root)), ulps=256),
    F("implicit_linear_solve", "f32[n,n]; f32[n]", jax.grad(_sum(_linear_solve), (0, 1)), most=13, ulps=4096),
    F("stop_gradient", "f32[n]", jax.grad(lambda x: jnp.sum(lax.stop_gradient(jnp.sin(x)) * x + jnp.sin(x)))),
    F("where_safe_gradient", "f32[n]", jax.grad(lambda x: jnp.sum(jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1)), 0)))),
    F("integer_inputs", "f32[n]; s32[n] index", lambda x, k: jax.value_and_grad(lambda v: jnp.sum(v ** k.astype(v.dtype)))(jnp.abs(x) + 0.5)),
    F("float0_cotangent", "f32[n]; s32[n]", lambda x, k: jax.jvp(lambda v: (v * k, k + 1), (x,), (x,))[1][0]),
    F("gauss_newton", "f32[n,3]; f32[3]", lambda a, w: (lambda f: jax.jvp(lambda v: jax.vjp(f, w)[1](f(v))[0], (w,), (w,))[1])(lambda v: jnp.tanh(a @ v)), ulps=256),
    F("fisher_diagonal", "f32[n,3]; f32[3]", lambda a, w: jnp.mean(jax.vmap(jax.grad(lambda v, r: jax.nn.log_sigmoid(r @ v)), (None, 0))(w, a) ** 2, 0)),
    F("laplacian_of_net", "f32[3]; f32[3,n]", lambda x, w: jnp.trace(jax.hessian(lambda v: jnp.sum(jnp.tanh(v @ w)))(x)), most=37, ulps=512),
    F("divergence_estimate", "f32[n]; f32[n]", lambda x, e: jnp.vdot(e, jax.jvp(lambda v: jnp.sin(v) * jnp.roll(v, 1), (x,), (e,))[1])),
    F("score_matching", "f32[n,2]; f32[2,4]", lambda x, w: jax.grad(lambda u: jnp.mean(jax.vmap(lambda v: jnp.trace(jax.jacfwd(lambda t: jnp.tanh(t @ u) @ u.T)(v)))(x)))(w), most=17, ulps=512),
]  # fmt: skip


def _taylor(function, x):
    from jax.experimental.jet import jet

    return jet(function, (x,), ((jnp.ones_like(x), jnp.zeros_like(x), jnp.zeros_like(x)),))
