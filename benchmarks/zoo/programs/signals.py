"""Waves, filters, splines and transforms in one dimension, as users of jax.numpy and jax.scipy write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program

_HALF = (0.48296291314453414, 0.8365163037378079, 0.2241438680420134, -0.12940952255126037)


@program((2, 32), (16, 1024), (64, 16384))
def wavelet_denoising(draw: Draws, rows: int, n: int) -> Made:
    """Levels of a four-tap wavelet, soft thresholds, and the inverse."""

    def up(y, taps):
        spaced = jnp.stack([y, jnp.zeros_like(y)], -1).reshape(rows, -1)
        return sum(jnp.roll(spaced * c, k, 1) for k, c in enumerate(taps))

    def run(x):
        low = jnp.array(_HALF)
        high = low[::-1] * jnp.array([1.0, -1.0, 1.0, -1.0])
        parts = []
        for _ in range(4):
            near = jnp.stack([jnp.roll(x, -k, 1)[:, ::2] for k in range(4)], -1)
            x, detail = near @ low, near @ high
            parts.append(jnp.sign(detail) * jnp.maximum(jnp.abs(detail) - 0.3, 0.0))
        for detail in reversed(parts):
            x = up(x, low) + up(detail, high)
        return x

    return run, (draw.normal(rows, n),)


@program((2, 100, 17), (8, 4000, 300), (16, 65536, 4001))
def reverberation(draw: Draws, rows: int, n: int, taps: int) -> Made:
    """A long filter by transforms of padded lengths, beside a direct short one."""

    def run(x, h):
        size = n + taps - 1
        long = jnp.fft.irfft(jnp.fft.rfft(x, size) * jnp.fft.rfft(h, size), size)[:, :n]
        return long, jax.vmap(lambda r: jnp.convolve(r, h[:9], "same"))(x)

    return run, (draw.normal(rows, n), draw.normal(taps) * 0.1)


@program((2, 100), (32, 1000), (64, 10000))
def recursive_filter(draw: Draws, rows: int, n: int) -> Made:
    """Four second-order sections one after the other, a sample a step."""

    def run(x, b, a):
        def step(state, sample):
            new = []
            for k in range(4):
                s1, s2 = state[k]
                y = b[k, 0] * sample + s1
                new.append((b[k, 1] * sample - a[k, 0] * y + s2, b[k, 2] * sample - a[k, 1] * y))
                sample = y
            return new, sample

        zero = [(jnp.zeros(rows), jnp.zeros(rows)) for _ in range(4)]
        return lax.scan(step, zero, x.T)[1].T

    return run, (draw.normal(rows, n), draw.normal(4, 3, scale=0.5), draw.uniform(4, 2, low=-0.4, high=0.4))


@program((1, 512), (8, 8192), (16, 65536))
def spectral_gate(draw: Draws, rows: int, n: int) -> Made:
    """Short-time spectra, quiet bins closed, and the waves added up again where windows overlap."""
    frames = (n - 256) // 64 + 1

    def run(x):
        index = jnp.arange(frames)[:, None] * 64 + jnp.arange(256)
        window = jnp.hanning(256)
        f = jnp.fft.rfft(x[:, index] * window)
        level = jnp.abs(f)
        gate = jax.nn.sigmoid((level - jnp.median(level, 1, keepdims=True)) * 4)
        pieces = jnp.fft.irfft(f * gate, 256) * window
        weight = jnp.zeros(n).at[index].add(window**2)
        return jnp.zeros((rows, n)).at[:, index].add(pieces) / jnp.maximum(weight, 1e-3)

    return run, (draw.normal(rows, n),)


@program((2, 64), (16, 1000), (64, 8192))
def envelope(draw: Draws, rows: int, n: int) -> Made:
    """The analytic signal by a transform, its magnitude and unwrapped phase, and autocorrelation."""

    def run(x):
        f = jnp.fft.fft(x)
        k = jnp.arange(n)
        z = jnp.fft.ifft(f * jnp.where(k == 0, 1, jnp.where(k < (n + 1) // 2, 2, jnp.where(k == n // 2, 1, 0))))
        power = jnp.abs(jnp.fft.rfft(x, 2 * n)) ** 2
        return jnp.abs(z), jnp.cos(jnp.unwrap(jnp.angle(z))), jnp.fft.irfft(power)[:, :n] / n

    return run, (draw.normal(rows, n),)


@program((16, 50), (200, 5000), (2000, 200000))
def natural_spline(draw: Draws, knots: int, n: int) -> Made:
    """Second derivatives from a tridiagonal system swept by scans, then values, slopes and integrals at points."""

    def run(x, y, at):
        h = jnp.diff(x)
        right = 6 * jnp.diff(jnp.diff(y) / h)

        def forward(state, given):
            c, d = state
            low, middle, high, r = given
            w = middle - low * c
            return (high / w, (r - low * d) / w), (high / w, (r - low * d) / w)

        rows = h[:-1], 2 * (h[:-1] + h[1:]), h[1:], right
        c, d = lax.scan(forward, (jnp.float32(0), jnp.float32(0)), rows)[1]

        def back(m, given):
            m = given[1] - given[0] * m
            return m, m

        m = jnp.pad(lax.scan(back, jnp.float32(0), (c, d), reverse=True)[1], 1)
        k = jnp.clip(jnp.searchsorted(x, at) - 1, 0, knots - 2)
        a, b, w = x[k + 1] - at, at - x[k], h[k]
        value = (
            (m[k] * a**3 + m[k + 1] * b**3) / (6 * w)
            + (y[k] / w - m[k] * w / 6) * a
            + (y[k + 1] / w - m[k + 1] * w / 6) * b
        )  # noqa: E501
        return value, jnp.interp(at, x, y)

    x = draw.uniform(knots, low=0.5).cumsum()
    return run, (x, draw.normal(knots), draw.uniform(n, high=float(x[-1])))


@program((8, 100), (64, 10000), (256, 200000))
def chebyshev_series(draw: Draws, terms: int, n: int) -> Made:
    """Coefficients from samples by a cosine matrix, values by a backward recurrence, and derivatives."""

    def run(samples, x):
        k = jnp.arange(terms)
        basis = jnp.cos(jnp.pi * k[:, None] * (k + 0.5) / terms)
        c = (2 / terms) * basis @ samples

        def value(x):
            def step(state, a):
                return (2 * x * state[0] - state[1] + a, state[0]), None

            (b1, b2), _ = lax.scan(step, (jnp.zeros_like(x), jnp.zeros_like(x)), c, reverse=True)
            return b1 - x * b2 - c[0] / 2

        return jax.jvp(value, (x,), (jnp.ones_like(x),))

    return run, (draw.normal(terms), draw.uniform(n, low=-0.9, high=0.9))


@program((50, 20), (1000, 200), (5000, 2000))
def kernel_density(draw: Draws, n: int, points: int) -> Made:
    """A density from samples, local regression at the same points, and the gradient by bandwidth."""

    def run(x, y, at, h):
        def density(h):
            w = jnp.exp(-0.5 * ((at[:, None] - x) / h) ** 2)
            return (w.sum(1) / (n * h)).mean(), w

        (_, w), slope = jax.value_and_grad(density, has_aux=True)(h)
        d = x - at[:, None]
        s0, s1, s2 = w.sum(1), (w * d).sum(1), (w * d * d).sum(1)
        return ((s2[:, None] - s1[:, None] * d) * w * y).sum(1) / (s0 * s2 - s1**2 + 1e-6), slope

    return run, (draw.normal(n), draw.normal(n), draw.uniform(points, low=-1.0), draw.uniform(low=0.3, high=0.4))


@program((16, 10), (128, 30), (512, 50))
def escape_times(draw: Draws, n: int, steps: int) -> Made:
    """Iterations of a complex map until it leaves a disc, and Newton's method for cube roots of one."""

    def run(shift):
        c = jnp.linspace(-2, 1, n) + 1j * jnp.linspace(-1.5, 1.5, n)[:, None] + shift

        def step(_, state):
            z, count = state
            inside = jnp.abs(z) < 2
            return jnp.where(inside, z * z + c, z), count + inside

        count = lax.fori_loop(0, steps, step, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]
        root = lax.fori_loop(0, 5, lambda _, z: z - (z**3 - 1) / (3 * z**2 + 1e-3), c)
        return count, root.real

    return run, (draw.normal(scale=0.01),)


@program((8,), (1000,), (100000,), wide=True)
def bessel_and_integrals(draw: Draws, n: int) -> Made:
    """Special functions by recurrences and by quadrature of twenty nodes, in f64."""

    def run(x, a):
        nodes = jnp.cos(jnp.pi * (jnp.arange(20) + 0.5) / 20)
        j = jnp.cos(a[:, None] * nodes * 3).mean(1)
        s = jax.scipy.special
        return s.betainc(a + 1, x + 0.5, 0.3), s.gammainc(a + 0.5, x), s.expi(x + 0.1), s.zeta(x + 1.5, 1.0), j

    return run, (draw.uniform(n, high=5.0, dtype="float64"), draw.uniform(n, high=5.0, dtype="float64"))


@program((4, 6, 9), (32, 150, 9), (256, 512, 9))
def quantum_walk(draw: Draws, n: int, m: int, steps: int) -> Made:
    """A complex state that a switch sends through a transform, a phase or a shift; where it was likely to be."""

    def run(z, phase):
        moves = [
            lambda z: jnp.fft.fft(z, axis=-1) / jnp.sqrt(m),
            lambda z: z * jnp.exp(1j * phase),
            lambda z: jnp.roll(z, 1, 0).conj(),
        ]

        def step(state, k):
            z, seen = state
            z = lax.switch(k % 3, moves, z)
            likely = jnp.abs(z) ** 2
            return (z, seen.at[k % n].add(likely.sum(0))), (likely.sum(), jnp.angle(z[0, 0]))

        return lax.scan(step, (z, jnp.zeros((n, m))), jnp.arange(steps))

    z = (draw.normal(n, m) + 1j * draw.normal(n, m)).astype(jnp.complex64) / m**0.5
    return run, (z, draw.normal(n, m))


@program((1, 200, 9), (4, 5000, 80), (16, 40000, 501))
def rolling_baseline(draw: Draws, rows: int, n: int, width: int) -> Made:
    """A baseline below a signal: a rolling minimum, its rolling maximum, and a rolling mean of that."""

    def run(x):
        def rolling(x, start, join, padding="SAME"):
            return lax.reduce_window(x, start, join, (1, width), (1, 1), padding)

        opened = rolling(rolling(x, jnp.inf, lax.min), -jnp.inf, lax.max)
        wide = jnp.pad(opened, ((0, 0), (width // 2, width - 1 - width // 2)), mode="edge")
        return x - rolling(wide, 0.0, lax.add, "VALID") / width

    return run, (draw.normal(rows, n),)
