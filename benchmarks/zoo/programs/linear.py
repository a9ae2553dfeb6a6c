"""Dense, sparse and structured linear algebra, as users of lineax, jax.scipy and jax.experimental.sparse write it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import sparse

from benchmarks.zoo.catalogue import Draws, Made, program


@program((20, 5), (200, 20), (1000, 30), tolerance=2e-3)
def krylov_solve(draw: Draws, n: int, steps: int) -> Made:
    """GMRES by Arnoldi steps with modified Gram-Schmidt, and a least-squares solve."""

    def run(a, b):
        def step(k, state):
            basis, h = state
            w = a @ basis[k]

            def remove(j, given):
                w, column = given
                c = jnp.where(j <= k, basis[j] @ w, 0.0)
                return w - c * basis[j], column.at[j].set(c)

            w, column = lax.fori_loop(0, steps, remove, (w, jnp.zeros(steps + 1)))
            size = jnp.linalg.norm(w)
            return basis.at[k + 1].set(w / size), h.at[:, k].set(column.at[k + 1].set(size))

        size = jnp.linalg.norm(b)
        start = jnp.zeros((steps + 1, n)).at[0].set(b / size), jnp.zeros((steps + 1, steps))
        basis, h = lax.fori_loop(0, steps, step, start)
        y = jnp.linalg.lstsq(h, jnp.zeros(steps + 1).at[0].set(size))[0]
        return basis[:-1].T @ y

    return run, (jnp.eye(n) + draw.normal(n, n, scale=0.3 * n**-0.5), draw.normal(n))


@program((20, 5), (300, 30), (3000, 40), tolerance=1e-3)
def lanczos_spectrum(draw: Draws, n: int, steps: int) -> Made:
    """Extreme eigenvalues of a symmetric operator from a small tridiagonal matrix."""

    def run(a, v):
        def step(state, _):
            before, v, beta = state
            w = a @ v + v @ a - beta * before
            alpha = w @ v
            w = w - alpha * v
            beta = jnp.linalg.norm(w)
            return (v, w / beta, beta), (alpha, beta)

        start = jnp.zeros(n), v / jnp.linalg.norm(v), jnp.float32(0)
        alpha, beta = lax.scan(step, start, None, length=steps)[1]
        values = jnp.linalg.eigvalsh(jnp.diag(alpha) + jnp.diag(beta[:-1], 1) + jnp.diag(beta[:-1], -1))
        return values[0], values[-1]

    return run, (draw.normal(n, n, scale=n**-0.5), draw.normal(n))


@program((30, 100, 4), (1000, 10000, 8), (20000, 400000, 16))
def sparse_products(draw: Draws, n: int, entries: int, width: int) -> Made:
    """A sparse matrix by coordinates times vectors and a matrix, and the gradient of its entries."""

    def run(values, index, x, y):
        def loss(values):
            m = sparse.BCOO((values, index), shape=(n, n))
            return ((m @ x) * y).sum() + jnp.tanh(m.T @ y[:, 0]).sum()

        return jax.value_and_grad(loss)(values)

    return run, (draw.normal(entries), draw.integers(n, entries, 2), draw.normal(n, width), draw.normal(n, width))


@program((20, 60), (500, 5000), (10000, 200000))
def compressed_rows(draw: Draws, n: int, entries: int) -> Made:
    """Entries sorted into rows, row starts by counting, a diagonal scaled, and Jacobi sweeps."""

    def run(row, column, value, b):
        order = jnp.argsort(row)
        row, column, value = row[order], column[order], value[order]
        starts = jnp.searchsorted(row, jnp.arange(n + 1))
        degree = jnp.diff(starts)
        value = 0.5 * value / jnp.maximum(degree[row], 1)

        def sweep(_, x):
            return b - jax.ops.segment_sum(value * x[column], row, n, indices_are_sorted=True)

        return lax.fori_loop(0, 10, sweep, b), degree

    return run, (draw.integers(n, entries), draw.integers(n, entries), draw.uniform(entries), draw.normal(n))


@program((30, 5), (500, 20), (2000, 40), tolerance=1e-3)
def low_rank_approximation(draw: Draws, n: int, rank: int) -> Made:
    """A randomised range finder with power steps and QR, then singular values of a thin matrix."""

    def run(a, probe):
        y = a @ probe
        for _ in range(2):
            y = a @ (a.T @ jnp.linalg.qr(y)[0])
        q = jnp.linalg.qr(y)[0]
        return jnp.linalg.svd(q.T @ a, compute_uv=False)

    a = draw.normal(n, rank) @ draw.normal(rank, n // 2) + 0.01 * draw.normal(n, n // 2)
    return run, (a, draw.normal(n // 2, rank + 4))


@program((20, 6, 3), (500, 20, 5), (4000, 100, 10))
def weighted_least_squares(draw: Draws, n: int, d: int, targets: int) -> Made:
    """QR and normal equations for the same fit, covariance and leverage of rows."""

    def run(x, y, w):
        root = jnp.sqrt(w)[:, None]
        q, r = jnp.linalg.qr(x * root)
        fit = jax.scipy.linalg.solve_triangular(r, q.T @ (y * root))
        gram = x.T @ (w[:, None] * x) + 1e-3 * jnp.eye(d)
        ridge = jax.scipy.linalg.solve(gram, x.T @ (w[:, None] * y), assume_a="pos")
        return fit, ridge, (q**2).sum(1)

    return run, (draw.normal(n, d), draw.normal(n, targets), draw.uniform(n, low=0.5))


@program((4, 3), (64, 6), (500, 10), wide=True)
def matrix_functions(draw: Draws, batch: int, n: int) -> Made:
    """Exponentials of many matrices, their gradient, and logarithms of determinants."""

    def loss(a, x):
        y = jax.vmap(jax.scipy.linalg.expm)(a) @ x[..., None]
        return (y**2).sum() + jnp.linalg.slogdet(jnp.eye(n) + 0.1 * a)[1].sum()

    return jax.value_and_grad(loss), (draw.normal(batch, n, n, scale=0.3, dtype="float64"), draw.normal(batch, n))


@program((4, 5), (32, 20), (64, 48))
def kronecker_solve(draw: Draws, m: int, n: int) -> Made:
    """A system in a product of two symmetric matrices by their eigenvectors."""

    def run(a, b, y):
        va, ua = jnp.linalg.eigh(a @ a.T + jnp.eye(m))
        vb, ub = jnp.linalg.eigh(b @ b.T + jnp.eye(n))
        z = (ua.T @ y @ ub) / (va[:, None] * vb + 0.1)
        return ua @ z @ ub.T, jnp.log(va[:, None] * vb + 0.1).sum()

    return run, (draw.normal(m, m), draw.normal(n, n), draw.normal(m, n))


@program((2, 20), (16, 500), (64, 5000))
def tridiagonal_systems(draw: Draws, batch: int, n: int) -> Made:
    """Many tridiagonal systems at once, with their gradients."""

    def loss(low, middle, high, b):
        x = lax.linalg.tridiagonal_solve(low, middle, high, b)
        return (x**2).sum()

    low, high = draw.uniform(batch, n), draw.uniform(batch, n)
    low[:, 0] = 0
    high[:, -1] = 0
    arrays = low, 3 + draw.uniform(batch, n), high, draw.normal(batch, n, 1)
    return jax.value_and_grad(loss, (1, 3)), arrays


@program((10, 30), (60, 400), (300, 2000))
def shortest_paths(draw: Draws, nodes: int, edges: int) -> Made:
    """All pairs by min-plus squaring, and one source by relaxing edges."""

    def run(a, b, weight):
        d = jnp.full((nodes, nodes), jnp.inf).at[a, b].min(weight)
        d = jnp.minimum(d, jnp.where(jnp.eye(nodes, dtype=bool), 0.0, jnp.inf))
        square = lambda _, d: jnp.minimum(d, (d[:, :, None] + d[None]).min(1))  # noqa: E731
        every = lax.fori_loop(0, 3, square, d)
        relax = lambda _, x: x.at[b].min(x[a] + weight)  # noqa: E731
        one = lax.fori_loop(0, nodes, relax, jnp.full(nodes, jnp.inf).at[0].set(0.0))
        return every, one

    return run, (draw.integers(nodes, edges), draw.integers(nodes, edges), draw.uniform(edges, low=0.1))
