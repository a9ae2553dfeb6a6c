"""Bytes, tokens and strings as arrays: counting, matching, encoding and decoding."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.zoo.catalogue import Draws, Made, program


@program((64, 5), (2000, 20), (100000, 20))
def byte_pair_merges(draw: Draws, n: int, merges: int) -> Made:
    """The most frequent pair of neighbours, found by counts, becomes a token; repeated."""
    tokens = 40 + merges

    def run(text):
        def merge(k, state):
            text, length, pairs = state
            here = jnp.arange(n)
            fine = here < length - 1
            after = jnp.roll(text, -1)
            code = jnp.where(fine, text * tokens + after, tokens * tokens)
            best = jnp.bincount(code, length=tokens * tokens + 1)[:-1].argmax()
            match = fine & (code == best)
            # of overlapping matches the first counts
            run = here - lax.cummax(jnp.where(match, -1, here))
            match = match & (run % 2 == 1)
            kept = ~jnp.roll(match, 1).at[0].set(False) & (here < length)
            place = jnp.cumsum(kept) - 1
            new = jnp.where(match, 40 + k, text)
            text = jnp.zeros(n, text.dtype).at[jnp.where(kept, place, n)].set(new, mode="drop")
            return text, kept.sum(), pairs.at[k].set(best)

        return lax.fori_loop(0, merges, merge, (text, n, jnp.zeros(merges, int)))

    return run, (draw.integers(40, n) // (draw.integers(4, n) + 1),)


@program((100, 64), (5000, 1024), (200000, 65536))
def hashed_ngrams(draw: Draws, n: int, buckets: int) -> Made:
    """Counts of one to three neighbouring tokens in hashed buckets, scaled as document features."""

    def run(tokens):
        counts = jnp.zeros(buckets)
        code = jnp.zeros(n, jnp.uint32)
        for k in range(3):
            code = (code ^ jnp.roll(tokens, -k).astype(jnp.uint32)) * jnp.uint32(16777619)
            counts = counts.at[(code >> 7) % buckets].add(1.0)
        scaled = jnp.log1p(counts)
        return counts, scaled / jnp.linalg.norm(scaled)

    return run, (draw.integers(5000, n),)


@program((100, 5), (10000, 12), (500000, 12))
def rolling_hash(draw: Draws, n: int, width: int) -> Made:
    """Hashes of all windows by modular prefix sums, and where a pattern occurs."""

    def run(text, pattern):
        prime = jnp.uint32(65521)

        def join(a, b):
            return a[0] * b[0] % prime, (a[1] * b[0] + b[1]) % prime

        base = jnp.full(n, 257, jnp.uint32)
        power, prefix = lax.associative_scan(join, (base, text.astype(jnp.uint32)))
        before = jnp.concatenate([jnp.zeros(1, jnp.uint32), prefix[:-width]])
        windows = (prefix[width - 1 :] + prime - before * power[width - 1] % prime) % prime
        wanted = lax.associative_scan(join, (base[:width], pattern.astype(jnp.uint32)))[1][-1]
        return (windows == wanted).sum(), jnp.argmax(windows == wanted), windows

    text = draw.integers(26, n)
    return run, (text, text[n // 2 : n // 2 + width])


@program((60,), (6000,), (600000,))
def utf8_decoding(draw: Draws, n: int) -> Made:
    """Bytes to code points: lengths from leading bytes, continuation bits, compaction by a prefix sum."""

    def run(data):
        b = data.astype(jnp.int32)
        follow = (b & 0xC0) == 0x80
        size = jnp.where(b < 0x80, 1, jnp.where(b < 0xE0, 2, jnp.where(b < 0xF0, 3, 4)))
        point = jnp.where(size == 1, b, b & (0xFF >> (size + 1)))
        for k in range(1, 4):
            point = jnp.where(k < size, (point << 6) | (jnp.roll(b, -k) & 0x3F), point)
        place = jnp.where(follow, n, jnp.cumsum(~follow) - 1)
        return jnp.zeros(n, jnp.int32).at[place].set(point, mode="drop"), (~follow).sum()

    text = "".join(chr(c) for c in draw.rng.choice([65, 233, 8364, 128512, 98], n))
    return run, (jnp.frombuffer(text.encode()[:n], "uint8"),)


@program((60,), (6000,), (600000,))
def base64_coding(draw: Draws, n: int) -> Made:
    """Three bytes to four letters through a table, and back."""
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

    def run(data):
        table = jnp.frombuffer(letters, "uint8")
        back = jnp.zeros(256, jnp.uint8).at[table].set(jnp.arange(64, dtype=jnp.uint8))
        a, b, c = data.reshape(-1, 3).T
        parts = [a >> 2, ((a & 3) << 4) | (b >> 4), ((b & 15) << 2) | (c >> 6), c & 63]
        text = table[jnp.stack(parts, 1)]
        w, x, y, z = back[text].T
        return text.reshape(-1), jnp.stack([(w << 2) | (x >> 4), (x << 4) | (y >> 2), (y << 6) | z], 1).reshape(-1)

    return run, (draw.integers(256, n).astype("uint8"),)


@program((50,), (5000,), (500000,))
def run_lengths(draw: Draws, n: int) -> Made:
    """Runs of equal values: their starts, values and lengths, and the array rebuilt from them."""

    def run(x):
        starts = jnp.concatenate([jnp.ones(1, bool), x[1:] != x[:-1]])
        group = jnp.cumsum(starts) - 1
        length = jnp.zeros(n, jnp.int32).at[group].add(1)
        value = jnp.zeros(n, x.dtype).at[group].set(x)
        return value, length, jnp.repeat(value, length, total_repeat_length=n)

    return run, (draw.integers(3, n) // 2,)


@program((20,), (500,), (20000,))
def suffix_order(draw: Draws, n: int) -> Made:
    """Suffixes in order, by ranks of prefixes of doubled length."""

    def run(text):
        def double(k, rank):
            step = 2**k
            after = jnp.where(jnp.arange(n) + step < n, jnp.roll(rank, -step), -1)
            order = jnp.lexsort((after, rank))
            a, b = rank[order], after[order]
            new = jnp.cumsum(jnp.concatenate([jnp.zeros(1, int), (a[1:] != a[:-1]) | (b[1:] != b[:-1])]))
            return jnp.zeros(n, rank.dtype).at[order].set(new.astype(rank.dtype))

        return jnp.argsort(lax.fori_loop(0, (n - 1).bit_length(), double, text))

    return run, (draw.integers(4, n),)


@program((10, 4), (200, 16), (2000, 64))
def best_path_decoding(draw: Draws, length: int, tags: int) -> Made:
    """The best sequence of tags: a max-plus scan with back pointers, followed in reverse."""

    def run(scores, moves):
        def step(best, score):
            total = best[:, None] + moves
            return total.max(0) + score, total.argmax(0)

        best, pointers = lax.scan(step, scores[0], scores[1:])
        last = best.argmax()
        return best.max(), lax.scan(lambda tag, pointer: (pointer[tag], tag), last, pointers, reverse=True)

    return run, (draw.normal(length, tags), draw.normal(tags, tags))


@program((2, 50), (16, 5000), (64, 50000))
def nucleus_sampling(draw: Draws, batch: int, words: int) -> Made:
    """A token drawn from the likeliest words that hold nine tenths, with penalties of words seen."""

    def run(seed, logits, seen):
        logits = logits / 0.8 - 0.5 * jax.nn.one_hot(seen, words).sum(1)
        order = jnp.argsort(-logits)
        ranked = jnp.take_along_axis(logits, order, 1)
        p = jax.nn.softmax(ranked)
        ranked = jnp.where(jnp.cumsum(p, 1) - p < 0.9, ranked, -jnp.inf)
        pick = jax.random.categorical(jax.random.wrap_key_data(seed), ranked)
        return jnp.take_along_axis(order, pick[:, None], 1)[:, 0]

    return run, (
        draw.rng.integers(0, 2**32, 2).astype("uint32"),
        draw.normal(batch, words, scale=3.0),
        draw.integers(words, batch, 8),
    )


@program((2, 9, 7), (8, 80, 60), (32, 200, 150))
def affine_gap_alignment(draw: Draws, batch: int, n: int, m: int) -> Made:
    """Local alignment with costs for opening and extending gaps, and the way back from the best cell."""

    def one(a, b):
        score = jnp.where(a[:, None] == b[None], 2.0, -1.0)
        place = 0.5 * jnp.arange(m)

        def row(state, s):
            best, gap = state
            gap = jnp.maximum(gap - 0.5, best - 2.0)
            both = jnp.concatenate([jnp.zeros(1), best[:-1]]) + s
            base = jnp.maximum(jnp.maximum(both, gap), 0.0)
            along = lax.cummax(base + place) - place - 1.5
            along = jnp.concatenate([jnp.full(1, -1e9), along[:-1]])
            best = jnp.maximum(base, along)
            return (best, gap), (best, jnp.argmax(jnp.stack([both, gap, along]), 0))

        _, (best, move) = lax.scan(row, (jnp.zeros(m), jnp.full(m, -1e9)), score)
        end = jnp.argmax(best)

        def back(state):
            i, j, count, path = state
            step = move[i, j]
            return i - (step != 2), j - (step != 1), count + 1, path.at[count].set(i * m + j)

        def inside(state):
            i, j, count, _ = state
            return (i >= 0) & (j >= 0) & (count < n + m) & (best[i, j] > 0)

        start = (end // m, end % m, 0, jnp.full(n + m, -1))
        return best.max(), lax.while_loop(inside, back, start)[2:]

    return jax.vmap(one), (draw.integers(4, batch, n), draw.integers(4, batch, m))
