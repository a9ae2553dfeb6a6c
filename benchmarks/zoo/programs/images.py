"""Images filtered, compared and taken apart, as users of dm-pix and jax.scipy write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


def _windows(x, reach: int):
    """Every pixel's neighbourhood, as one more dimension ahead."""
    n = 2 * reach + 1
    p = jnp.pad(x, reach, mode="edge")
    return jnp.stack([p[i : i + x.shape[0], j : j + x.shape[1]] for i in range(n) for j in range(n)])


@program((16,), (128,), (1024,))
def edge_detection(draw: Draws, n: int) -> Made:
    """Gradients, their directions in four sectors, thinning along them, and two thresholds joined by growth."""

    def run(x):
        w = _windows(x, 1)
        gx = w[2] + 2 * w[5] + w[8] - w[0] - 2 * w[3] - w[6]
        gy = w[6] + 2 * w[7] + w[8] - w[0] - 2 * w[1] - w[2]
        size, sector = jnp.hypot(gx, gy), jnp.round(jnp.arctan2(gy, gx) / (jnp.pi / 4)).astype(jnp.int32) % 4
        m = _windows(size, 1)
        ahead, behind = jnp.stack([m[5], m[8], m[7], m[6]]), jnp.stack([m[3], m[0], m[1], m[2]])
        pick = lambda a: jnp.take_along_axis(a, sector[None], 0)[0]  # noqa: E731
        thin = jnp.where((size >= pick(ahead)) & (size >= pick(behind)), size, 0.0)
        strong, weak = thin > 2.0, thin > 1.0
        return lax.fori_loop(0, 4, lambda _, s: weak & (_windows(s, 1).any(0)), strong)

    return run, (draw.uniform(n, n),)


@program((16, 1), (128, 2), (512, 3))
def bilateral_filter(draw: Draws, n: int, reach: int) -> Made:
    """A blur whose weights fall with distance and with difference."""

    def run(x):
        w = _windows(x, reach)
        span = jnp.arange(-reach, reach + 1.0)
        near = jnp.exp(-(span[:, None] ** 2 + span**2) / 4).reshape(-1, 1, 1)
        weight = near * jnp.exp(-((w - x) ** 2) / 0.1)
        return (weight * w).sum(0) / weight.sum(0)

    return run, (draw.uniform(n, n),)


@program((16,), (128,), (512,))
def median_filter(draw: Draws, n: int) -> Made:
    """The median of every neighbourhood of nine by sorting."""
    return lambda x: (jnp.sort(_windows(x, 1), 0)[4], jnp.median(_windows(x, 1), 0)), (draw.uniform(n, n),)


@program((1, 16), (4, 128), (8, 512))
def histogram_equalisation(draw: Draws, batch: int, n: int) -> Made:
    """Grey levels spread by each image's cumulative counts."""

    def one(x):
        level = (x * 255).astype(jnp.int32)
        total = jnp.cumsum(jnp.bincount(level.reshape(-1), length=256))
        return (total / total[-1])[level], total

    return jax.vmap(one), (draw.uniform(batch, n, n) ** 2,)


@program((1, 16), (2, 64), (4, 256))
def structural_similarity(draw: Draws, batch: int, n: int) -> Made:
    """Local means, variances and covariances by a separable window; a loss with its gradient."""

    def loss(a, b):
        span = jnp.arange(-3.0, 4)
        k = jnp.exp(-(span**2) / 4.5)
        k = k / k.sum()

        def blur(x):
            x = jax.vmap(jax.vmap(lambda r: jnp.convolve(r, k, "valid")))(x).mT
            return jax.vmap(jax.vmap(lambda r: jnp.convolve(r, k, "valid")))(x).mT

        m, o = blur(a), blur(b)
        va, vb, vab = blur(a * a) - m * m, blur(b * b) - o * o, blur(a * b) - m * o
        return 1 - ((2 * m * o + 1e-4) * (2 * vab + 9e-4) / ((m * m + o * o + 1e-4) * (va + vb + 9e-4))).mean()

    return jax.value_and_grad(loss), (draw.uniform(batch, n, n), draw.uniform(batch, n, n))


@program((16,), (128,), (512,))
def block_transform_coding(draw: Draws, n: int) -> Made:
    """Cosine transforms of 8 x 8 blocks, quantised, and back, with the signal-to-noise ratio."""

    def run(x):
        k = jnp.arange(8.0)
        c = jnp.cos((2 * k + 1) * k[:, None] * jnp.pi / 16) * jnp.where(k == 0, 8**-0.5, 0.5)[:, None]
        blocks = x.reshape(n // 8, 8, n // 8, 8).transpose(0, 2, 1, 3) - 0.5
        step = 0.02 * (1 + k[:, None] + k)
        q = jnp.round(c @ blocks @ c.T / step).astype(jnp.int8)
        back = (c.T @ (q * step) @ c + 0.5).transpose(0, 2, 1, 3).reshape(n, n)
        return back, -10 * jnp.log10(((back - x) ** 2).mean()), (q == 0).sum()

    return run, (draw.uniform(n, n),)


@program((12, 10), (64, 40), (400, 100))
def connected_components(draw: Draws, n: int, limit: int) -> Made:
    """Labels that spread to neighbours until nothing changes, and sizes of the parts."""

    def run(mask):
        start = jnp.where(mask, jnp.arange(n * n).reshape(n, n) + 1, 0)

        def spread(state):
            label, _, k = state
            new = jnp.where(mask, lax.reduce_window(label, 0, lax.max, (3, 3), (1, 1), "SAME"), 0)
            return new, (new != label).any(), k + 1

        label = lax.while_loop(lambda s: s[1] & (s[2] < limit), spread, (start, True, 0))[0]
        return label, jnp.bincount(label.reshape(-1), length=n * n + 1)

    return run, (draw.uniform(n, n) < 0.5,)


@program((12,), (100,), (500,))
def distance_transform(draw: Draws, n: int) -> Made:
    """Distances to the nearest set pixel by sweeps along rows and columns, forward and back."""

    def run(mask):
        def sweep(d, reverse):
            def step(best, row):
                best = jnp.minimum(best + 1, row)
                return best, best

            return lax.scan(step, jnp.full(n, 1e6), d, reverse=reverse)[1]

        d = jnp.where(mask, 0.0, 1e6)
        for _ in range(2):
            d = sweep(sweep(d, False), True).T
        return d

    return run, (draw.uniform(n, n) < 0.02,)


@program((16,), (64,), (400,), tolerance=1e-3)
def optical_flow(draw: Draws, n: int) -> Made:
    """Motion between frames by local least squares of two unknowns, in three refinements."""

    def run(a, b):
        def total(x):
            return lax.reduce_window(x, 0.0, lax.add, (5, 5), (1, 1), "SAME")

        gy, gx = jnp.gradient(a)
        xx, yy, xy = total(gx * gx) + 0.1, total(gy * gy) + 0.1, total(gx * gy)
        grid = jnp.stack(jnp.meshgrid(jnp.arange(n), jnp.arange(n), indexing="ij")).astype(jnp.float32)

        def refine(_, flow):
            moved = jax.scipy.ndimage.map_coordinates(b, list(grid + flow), 1, "nearest")
            t = moved - a
            tx, ty = total(gx * t), total(gy * t)
            det = xx * yy - xy * xy
            return flow - jnp.stack([(xx * ty - xy * tx) / det, (yy * tx - xy * ty) / det])

        return lax.fori_loop(0, 3, refine, jnp.zeros((2, n, n)))

    return run, (draw.uniform(n, n), draw.uniform(n, n))


@program((8, 2), (64, 8), (512, 16))
def box_sums(draw: Draws, n: int, boxes: int) -> Made:
    """Sums in boxes by a table of two-dimensional prefix sums, and overlaps of all pairs of boxes, suppressed."""

    def run(x, corner, size, score):
        table = jnp.pad(jnp.cumsum(jnp.cumsum(x, 0), 1), ((1, 0), (1, 0)))
        top, low = corner, jnp.minimum(corner + size + 1, n)
        total = table[low[:, 0], low[:, 1]] - table[top[:, 0], low[:, 1]]
        total = total - table[low[:, 0], top[:, 1]] + table[top[:, 0], top[:, 1]]
        area = (low - top).prod(1)
        cut = jnp.minimum(low[:, None], low) - jnp.maximum(top[:, None], top)
        both = jnp.maximum(cut, 0).prod(-1)
        overlap = both / (area[:, None] + area - both)
        order = jnp.argsort(-score)

        def visit(k, kept):
            at = order[k]
            return kept.at[at].set(~((overlap[at] > 0.3) & kept).any())

        return total, lax.fori_loop(0, boxes, visit, jnp.zeros(boxes, bool))

    return run, (
        draw.uniform(n, n),
        draw.integers(n - 1, boxes, 2),
        draw.integers(n // 2, boxes, 2),
        draw.normal(boxes),
    )


@program((2, 9), (8, 64), (16, 256), tolerance=1e-3)
def projective_warp(draw: Draws, batch: int, n: int) -> Made:
    """Images under projective maps: one grid of points times each image's 3 by 3 matrix, mirrored borders, bilinear."""
    maps = jnp.eye(3) + draw.normal(batch, 3, 3, scale=0.02)
    maps = maps.at[:, :2, 2].multiply(1e-2)

    def run(x):
        row, column = jnp.meshgrid(jnp.arange(n), jnp.arange(n), indexing="ij")
        grid = jnp.stack([row, column, jnp.ones_like(row)], -1).astype(jnp.float32)
        grid = jnp.broadcast_to(grid, (batch, n, n, 3))
        moved = jnp.einsum("bijc,bcd->bijd", grid, maps).transpose(0, 3, 1, 2) + 0.3
        at = jnp.abs(jnp.mod(moved[:, :2] / moved[:, 2:], 2 * n - 2.0) - (n - 1.0))
        low = jnp.clip(jnp.floor(at).astype(jnp.int32), 0, n - 2)
        part = at - low
        r, c, (u, v) = low[:, 0], low[:, 1], jnp.moveaxis(part, 1, 0)
        pick = jax.vmap(lambda image, r, c: image[r, c])
        above = pick(x, r, c) * (1 - v) + pick(x, r, c + 1) * v
        below = pick(x, r + 1, c) * (1 - v) + pick(x, r + 1, c + 1) * v
        return above * (1 - u) + below * u

    return run, (draw.uniform(batch, n, n),)
