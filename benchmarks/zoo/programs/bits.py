"""Hashes, bit tricks and sorting networks in integers."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


@program((4, 20), (64, 200), (4096, 500))
def cyclic_checksum(draw: Draws, messages: int, length: int) -> Made:
    """Checksums of messages by a table of 256 remainders, a byte a step."""

    def run(data):
        table = jnp.arange(256, dtype=jnp.uint32)
        for _ in range(8):
            table = jnp.where(table & 1, (table >> 1) ^ jnp.uint32(0xEDB88320), table >> 1)

        def step(c, byte):
            return table[(c ^ byte) & 255] ^ (c >> 8), None

        return ~lax.scan(step, jnp.full(messages, 0xFFFFFFFF, jnp.uint32), data.T.astype(jnp.uint32))[0]

    return run, (draw.integers(256, messages, length),)


@program((2, 1), (64, 4), (4096, 8))
def secure_hash(draw: Draws, messages: int, blocks: int) -> Made:
    """The 64 rounds of a cryptographic hash with its message schedule, for many messages."""

    def turn(x, k):
        return (x >> k) | (x << (32 - k))

    def mix(state, constant):
        (a, b, c, d, e, f, g, i), w = state
        t1 = i + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + constant + w[0]
        t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
        s0, s1 = turn(w[1], 7) ^ turn(w[1], 18) ^ (w[1] >> 3), turn(w[14], 17) ^ turn(w[14], 19) ^ (w[14] >> 10)
        return ((t1 + t2, a, b, c, d + t1, e, f, g), jnp.concatenate([w[1:], (w[0] + s0 + w[9] + s1)[None]])), None

    constants = np.floor(np.cbrt(np.arange(2.0, 66.0)) % 1 * 2**32).astype("uint32")

    def block(h, w):
        after = lax.scan(mix, (h, w), constants)[0][0]
        return tuple(x + y for x, y in zip(h, after, strict=True)), None

    def run(data):
        start = tuple(jnp.full(messages, 0x6A09E667 * (k + 1) % 2**32, jnp.uint32) for k in range(8))
        return lax.scan(block, start, data)[0]

    return run, (draw.rng.integers(0, 2**32, (blocks, 16, messages)).astype("uint32"),)


@program((32, 8), (1000, 14), (100000, 20))
def bloom_filter(draw: Draws, n: int, log_bits: int) -> Made:
    """Keys mixed into four bit positions each, set in words, and other keys looked up."""

    def mix(x, salt):
        x = (x ^ (x >> 16) ^ jnp.uint32(salt)) * jnp.uint32(0x85EBCA6B)
        x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
        return (x ^ (x >> 16)) & jnp.uint32(2**log_bits - 1)

    def run(keys, asked):
        bits = jnp.zeros(2**log_bits, bool)
        for salt in (1, 77, 901, 5555):
            bits = bits.at[mix(keys, salt)].set(True)
        words = (bits.reshape(-1, 32) * (jnp.uint32(1) << jnp.arange(32, dtype=jnp.uint32))).sum(1, dtype=jnp.uint32)
        found = jnp.ones(n, bool)
        for salt in (1, 77, 901, 5555):
            at = mix(asked, salt)
            found &= (words[at >> 5] >> (at & 31)) & 1 == 1
        return words, found, lax.population_count(words).sum()

    return run, (draw.rng.integers(0, 2**32, n).astype("uint32"), draw.rng.integers(0, 2**32, n).astype("uint32"))


@program((8, 2), (256, 8), (2000, 32))
def hamming_neighbours(draw: Draws, n: int, words: int) -> Made:
    """Distances between all pairs of bit strings, and the nearest other one."""

    def run(codes):
        d = lax.population_count(codes[:, None] ^ codes[None]).sum(-1, dtype=jnp.int32)
        d = d + 9999 * jnp.eye(n, dtype=jnp.int32)
        return d.min(1), d.argmin(1)

    return run, (draw.rng.integers(0, 2**32, (n, words)).astype("uint32"),)


@program((20,), (2000,), (200000,))
def space_filling_order(draw: Draws, n: int) -> Made:
    """Points in the order of interleaved bits of their coordinates, and the bits taken apart again."""

    def spread(x):
        for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
            x = (x | (x << shift)) & jnp.uint32(mask)
        return x

    def gather(x):
        x = x & jnp.uint32(0x55555555)
        for shift, mask in ((1, 0x33333333), (2, 0x0F0F0F0F), (4, 0x00FF00FF), (8, 0x0000FFFF)):
            x = (x | (x >> shift)) & jnp.uint32(mask)
        return x

    def run(points):
        cell = (points * 65535).astype(jnp.uint32)
        code = spread(cell[:, 0]) | (spread(cell[:, 1]) << 1)
        order = jnp.argsort(code)
        sorted_code = code[order]
        gap = lax.clz(sorted_code[1:] ^ sorted_code[:-1])
        return points[order], jnp.stack([gather(sorted_code), gather(sorted_code >> 1)], 1), gap

    return run, (draw.uniform(n, 2),)


@program((4, 8), (64, 64), (1024, 256))
def bitonic_network(draw: Draws, rows: int, n: int) -> Made:
    """Rows sorted by a network of compare-exchanges, with the permutation carried along."""

    def run(x):
        index = jnp.broadcast_to(jnp.arange(n), x.shape)
        here = jnp.arange(n)
        size = 2
        while size <= n:
            gap = size // 2
            while gap:
                partner = here ^ gap
                y, other = x[:, partner], index[:, partner]
                low = (here < partner) == ((here & size) == 0)
                keep = jnp.where(low, x <= y, x >= y)
                x, index = jnp.where(keep, x, y), jnp.where(keep, index, other)
                gap //= 2
            size *= 2
        return x, index

    return run, (draw.normal(rows, n),)


@program((64,), (4096,), (1000000,))
def float_bits(draw: Draws, n: int) -> Made:
    """Exponents and mantissas taken apart, an inverse root by its bits, stochastic rounding to bf16, sortable keys."""

    def run(x, noise):
        bits = lax.bitcast_convert_type(x, jnp.uint32)
        exponent, mantissa = ((bits >> 23) & 255).astype(jnp.int32) - 127, bits & 0x7FFFFF
        guess = lax.bitcast_convert_type(jnp.uint32(0x5F3759DF) - (bits >> 1), jnp.float32)
        guess = guess * (1.5 - 0.5 * x * guess * guess)
        rounded = lax.bitcast_convert_type((bits + (noise & 0xFFFF)) & jnp.uint32(0xFFFF0000), jnp.float32)
        key = jnp.where(bits >> 31, ~bits, bits | jnp.uint32(0x80000000))
        return exponent, mantissa, guess, rounded.astype(jnp.bfloat16), key

    return run, (draw.uniform(n, low=0.01, high=9.0), draw.rng.integers(0, 2**32, n).astype("uint32"))


@program((8, 2), (256, 8), (4096, 32))
def packed_bits_product(draw: Draws, n: int, words: int) -> Made:
    """A network of signs: bits packed into words, products by exclusive or and counts."""

    def pack(x):
        bits = (x > 0).reshape(*x.shape[:-1], words, 32)
        return (bits * (jnp.uint32(1) << jnp.arange(32, dtype=jnp.uint32))).sum(-1, dtype=jnp.uint32)

    def run(x, w):
        return 32 * words - 2 * lax.population_count(pack(x)[:, None] ^ pack(w)).sum(-1).astype(jnp.int32)

    return run, (draw.normal(n, 32 * words), draw.normal(24, 32 * words))
