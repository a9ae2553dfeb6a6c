"""Linear algebra, sorting, counting, signals and images at ordinary and odd sizes, as users of jax.numpy, jax.scipy and
dm-pix write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


@program((100, 2), (5000, 2), (100, 3), (5000, 3))
def batched_inverse(draw: Draws, n: int, d: int) -> Made:
    """Inverse, determinant and solve of many small matrices."""

    def run(a, b):
        a = a + 3 * jnp.eye(d)
        return jnp.linalg.inv(a), jnp.linalg.det(a), jnp.linalg.solve(a, b)

    return run, (draw.normal(n, d, d), draw.normal(n, d, 1))


@program((100, 3), (2000, 3), (500, 6))
def batched_cholesky(draw: Draws, n: int, d: int) -> Made:
    """Log densities of many small normal distributions, and their gradient."""

    def loss(a, x):
        c = jnp.linalg.cholesky(a @ a.mT + jnp.eye(d))
        white = jax.scipy.linalg.solve_triangular(c, x[..., None], lower=True)
        return (0.5 * (white**2).sum() + jnp.log(jnp.diagonal(c, axis1=1, axis2=2)).sum()) / n

    return jax.value_and_grad(loss), (draw.normal(n, d, d), draw.normal(n, d))


@program((500, 4), (20000, 4), (2000, 9))
def small_products(draw: Draws, n: int, d: int) -> Made:
    """Chains of products of small matrices with elementwise work between them."""

    def run(a, b, x):
        y = jnp.einsum("nij,nj->ni", a, x)
        c = jnp.tanh(a @ b)
        return jnp.einsum("nij,njk,nk->ni", c, b, jnp.sin(y)), jnp.einsum("ni,nj->nij", x, y).sum(0)

    return run, (draw.normal(n, d, d), draw.normal(n, d, d), draw.normal(n, d))


@program((300,), (3000,))
def matrix_vector(draw: Draws, n: int) -> Made:
    """Power iteration and a bilinear form."""

    def run(a, x):
        for _ in range(3):
            x = a @ x
            x = x / jnp.linalg.norm(x)
        return x, x @ a @ x, a.T @ x

    return run, (draw.normal(n, n), draw.normal(n))


@program((100, 77, 55), (3000, 333, 7), (7, 3000, 333))
def odd_products(draw: Draws, m: int, k: int, n: int) -> Made:
    """Products at sizes that no block divides, with a bias and an activation."""
    return lambda a, b, c: jax.nn.gelu(a @ b + c), (draw.normal(m, k), draw.normal(k, n, scale=0.1), draw.normal(n))


@program((1000,), (200000,))
def lexicographic_order(draw: Draws, n: int) -> Made:
    """Sorting by two keys, ranks, and counts of equal keys."""

    def run(a, b):
        order = jnp.lexsort((b, a))
        rank = jnp.zeros(n, jnp.int32).at[order].set(jnp.arange(n, dtype=jnp.int32))
        return a[order], b[order], rank, jnp.bincount(a, length=100)

    return run, (draw.integers(100, n), draw.normal(n))


@program((8, 500), (64, 10000))
def quantiles(draw: Draws, rows: int, n: int) -> Made:
    """Medians, quantiles and the largest values of rows."""
    return lambda a: (jnp.median(a, 1), jnp.quantile(a, jnp.array([0.1, 0.9]), axis=1), lax.top_k(a, 5)), (
        draw.normal(rows, n),
    )


@program((1000, 20), (100000, 64))
def histograms(draw: Draws, n: int, bins: int) -> Made:
    """One- and two-dimensional histograms, and digitised values."""

    def run(x, y):
        edges = jnp.linspace(-3.0, 3.0, bins + 1)
        return jnp.histogram(x, edges)[0], jnp.histogram2d(x, y, [edges, edges])[0], jnp.digitize(x, edges)

    return run, (draw.normal(n), draw.normal(n))


@program((1000,), (200000,))
def calendar(draw: Draws, n: int) -> Made:
    """Days to dates: integer division and remainders."""

    def run(days):
        z = days + 719468
        era = z // 146097
        doe = z % 146097
        yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
        doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
        month = (5 * doy + 2) // 153
        return (
            yoe + era * 400 + (month >= 10),
            jnp.where(month < 10, month + 3, month - 9),
            doy - (153 * month + 2) // 5 + 1,
        )

    return run, (draw.integers(60000, n),)


@program((500, 32), (20000, 128))
def embedding_gradient(draw: Draws, n: int, width: int) -> Made:
    """Rows of a table, pooled, and the gradient of the table."""

    def loss(table, index, w):
        return (jnp.tanh(table[index].mean(1) @ w) ** 2).mean()

    arrays = draw.normal(1000, width), draw.integers(1000, n // 8, 8), draw.normal(width, 4)
    return jax.value_and_grad(loss), arrays


@program((16, 1001), (16, 1009), (500, 1001), (500, 1009))
def spectrum(draw: Draws, rows: int, n: int) -> Made:
    """Power spectra of windows whose length has large factors."""

    def run(x):
        f = jnp.fft.rfft(x * jnp.hanning(n))
        return jnp.abs(f) ** 2, jnp.fft.irfft(f * jnp.exp(-jnp.arange(n // 2 + 1) / 50), n)

    return run, (draw.normal(rows, n),)


@program((4, 1024), (32, 16384))
def short_time_spectrum(draw: Draws, batch: int, n: int) -> Made:
    """Overlapping windows, their spectra, and a filter bank in decibels."""

    def run(x, bank):
        index = jnp.arange(0, n - 400, 160)[:, None] + jnp.arange(400)
        power = jnp.abs(jnp.fft.rfft(x[:, index] * jnp.hanning(400), 512)) ** 2
        return 10 * jnp.log10(jnp.maximum(power @ bank, 1e-6))

    return run, (draw.normal(batch, n), draw.uniform(257, 40))


@program((1, 33), (4, 250))
def image_augmentation(draw: Draws, batch: int, size: int) -> Made:
    """Resizing, bilinear rotation, blur, and a shift of hue."""

    def run(x, angle):
        up = jax.image.resize(x, (batch, size + 20, size + 20, 3), "bilinear")[:, 10:-10, 10:-10]
        grid = jnp.stack(jnp.meshgrid(jnp.arange(size), jnp.arange(size), indexing="ij"), -1) - size / 2

        def turn(image, angle):
            r = jnp.array([[jnp.cos(angle), -jnp.sin(angle)], [jnp.sin(angle), jnp.cos(angle)]])
            at = grid @ r.T + size / 2
            sample = lambda c: jax.scipy.ndimage.map_coordinates(c, [at[..., 0], at[..., 1]], 1, "nearest")  # noqa: E731
            return jax.vmap(sample, -1, -1)(image)

        turned = jax.vmap(turn)(up, angle)
        kernel = jnp.exp(-(jnp.arange(-3.0, 4) ** 2) / 4)
        kernel = jnp.tile((kernel / kernel.sum())[:, None, None, None], (1, 1, 1, 3))
        form = {"dimension_numbers": ("NHWC", "HWIO", "NHWC"), "feature_group_count": 3}
        blurred = lax.conv_general_dilated(turned, kernel, (1, 1), "SAME", **form)
        blurred = lax.conv_general_dilated(blurred, kernel.swapaxes(0, 1), (1, 1), "SAME", **form)
        high, low = blurred.max(-1), blurred.min(-1)
        hue = jnp.where(
            high == blurred[..., 0], blurred[..., 1] - blurred[..., 2], 2 + blurred[..., 2] - blurred[..., 0]
        )
        return blurred, hue / (high - low + 1e-6)

    return run, (draw.uniform(batch, size, size, 3), draw.uniform(batch))


@program((64, 30), (400, 200))
def cellular_automaton(draw: Draws, size: int, steps: int) -> Made:
    """The game of life on a torus."""

    def step(_, board):
        count = sum(jnp.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        return ((count == 3) | ((board == 1) & (count == 2))).astype(jnp.int8)

    return lambda board: lax.fori_loop(0, steps, step, board), ((draw.uniform(size, size) < 0.4).astype("int8"),)


@program((32, 20), (200, 50), wide=True)
def quantum_circuit(draw: Draws, n: int, steps: int) -> Made:
    """Evolution of a state by a Hamiltonian in complex doubles: products and exponentials of phases."""

    def run(h, state):
        w, v = jnp.linalg.eigh(h + h.T)

        def step(s, t):
            s = v @ (jnp.exp(-0.1j * w * t) * (v.T @ s))
            return s / jnp.linalg.norm(s), jnp.abs(s[0]) ** 2

        return lax.scan(step, state.astype(jnp.complex128), jnp.arange(float(steps)))[1]

    return run, (draw.normal(n, n, dtype="float64"), draw.normal(n, dtype="float64"))


@program((1000,), (100000,), wide=True)
def special_functions(draw: Draws, n: int) -> Made:
    """Probability functions in f64."""

    def run(x, p):
        s = jax.scipy.special
        return s.gammaln(x), s.erfinv(2 * p - 1), s.ndtri(p), s.i0e(x), s.xlogy(x, p), s.digamma(x)

    return run, (
        draw.uniform(n, low=0.1, high=9.0, dtype="float64"),
        draw.uniform(n, low=0.01, high=0.99, dtype="float64"),
    )


@program((1000, 3), (100000, 3), (20000, 17))
def small_inner_sums(draw: Draws, n: int, d: int) -> Made:
    """Norms, softmax and moments over short rows."""

    def run(x):
        unit = x / jnp.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)
        return (
            jax.nn.softmax(x),
            unit,
            (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5),
            x.argmax(-1),
        )

    return run, (draw.normal(n, d),)
