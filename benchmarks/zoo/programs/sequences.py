"""Recurrent cells, state spaces, filters and dynamic programs, as users of flax, haiku and dynamax write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


@program((4, 16, 20), (16, 64, 200))
def gated_recurrent_unit(draw: Draws, batch: int, width: int, steps: int) -> Made:
    """A GRU over time and the gradient of its weights."""

    def loss(p, x):
        def cell(h, v):
            z, r = jnp.split(jax.nn.sigmoid(v @ p["zr_x"] + h @ p["zr_h"]), 2, -1)
            new = jnp.tanh(v @ p["n_x"] + (r * h) @ p["n_h"])
            h = (1 - z) * new + z * h
            return h, h

        return (lax.scan(cell, jnp.zeros((batch, width)), x)[1] ** 2).mean()

    p = {
        "zr_x": draw.normal(8, 2 * width, scale=0.2),
        "zr_h": draw.normal(width, 2 * width, scale=0.2),
        "n_x": draw.normal(8, width, scale=0.2),
        "n_h": draw.normal(width, width, scale=0.2),
    }
    return jax.value_and_grad(loss), (p, draw.normal(steps, batch, 8))


@program((4, 16, 20), (16, 100, 100))
def long_short_term_memory(draw: Draws, batch: int, width: int, steps: int) -> Made:
    """An LSTM with its four gates in one product."""

    def run(w, u, b, x):
        def cell(state, v):
            h, c = state
            i, g, f, o = jnp.split(v @ w + h @ u + b, 4, -1)
            c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((batch, width))
        return lax.scan(cell, (zero, zero), x)[1]

    return run, (
        draw.normal(12, 4 * width, scale=0.2),
        draw.normal(width, 4 * width, scale=0.1),
        draw.normal(4 * width),
        draw.normal(steps, batch, 12),
    )


@program((2, 64, 8), (4, 512, 32))
def selective_state_space(draw: Draws, batch: int, length: int, width: int) -> Made:
    """A layer with input-dependent decay, by a parallel scan, and its gradient."""

    def layer(p, x):
        delta = jax.nn.softplus(x @ p["delta"])
        decay = jnp.exp(-delta[..., None] * jnp.exp(p["a"]))
        drive = (delta * x)[..., None] * (x @ p["b"])[:, :, None, :]
        states = lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (decay, drive), axis=1)[1]
        return (states * (x @ p["c"])[:, :, None, :]).sum(-1) + x

    p = {
        "delta": draw.normal(width, width, scale=0.1),
        "a": draw.normal(width, 4),
        "b": draw.normal(width, 4, scale=0.3),
        "c": draw.normal(width, 4, scale=0.3),
    }
    return jax.value_and_grad(lambda p, x: (layer(p, x) ** 2).mean()), (p, draw.normal(batch, length, width))


@program((256, 16), (2048, 64), tolerance=1e-3)
def linear_recurrent_unit(draw: Draws, length: int, width: int) -> Made:
    """A diagonal recurrence with complex eigenvalues by a parallel scan."""

    def run(x, size, angle, b):
        eigen = jnp.exp(-jnp.exp(size) + 1j * angle)
        drive = x @ b.astype(jnp.complex64)
        decay = jnp.broadcast_to(eigen, drive.shape)
        return lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (decay, drive))[1].real

    return run, (
        draw.normal(length, width),
        draw.normal(width),
        draw.uniform(width, high=3.0),
        draw.normal(width, width),
    )


@program((32, 2), (200, 4), wide=True)
def kalman_filter_parallel(draw: Draws, length: int, d: int) -> Made:
    """Kalman filtering by a parallel scan of elements of five matrices, in f64."""

    def run(y):
        f, h = 0.9 * jnp.eye(d), jnp.ones((1, d))
        q, r = 0.1 * jnp.eye(d), jnp.eye(1)
        s = h @ q @ h.T + r
        k = jnp.linalg.solve(s, h @ q).T
        ones = jnp.ones((length, 1, 1))
        elements = (
            ones * ((jnp.eye(d) - k @ h) @ f),
            y @ k.T,
            ones * ((jnp.eye(d) - k @ h) @ q),
            (y @ jnp.linalg.solve(s, h @ f)),
            ones * (f.T @ h.T @ jnp.linalg.solve(s, h @ f)),
        )

        def combine(left, right):
            a1, b1, c1, e1, j1 = left
            a2, b2, c2, e2, j2 = right
            m = jnp.linalg.inv(jnp.eye(d) + c1 @ j2)
            a2m = a2 @ m
            a1m = a1.T @ jnp.linalg.inv(jnp.eye(d) + j2 @ c1)
            return (
                a2m @ a1,
                a2m @ (b1 + c1 @ e2) + b2,
                a2m @ c1 @ a2.T + c2,
                a1m @ (e2 - j2 @ b1) + e1,
                a1m @ j2 @ a1 + j1,
            )

        return lax.associative_scan(jax.vmap(combine), elements)[1]

    return run, (draw.normal(length, 1, dtype="float64"),)


@program((50, 3), (1000, 6))
def kalman_filter(draw: Draws, length: int, d: int) -> Made:
    """A sequential Kalman filter: small products and a solve at every step."""

    def run(f, q, h, y):
        def step(state, y):
            m, p = state
            m, p = f @ m, f @ p @ f.T + q
            s = h @ p @ h.T + 0.5 * jnp.eye(2)
            k = jnp.linalg.solve(s, h @ p).T
            return (m + k @ (y - h @ m), p - k @ s @ k.T), m

        return lax.scan(step, (jnp.zeros(d), jnp.eye(d)), y)[1]

    return run, (0.9 * jnp.eye(d), 0.1 * jnp.eye(d), draw.normal(2, d), draw.normal(length, 2))


@program((30, 8), (500, 64))
def hidden_markov_model(draw: Draws, length: int, states: int) -> Made:
    """Forward algorithm in log space with the gradient (posterior marginals)."""

    def loss(logits, observed):
        transition = jax.nn.log_softmax(logits)

        def step(alpha, o):
            alpha = jax.nn.logsumexp(alpha[:, None] + transition, 0) + o
            return alpha, None

        return jax.nn.logsumexp(lax.scan(step, jnp.zeros(states), observed)[0])

    return jax.value_and_grad(loss), (draw.normal(states, states), draw.normal(length, states))


@program((2, 20, 5), (8, 120, 20))
def connectionist_temporal_classification(draw: Draws, batch: int, length: int, labels: int) -> Made:
    """The CTC loss as a dynamic program over time, with its gradient."""

    def loss(logits, target):
        logs = jax.nn.log_softmax(logits)
        extended = jnp.zeros((batch, 2 * labels + 1), jnp.int32).at[:, 1::2].set(target)
        skip = (extended != 0) & (extended != jnp.roll(extended, 2, 1))
        emit = jnp.take_along_axis(logs, extended[:, None].repeat(length, 1), 2)
        alpha = jnp.full((batch, 2 * labels + 1), -1e5).at[:, :2].set(emit[:, 0, :2])

        def step(alpha, e):
            one = jnp.pad(alpha, ((0, 0), (1, 0)), constant_values=-1e5)[:, :-1]
            two = jnp.where(skip, jnp.pad(alpha, ((0, 0), (2, 0)), constant_values=-1e5)[:, :-2], -1e5)
            return jnp.logaddexp(jnp.logaddexp(alpha, one), two) + e, None

        alpha = lax.scan(step, alpha, emit[:, 1:].swapaxes(0, 1))[0]
        return -jnp.logaddexp(alpha[:, -1], alpha[:, -2]).mean()

    return jax.value_and_grad(loss), (draw.normal(batch, length, 30), draw.integers(29, batch, labels) + 1)


@program((20, 15), (200, 150))
def edit_distance(draw: Draws, n: int, m: int) -> Made:
    """Soft alignment of two sequences, one anti-diagonal a step."""

    def run(x, y):
        cost = (x[:, None] - y) ** 2

        def step(state, k):
            before, last = state
            i = jnp.arange(n)
            j = k - i
            c = jnp.where((j >= 0) & (j < m), cost[i, jnp.clip(j, 0, m - 1)], 1e6)
            up, left, corner = jnp.roll(last, 1).at[0].set(1e6), last, jnp.roll(before, 1).at[0].set(1e6)
            corner = jnp.where((i == 0) & (j == 0), 0.0, corner)
            new = c - jax.nn.logsumexp(-jnp.stack([up, left, corner]), 0)
            return (last, new), new[-1]

        start = jnp.full(n, 1e6)
        return lax.scan(step, (start, start), jnp.arange(n + m - 1))[1][-1]

    return run, (draw.normal(n), draw.normal(m))


@program((2, 4, 100, 8), (4, 8, 5000, 20))
def beam_search(draw: Draws, batch: int, beams: int, vocabulary: int, steps: int) -> Made:
    """A decoder with a cache of states, top-k over beams and words, gathers by parent."""

    def run(embed, w, out):
        def step(state, t):
            tokens, scores, h, written = state
            h = jnp.tanh(h @ w + embed[tokens])
            logits = jax.nn.log_softmax(h @ out)
            best, index = lax.top_k((scores[..., None] + logits).reshape(batch, -1), beams)
            parent, tokens = index // vocabulary, index % vocabulary
            h = jnp.take_along_axis(h, parent[..., None], 1)
            written = jnp.take_along_axis(written, parent[..., None], 1).at[:, :, t].set(tokens)
            return (tokens, best, h, written), None

        start = (
            jnp.zeros((batch, beams), jnp.int32),
            jnp.where(jnp.arange(beams) == 0, 0.0, -1e9)[None].repeat(batch, 0),
            jnp.zeros((batch, beams, 32)),
            jnp.zeros((batch, beams, steps), jnp.int32),
        )
        return lax.scan(step, start, jnp.arange(steps))[0][:2]

    return run, (draw.normal(vocabulary, 32), draw.normal(32, 32, scale=0.2), draw.normal(32, vocabulary))


@program((1, 4, 16, 8), (2, 8, 128, 64))
def decoding_with_cache(draw: Draws, batch: int, heads: int, length: int, width: int) -> Made:
    """Attention of one new token at a time, keys and values written into a cache."""

    def run(keys, values, w, x):
        def step(state, t):
            keys, values, x = state
            q, k, v = (jnp.tanh(x @ w[n]).reshape(batch, heads, width) for n in range(3))
            keys, values = keys.at[:, :, t].set(k), values.at[:, :, t].set(v)
            score = jnp.einsum("bhd,bhtd->bht", q, keys) / width**0.5
            score = jnp.where(jnp.arange(length) <= t, score, -1e9)
            x = jnp.einsum("bht,bhtd->bhd", jax.nn.softmax(score), values).reshape(batch, -1)
            return (keys, values, x), x.mean()

        return lax.scan(step, (keys, values, x), jnp.arange(length))[1]

    cache = jnp.zeros((batch, heads, length, width))
    return run, (
        cache,
        cache,
        draw.normal(3, heads * width, heads * width, scale=0.1),
        draw.normal(batch, heads * width),
    )
