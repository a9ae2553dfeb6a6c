"""Many random maps, simplified and turned round: ``python -m tests.analysis.indexing.sweep --count 100000``.

The properties are those of the tests beside it, on plain random numbers, which are cheap enough for long runs. What
fails is printed as text that `parse_map` reads.
"""

from __future__ import annotations

import argparse
import random
import sys

import numpy as np

from heron.analysis.indexing import Const, Expr, IndexingMap, format_map, parse_map
from heron.analysis.indexing.constraints import simplify_map
from heron.analysis.indexing.inverse import inverse, transposed

from .points import points
from .strategies import DIVISORS, FACTORS, VARIABLES, grid, inside


def expression(r: random.Random, depth: int) -> Expr:
    """A random expression of this depth at most."""
    if depth == 0 or r.random() < 0.15:
        return r.choice([*VARIABLES, Const(r.randint(-7, 9))])
    kind = r.random()
    if kind < 0.4:
        return expression(r, depth - 1) + expression(r, depth - 1)
    if kind < 0.6:
        return expression(r, depth - 1) * r.choice(FACTORS)
    c, x = r.choice(DIVISORS), expression(r, depth - 1)
    if kind < 0.7:
        return x * r.choice(FACTORS) - x // c * (c * r.choice(FACTORS)) + expression(r, depth - 1)
    return x // c if kind < 0.85 else x % c


def random_map(r: random.Random) -> IndexingMap:
    """Two results over `(d0, d1)[s0]`, up to three constraints."""
    constraints = []
    for _ in range(r.randint(0, 3)):
        e, lo = expression(r, r.randint(1, 3)), r.randint(-5, 9)
        e = e if r.random() < 0.6 else e % r.choice(DIVISORS)
        constraints.append((e, lo, lo + r.choice((0, 0, 1, 5, 20))))
    dims = [(lo := r.randint(-3, 3), lo + r.randint(0, 8)) for _ in range(2)]
    return IndexingMap([expression(r, 3), expression(r, 2)], dims, [(0, r.randint(0, 5))], constraints)


def wrong_about(m: IndexingMap, keep_dims: bool) -> str | None:
    """What is wrong with the simplified map, or with the ways back; None when nothing is."""
    dims, syms = grid(m)
    holds = inside(m, dims, syms)
    s = m.simplify(keep_dims)
    if parse_map(format_map(s)) != s or simplify_map.__wrapped__(s, keep_dims) != s:
        return "not stable"
    if s.is_known_empty:
        return "not empty" if holds.any() else None
    if not np.array_equal(inside(s, dims, syms), holds):
        return "other points"
    for before, after, (lo, hi) in zip(m.results, s.results, s.result_ranges, strict=True):
        old = np.broadcast_to(before.evaluate(dims, syms), holds.shape)[holds]
        new = np.broadcast_to(after.evaluate(dims, syms), holds.shape)[holds]
        if not np.array_equal(old, new) or (holds.any() and (new.min() < lo or new.max() > hi)):
            return "other values"
    forward = _pairs(m)
    back = inverse(m)
    if back is not None and _pairs(back) != {(b, a) for a, b in forward}:
        return f"inverse is {back}"
    if any(lo < 0 for lo, _ in m.result_ranges):
        return None
    turned = transposed(m, [hi + 1 for _, hi in m.result_ranges])
    if {(x[:2], d) for x, d in _pairs(turned)} != {(b, a[:2]) for a, b in forward}:
        return f"turned round it is {turned}"
    return None


def _pairs(m: IndexingMap) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every (point, result); a point is dimensions, then symbols."""
    dims, syms = points(m)
    values = [*dims, *syms]
    size = len(values[0])
    results = [np.broadcast_to(e.evaluate(dims, syms), size) for e in m.results]
    return {(tuple(int(v[k]) for v in values), tuple(int(v[k]) for v in results)) for k in range(size)}


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=10_000, help="maps to try")
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    r = random.Random(a.seed)
    failed = 0
    for _ in range(a.count):
        m = random_map(r)
        what = wrong_about(m, keep_dims=r.random() < 0.3)
        if what is not None:
            failed += 1
            print(f"{what}: {format_map(m)}")
    print(f"{a.count} maps, {failed} wrong")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
