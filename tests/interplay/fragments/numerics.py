"""Numerical programs as users of JAX's libraries write them: graphs, solvers, samplers, filters, rotations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax import random as jr

from tests.interplay.fragment import Fragment as F

FRAGMENTS = [
    # graphs
    F("graph_attention", "f32[5,n]; s32[9] index; s32[9] index", lambda x, s, r: _gat(x, s, r), ulps=256),
    F("graph_normalised", "f32[5,n]; s32[9] index; s32[9] index", lambda x, s, r: _gcn(x, s, r), ulps=256),
    F("graph_edge_update", "f32[n]; s32[n] index; s32[n] index; f32[4]", lambda e, s, r, v: (lambda f: (f, jax.ops.segment_sum(f, r, 4) + v))(jnp.tanh(e + v[s] - v[r])), ulps=256),
    F("graph_batch_mask", "s32[3] index; f32[n]", lambda k, x: jnp.repeat(jnp.arange(3), k, total_repeat_length=8) * jnp.resize(x, 8)),
    F("message_bincount", "s32[n] wild; s32[n]", lambda k, v: jnp.zeros(6, jnp.int32).at[k].add(v, mode="drop"), exact=True),
    F("union_find", "s32[7] index; s32[7] index", lambda a, b: lax.fori_loop(0, 7, lambda i, c: jnp.where(c == c[a[i]], c[b[i]], c), jnp.arange(4)), exact=True),
    F("bellman_ford", "f32[9] positive; s32[9] index; s32[9] index", lambda w, s, r: lax.fori_loop(0, 4, lambda i, d: d.at[r].min(d[s] + w), jnp.full(4, jnp.inf).at[0].set(0))),
    F("floyd_warshall", "f32[n,n] positive", lambda d: lax.fori_loop(0, d.shape[0], lambda k, c: jnp.minimum(c, c[:, k][:, None] + c[k][None]), d), most=17),
    # solvers
    F("adaptive_ode", "f32[n] small", lambda y: _adaptive(lambda v: -v * v + 0.3, y), most=33, ulps=4096),
    F("vmapped_adaptive_ode", "f32[n] small", jax.vmap(lambda y: _adaptive(lambda v: jnp.sin(3 * v) + 0.1, y)), most=33, ulps=4096),
    F("implicit_euler", "f32[3]; f32[3,3] small", lambda y, a: lax.scan(lambda c, _: (jnp.linalg.solve(jnp.eye(3, dtype=a.dtype) + 0.1 * a @ a.T, c),) * 2, y, None, 4)[1], ulps=1024),
    F("euler_maruyama", "u32[2] key; f32[n]", lambda k, y: lax.scan(lambda c, r: ((v := c - 0.1 * c + 0.2 * jr.normal(r, c.shape, c.dtype)), v.mean()), y, jr.split(jr.wrap_key_data(k), 5)), ulps=512),
    F("vmapped_newton", "f32[n] positive", jax.vmap(lambda a: lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-3, lambda x: 0.5 * (x + a / x), a)), ulps=4096),
    F("vmapped_search", "f32[8] distinct; f32[n]", lambda t, x: jax.vmap(lambda v: lax.while_loop(lambda c: c[0] < c[1], lambda c: (lambda m: (jnp.where(t[m] < v, m + 1, c[0]), jnp.where(t[m] < v, c[1], m)))((c[0] + c[1]) // 2), (0, 8))[0])(x), exact=True),
    F("vmapped_nested_while", "s32[n] index", jax.vmap(lambda k: lax.while_loop(lambda c: c[0] < k, lambda c: (c[0] + 1, lax.while_loop(lambda v: v < 10 * (c[0] + 1), lambda v: v + k + 1, c[1])), (0, 1))), exact=True),
    F("anderson", "f32[n]", lambda x: _anderson(lambda v: jnp.cos(v) * 0.5 + 0.1, x), most=17, ulps=1 << 14),
    F("levenberg", "f32[n]; f32[2]", lambda t, p: _levenberg(t, p), ulps=1 << 14),
    F("gmres_free", "f32[n,n]; f32[n]", lambda a, b: jax.scipy.sparse.linalg.cg(lambda v: a @ (a.T @ v) / a.shape[0] + 4 * v, b, maxiter=4)[0], most=24, ulps=4096),
    F("thomas", "f32[n] small; f32[n]", lambda a, d: lax.linalg.tridiagonal_solve(a.at[0].set(0), a + 4, a.at[-1].set(0), d[:, None]), least=3, ulps=256),
    F("multigrid", "f32[2*n+4]", lambda u: _multigrid(u), ulps=256),
    F("wave_equation", "f32[n+2]; f32[n+2]", lambda u, v: lax.scan(lambda c, _: ((c[1], (2 * c[1] - c[0]).at[1:-1].add(0.3 * (c[1][2:] - 2 * c[1][1:-1] + c[1][:-2]))), c[1][0]), (u, v), None, 6), ulps=256),
    F("lattice_boltzmann", "f32[3,n,4] positive", lambda f: lax.fori_loop(0, 3, lambda i, c: jnp.stack([jnp.roll(c[k] * 0.9 + c.mean(0) * 0.1, k - 1, 0) for k in range(3)]), f)),
    F("n_body", "f32[n,3]", lambda x: _forces(x), most=33, ulps=1024),
    F("contact_impulses", "f32[n,3]; f32[n]", lambda v, d: jnp.where((d < 0)[:, None], v - jnp.minimum(jnp.sum(v * jnp.array([0, 0, 1.0]), 1), 0)[:, None] * jnp.array([0, 0, 1.5]), v)),
    # samplers and filters
    F("hmc_step", "u32[2] key; f32[n]", lambda k, q: _hmc(jr.wrap_key_data(k), q), ulps=4096),
    F("gibbs_ising", "u32[2] key; f32[n+2,6]", lambda k, x: lax.fori_loop(0, 3, lambda i, s: _ising(jr.fold_in(jr.wrap_key_data(k), i), s), jnp.sign(x)), most=33, exact=False),
    F("particle_resample", "u32[2] key; f32[n] unit; f32[n]", lambda k, w, x: x[jnp.searchsorted(jnp.cumsum(w / w.sum()), (jnp.arange(w.size) + jr.uniform(jr.wrap_key_data(k))) / w.size)], most=17),
    F("kalman_scan", "f32[n,2]", lambda z: _kalman(z), most=37, ulps=1024),
    F("log_prob_mixture", "f32[n]; f32[3]; f32[3] positive", lambda x, m, s: jax.nn.logsumexp(-0.5 * ((x[:, None] - m) / s) ** 2 - jnp.log(s), -1, b=jnp.array([0.2, 0.3, 0.5])), ulps=256),
    F("normalising_flow", "f32[n,4]; f32[2,4]", lambda x, w: _coupling(x, w), ulps=256),
    F("spline_flow", "f32[n] unit; f32[4]", lambda x, w: _spline(x, w), ulps=1024),
    # rotations and geometry
    F("quaternion_rotate", "f32[n,4]; f32[n,3]", lambda q, v: (lambda u, w: v + 2 * jnp.cross(u, jnp.cross(u, v) + w * v))(*(lambda p: (p[:, 1:], p[:, :1]))(q / (jnp.linalg.norm(q, axis=1, keepdims=True) + 1))), ulps=256),
    F("rotation_log", "f32[n,3] small", jax.vmap(lambda w: jax.scipy.linalg.expm(jnp.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]))), most=13, ulps=1024),
    F("rodrigues", "f32[n,3] positive", lambda w: (lambda a: jnp.sin(a) / a * w + (1 - jnp.cos(a)) * w[:, ::-1])(jnp.linalg.norm(w, axis=1, keepdims=True)), ulps=256),
    F("spherical_harmonics", "f32[n,3]", lambda v: _harmonics(v), ulps=256),
    F("tensor_product", "f32[n,3]; f32[n,5]; f32[3,5,3]", lambda a, b, c: jnp.einsum("ni,nj,ijk->nk", a, b, c)),
    F("inverse_3x3", "f32[n,3,3]", lambda a: jnp.linalg.inv(a + 4 * jnp.eye(3)), ulps=512),
    F("solve_2x2", "f32[n,2,2]; f32[n,2]", lambda a, b: jnp.linalg.solve(a + 5 * jnp.eye(2), b[..., None])[..., 0], ulps=512),
    F("eigh_2x2", "f32[n,2,2]", lambda a: jnp.linalg.eigvalsh(a + a.swapaxes(1, 2) + jnp.diag(jnp.array([0, 9.0]))), ulps=256),
    F("svd_3x3_batch", "f32[n,3,3]", lambda a: jnp.linalg.svd(a + jnp.diag(jnp.array([0, 9.0, 20])), compute_uv=False), ulps=512, most=33),
    F("kabsch", "f32[n+3,3]; f32[n+3,3]", lambda p, q: (lambda u: u[0] @ u[2])(jnp.linalg.svd(p.T @ q + jnp.diag(jnp.array([5.0, 30, 90]))))[:, :], ulps=1 << 14, most=33),
    F("ray_march", "f32[n,3]", lambda d: lax.while_loop(lambda c: (c[1] < 9) & jnp.any(c[2] > 1e-2), lambda c: (lambda s: (c[0] + s[:, None] * d * 0.3, c[1] + 1, s))(jnp.abs(jnp.linalg.norm(c[0] - 1, axis=1) - 1)), (d * 0, 0, jnp.ones(d.shape[0], d.dtype)))[0], ulps=4096),
    F("bilinear_sample", "f32[n+1,5]; f32[6,2] unit", lambda img, c: _bilinear(img, c * jnp.array([2, 3.0]) - 0.5), ulps=256),
    F("mel_filter", "f32[n+16]; f32[9,3] positive", lambda x, m: jnp.log(jnp.abs(jnp.fft.rfft(x[:16] * jnp.hanning(16).astype("float32"))) ** 2 @ m + 1), ulps=512),
]  # fmt: skip


def _gat(x, s, r):
    score = jax.nn.leaky_relu(x[s].sum(1) + x[r].sum(1))
    top = jax.ops.segment_max(score, r, 5)
    w = jnp.exp(score - top[r])
    return jax.ops.segment_sum(w[:, None] * x[s], r, 5) / (jax.ops.segment_sum(w, r, 5) + 1)[:, None]


def _gcn(x, s, r):
    degree = jnp.zeros(5).at[r].add(1.0)
    scale = jnp.where(degree > 0, lax.rsqrt(jnp.maximum(degree, 1)), 0)
    return jax.ops.segment_sum(x[s] * (scale[s] * scale[r])[:, None], r, 5)


def _adaptive(f, y):
    def step(c):
        t, v, h, k = c
        a = f(v)
        low = v + h * a
        high = v + h / 2 * (a + f(low))
        good = jnp.max(jnp.abs(high - low)) < 0.02
        return jnp.where(good, t + h, t), jnp.where(good, high, v), h * jnp.where(good, 1.3, 0.5), k + 1

    return lax.while_loop(lambda c: (c[0] < 1) & (c[3] < 20), step, (0.0, y, 0.23, 0))[1]


def _anderson(f, x):
    history = [x, f(x)]
    for _ in range(3):
        a, b = history[-2], history[-1]
        ra, rb = f(a) - a, f(b) - b
        d = rb - ra
        w = jnp.vdot(d, rb) / (jnp.vdot(d, d) + 1e-2)
        history.append(f(b) - w * (f(b) - f(a)))
    return jnp.stack(history[1:])


def _levenberg(t, p):
    def residual(q):
        return jnp.exp(-t * t * q[0]) * q[1] - jnp.cos(t)

    def step(_, q):
        j, r = jax.jacfwd(residual)(q), residual(q)
        return q - jnp.linalg.solve(j.T @ j + jnp.eye(2, dtype=q.dtype), j.T @ r)

    return lax.fori_loop(0, 3, step, jnp.abs(p) + 0.1)


def _multigrid(u):
    coarse = (u[0::2] + u[1::2]) / 2
    coarse = lax.fori_loop(0, 3, lambda i, c: c.at[1:-1].set((c[:-2] + c[2:]) / 2), coarse)
    return u * 0.5 + 0.5 * jnp.repeat(coarse, 2)


def _forces(x):
    d = x[:, None] - x[None]
    far = jnp.sum(d * d, -1) + 0.5
    return -jnp.sum(d * far[..., None] ** -1.5, 1), jnp.sum(jnp.triu(lax.rsqrt(far), 1))


def _hmc(key, q):
    k1, k2 = jr.split(key)
    p = jr.normal(k1, q.shape, q.dtype)
    grad = jax.grad(lambda v: jnp.sum(v**4 / 4 + v * v))

    def leap(c, _):
        v, m = c
        m = m - 0.05 * grad(v)
        v = v + 0.1 * m
        return (v, m - 0.05 * grad(v)), None

    new, moment = lax.scan(leap, (q, p), None, 3)[0]
    energy = jnp.sum(new * new) + jnp.sum(moment * moment) / 2
    return jnp.where(jr.uniform(k2) < 2, new, q), energy


def _ising(key, s):
    field = sum(jnp.roll(s, k, a) for k in (-1, 1) for a in (0, 1))
    board = (jnp.arange(s.shape[0])[:, None] + jnp.arange(s.shape[1])) % 2 == 0
    up = jr.uniform(key, s.shape) < jax.nn.sigmoid(field * 0.5 + 0.01)
    return jnp.where(board, jnp.where(up, 1.0, -1.0), s)


def _kalman(z):
    a = jnp.array([[1, 0.1], [0, 1]], z.dtype)

    def step(c, y):
        m, p = c
        m, p = a @ m, a @ p @ a.T + 0.1 * jnp.eye(2)
        gain = jnp.linalg.solve(p + jnp.eye(2), p).T
        m = m + gain @ (y - m)
        return (m, p - gain @ p), m

    return lax.scan(step, (jnp.zeros(2), jnp.eye(2)), z)[1]


def _coupling(x, w):
    total = jnp.zeros(x.shape[0])
    for _ in range(2):
        a, b = jnp.split(x, 2, -1)
        shift, scale = jnp.split(jnp.tanh(a @ w), 2, -1)
        x = jnp.concatenate([b * jnp.exp(scale) + shift, a], -1)
        total = total + scale.sum(-1)
    return x, total


def _spline(x, w):
    widths = jax.nn.softmax(w)
    edges = jnp.concatenate([jnp.zeros(1), jnp.cumsum(widths)])
    k = jnp.clip(jnp.searchsorted(edges, x) - 1, 0, 3)
    return edges[k] + (x - edges[k]) * (1 + widths[k]), jnp.log1p(widths[k])


def _harmonics(v):
    x, y, z = (v / (jnp.linalg.norm(v, axis=-1, keepdims=True) + 0.3)).T
    return jnp.stack([x, y, z, x * y, y * z, (2 * z * z - x * x - y * y) / 2, z * x, (x * x - y * y) / 2], -1)


def _bilinear(image, c):
    low = jnp.floor(c).astype(jnp.int32)
    f = c - low
    total = 0.0
    for dy in (0, 1):
        for dx in (0, 1):
            weight = jnp.abs(1 - dy - f[:, 0]) * jnp.abs(1 - dx - f[:, 1])
            total = total + weight * image.at[low[:, 0] + dy, low[:, 1] + dx].get(mode="fill", fill_value=0)
    return total
