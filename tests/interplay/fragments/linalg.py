"""Linear algebra: factors, solves, eigenvalues, their gradients, matrix functions. Matrices are well conditioned."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg as sl
from jax import lax

from tests.interplay.fragment import Fragment as F


def _spd(a):
    return a @ jnp.conj(a.swapaxes(-1, -2)) / a.shape[-1] + 2 * jnp.eye(a.shape[-1], dtype=a.dtype)


def _dominant(a):
    return a / a.shape[-1] + 2 * jnp.eye(a.shape[-1], dtype=a.dtype)


def _spread(a):
    """Symmetric, with eigenvalues far apart."""
    n = a.shape[-1]
    return (a + a.T) / (8 * n) + jnp.diag(jnp.arange(n, dtype=a.dtype))


def _signed(v):
    """Eigenvectors up to sign."""
    return jnp.abs(v)


FRAGMENTS = [
    F("cholesky", "f32[n,n]", lambda a: jnp.linalg.cholesky(_spd(a)), most=64, least=0),
    F("cholesky_f64", "f64[n,n]", lambda a: jnp.linalg.cholesky(_spd(a)), most=37),
    F("cholesky_c64", "c64[n,n]", lambda a: jnp.linalg.cholesky(_spd(a)), most=33),
    F("cholesky_batched", "f32[3,n,n]", lambda a: jnp.linalg.cholesky(_spd(a)), most=33),
    F("cholesky_grad", "f32[n,n]", jax.grad(lambda a: jnp.sum(jnp.linalg.cholesky(_spd(a)))), most=33),
    F("cholesky_upper", "f32[n,n]", lambda a: sl.cholesky(_spd(a)), most=33),
    F("cho_solve", "f32[n,n]; f32[n,2]", lambda a, b: sl.cho_solve(sl.cho_factor(_spd(a)), b), most=37),
    F("lu", "f32[n,n]", lambda a: lax.linalg.lu(_dominant(a)), most=37),
    F("lu_factor_f64", "f64[n,n]", lambda a: sl.lu_factor(_dominant(a)), most=37),
    F("lu_factor_c128", "c128[n,n]", lambda a: sl.lu_factor(_dominant(a)), most=33),
    F("lu_parts", "f32[n,n]", lambda a: sl.lu(_dominant(a)), most=33),
    F("lu_batched", "f32[2,n,n]", lambda a: jax.vmap(lambda v: lax.linalg.lu(v)[0])(_dominant(a)), most=24),
    F("lu_grad", "f32[n,n]", jax.grad(lambda a: jnp.sum(lax.linalg.lu(_dominant(a))[0])), most=24),
    F("qr", "f32[n,n]", lambda a: jnp.linalg.qr(_dominant(a)), most=37),
    F("qr_tall", "f32[n+3,n]", lambda a: jnp.linalg.qr(a.at[:-3].add(3 * jnp.eye(a.shape[1], dtype=a.dtype))), most=33),
    F("qr_f64", "f64[n,n]", lambda a: jnp.linalg.qr(_dominant(a)), most=33),
    F("qr_c64", "c64[n,n]", lambda a: jnp.linalg.qr(_dominant(a))[1], most=33),
    F("qr_grad", "f32[n,n]", jax.grad(lambda a: jnp.sum(jnp.linalg.qr(_dominant(a))[1])), most=24),
    F("qr_batched", "f32[2,n,n]", lambda a: jnp.linalg.qr(_dominant(a)), most=24),
    F(
        "householder",
        "f32[n,n]",
        lambda a: lax.linalg.householder_product(*jnp.linalg.qr(_dominant(a), mode="raw")[::1]),
        most=24,
    ),
    F("eigh", "f32[n,n]", lambda a: jnp.linalg.eigh(_spread(a))[0], most=37),
    F("eigh_vectors", "f32[n,n]", lambda a: _signed(jnp.linalg.eigh(_spread(a))[1]), most=24),
    F("eigh_f64", "f64[n,n]", lambda a: jnp.linalg.eigvalsh(_spread(a)), most=37),
    F("eigh_c64", "c64[n,n]", lambda a: jnp.linalg.eigvalsh(_spd(a)), most=24),
    F("eigh_grad", "f32[n,n]", jax.grad(lambda a: jnp.sum(jnp.linalg.eigvalsh(_spread(a)) ** 2)), most=24),
    F("eigh_batched", "f32[3,n,n]", lambda a: jax.vmap(lambda v: jnp.linalg.eigvalsh(_spread(v)))(a), most=24),
    F("svd_values", "f32[n,n+2]", lambda a: jnp.linalg.svd(a, compute_uv=False), most=33),
    F("svd_product", "f32[n,n]", lambda a: _rebuilt(*jnp.linalg.svd(_spread(a)), jnp.sqrt), most=24),
    F("svd_f64", "f64[n+1,n]", lambda a: jnp.linalg.svd(a, compute_uv=False), most=24),
    F("svd_c64", "c64[n,n]", lambda a: jnp.linalg.svd(_dominant(a), compute_uv=False), most=24),
    F("svd_grad", "f32[n,n]", jax.grad(lambda a: jnp.sum(jnp.linalg.svd(_spread(a), compute_uv=False))), most=24),
    F("solve", "f32[n,n]; f32[n]", lambda a, b: jnp.linalg.solve(_dominant(a), b), most=37),
    F("solve_many", "f32[n,n]; f32[n,3]", lambda a, b: jnp.linalg.solve(_dominant(a), b), most=37),
    F("solve_f64", "f64[n,n]; f64[n,2]", lambda a, b: jnp.linalg.solve(_dominant(a), b), most=37),
    F("solve_c64", "c64[n,n]; c64[n]", lambda a, b: jnp.linalg.solve(_dominant(a), b), most=24),
    F(
        "solve_grad",
        "f32[n,n]; f32[n]",
        jax.grad(lambda a, b: jnp.sum(jnp.linalg.solve(_dominant(a), b) ** 2), (0, 1)),
        most=24,
    ),
    F("inverse", "f32[n,n]", lambda a: jnp.linalg.inv(_dominant(a)), most=33),
    F("inverse_batched", "f64[3,n,n]", lambda a: jnp.linalg.inv(_dominant(a)), most=17),
    F("det", "f32[n,n]", lambda a: jnp.linalg.det(_dominant(a) / 2), most=24),
    F("det_grad", "f32[n,n]", jax.grad(lambda a: jnp.linalg.det(_dominant(a) / 2)), most=17),
    F("slogdet", "f32[n,n]", lambda a: jnp.linalg.slogdet(_dominant(a)), most=33),
    F("pinv", "f32[n+2,n]", lambda a: jnp.linalg.pinv(a.at[:-2].add(3 * jnp.eye(a.shape[1], dtype=a.dtype))), most=17),
    F(
        "lstsq",
        "f32[n+3,n]; f32[n+3]",
        lambda a, b: jnp.linalg.lstsq(a.at[:-3].add(3 * jnp.eye(a.shape[1], dtype=a.dtype)), b)[0],
        most=17,
    ),
    F(
        "triangular",
        "f32[n,n]; f32[n,2]",
        lambda a, b: sl.solve_triangular(jnp.tril(_dominant(a)), b, lower=True),
        most=64,
    ),
    F("triangular_upper", "f32[n,n]; f32[n]", lambda a, b: sl.solve_triangular(_dominant(a), b), most=37),
    F(
        "triangular_transposed",
        "f32[n,n]; f32[n,3]",
        lambda a, b: sl.solve_triangular(_dominant(a), b, trans=1, lower=True),
        most=37,
    ),
    F(
        "triangular_unit",
        "f64[n,n]; f64[n]",
        lambda a, b: sl.solve_triangular(_dominant(a), b, lower=True, unit_diagonal=True),
        most=33,
    ),
    F(
        "triangular_right",
        "f32[n,n]; f32[3,n]",
        lambda a, b: lax.linalg.triangular_solve(_dominant(a), b, left_side=False, lower=True),
        most=33,
    ),
    F(
        "triangular_c64",
        "c64[n,n]; c64[n,2]",
        lambda a, b: lax.linalg.triangular_solve(_dominant(a), b, left_side=True, conjugate_a=True, transpose_a=True),
        most=24,
    ),
    F(
        "triangular_grad",
        "f32[n,n]; f32[n]",
        jax.grad(lambda a, b: jnp.sum(sl.solve_triangular(_dominant(a), b, lower=True)), (0, 1)),
        most=24,
    ),
    F(
        "triangular_batched",
        "f32[3,n,n]; f32[3,n,2]",
        lambda a, b: lax.linalg.triangular_solve(_dominant(a), b, left_side=True, lower=True),
        most=24,
    ),
    F(
        "tridiagonal_solve",
        "f32[n]; f32[n]; f32[n]; f32[n,3]",
        lambda a, b, c, d: lax.linalg.tridiagonal_solve(a, 5 + b, c, d),
        least=3,
        most=64,
    ),
    F(
        "tridiagonal_f64",
        "f64[n,3]",
        lambda v: lax.linalg.tridiagonal_solve(v[:, 0], 5 + v[:, 0], v[:, 1], v),
        least=3,
        most=64,
    ),
    F("expm", "f32[n,n]", lambda a: sl.expm(a / (2 * a.shape[0])), most=17),
    F("expm_c128", "c128[n,n]", lambda a: sl.expm(a / (2 * a.shape[0])), most=13),
    F("matrix_power", "f32[n,n]", lambda a: jnp.linalg.matrix_power(_dominant(a), 3), most=33),
    F(
        "sqrtm_newton",
        "f32[n,n]",
        lambda a: lax.fori_loop(0, 6, lambda i, y: 0.5 * (y + _spd(a) @ jnp.linalg.inv(y)), _spd(a)),
        most=17,
    ),
    F("schur_like", "f64[n,n]", lambda a: _hessenberg(_dominant(a)), least=3, most=17),
    F("norms", "f32[n,n]", lambda a: (jnp.linalg.norm(a), jnp.linalg.norm(a, 1), jnp.linalg.norm(a, axis=0)), most=64),
    F("norm_spectral", "f32[n,n]", lambda a: jnp.linalg.norm(_dominant(a), 2), most=24),
    F("kron", "f32[n,2]; f32[3,2]", jnp.kron, most=33),
    F("outer", "f32[n]; f32[n]", jnp.outer, most=64),
    F("cross", "f32[n,3]; f32[n,3]", jnp.cross),
    F("trace_diag", "f32[n,n]", lambda a: (jnp.trace(a), jnp.diagonal(a, 0), jnp.triu(a, 1)), most=64),
    F("multi_dot", "f32[4,n]; f32[n,5]; f32[5,2]", lambda a, b, c: jnp.linalg.multi_dot([a, b, c])),
    F("block_diag", "f32[n,2]; f32[3,n]", sl.block_diag, exact=True, most=33),
    F("toeplitz", "f32[n]", sl.toeplitz, exact=True, most=37),
    F("mahalanobis", "f32[n,n]; f32[5,n]", lambda a, x: jnp.sum(x * jnp.linalg.solve(_spd(a), x.T).T, 1), most=24),
    F("gaussian_logpdf", "f32[n,n]; f32[n]", lambda a, x: _logpdf(_spd(a), x), most=24),
    F("gram_schmidt", "f32[n,4]", lambda a: _gram_schmidt(a), least=7, most=33),
    F("kalman_step", "f32[n,n]; f32[n]", lambda a, x: _kalman(_spd(a), x), most=17),
]


def _rebuilt(u, s, vt, function):
    return (u * function(s + 1)) @ vt


def _hessenberg(a):
    h = lax.linalg.hessenberg(a)[0]
    return jnp.abs(jnp.triu(h, -1))


def _logpdf(c, x):
    l = jnp.linalg.cholesky(c)  # noqa: E741
    y = sl.solve_triangular(l, x, lower=True)
    return -0.5 * y @ y - jnp.sum(jnp.log(jnp.diagonal(l)))


def _gram_schmidt(a):
    columns = []
    for k in range(a.shape[1]):
        v = a[:, k] + 3 * (jnp.arange(a.shape[0]) == k)
        for u in columns:
            v = v - u * jnp.vdot(u, v)
        columns.append(v / jnp.linalg.norm(v))
    return jnp.stack(columns, 1)


def _kalman(p, x):
    s = p + jnp.eye(p.shape[0], dtype=p.dtype)
    gain = jnp.linalg.solve(s, p).T
    return x + gain @ (1 - x), p - gain @ p
