"""Intervals of elements that devices have and want, as pieces, and pieces as rounds of permutes."""

from __future__ import annotations

import itertools
import random
from math import prod

import numpy as np
import pytest

from heron.passes.sharding.partition.moves import (
    Piece,
    Round,
    Span,
    joint,
    line,
    own_pieces,
    pieces,
    retiled,
    rounds,
    sent,
    tiles,
    transfer,
    windows,
)


def _random_case(rng: random.Random) -> tuple[int, int, list[Span], int]:
    count, size = rng.randint(1, 8), rng.randint(1, 40)
    start, step, wide = rng.randint(-6, 10), rng.randint(0, 9), rng.randint(1, 12)
    want = [Span(k, start + k * step, start + k * step + wide) for k in range(count)]
    return count, size, want, wide


def _brought(way: tuple[Round, ...], shares: list[list[int]], count: int, wide: int) -> list[list[int | None]]:
    """What the devices have after all rounds, where each round sends as much as its largest piece."""
    got: list[list[int | None]] = [[None] * wide for _ in range(count)]
    for r in way:
        assert len({p.source for p in r.pieces}) == len({p.target for p in r.pieces}) == len(r.pieces)
        for p in r.pieces:
            assert p.size <= r.size
            got[p.target][p.write : p.write + p.size] = shares[p.source][p.read : p.read + p.size]
    return got


@pytest.mark.parametrize("seed", range(200))
def test_every_wanted_element_arrives(seed: int) -> None:
    count, size, want, wide = _random_case(random.Random(seed))
    have = tiles(size, count)
    tile = -(-size // count)
    shares = [[k * tile + n if k * tile + n < size else -1 for n in range(tile)] for k in range(count)]
    way = rounds(pieces(have, [w.clipped(0, size) for w in want]))
    expected = [[g if 0 <= g < size else None for g in range(w.start, w.limit)] for w in want]
    assert _brought(way, shares, count, wide) == expected
    assert sent(way) == sum(r.size for r in way if any(p.source != p.target for p in r.pieces))


def test_tiles_behind_the_end_are_empty() -> None:
    assert tiles(5, 4)[:3] == [Span(0, 0, 2), Span(1, 2, 4), Span(2, 4, 5)]
    assert [s.limit - s.start for s in tiles(5, 4)] == [2, 2, 1, 0]
    assert [s.limit - s.start for s in tiles(2, 4)] == [1, 1, 0, 0]


def test_a_halo_is_one_round_for_each_side() -> None:
    have = tiles(16, 4)
    way = rounds(pieces(have, [Span(k, 4 * k - 1, 4 * k + 6).clipped(0, 16) for k in range(4)]))
    assert [(r.stays, r.size) for r in way] == [(True, 4), (False, 2), (False, 1)]


def test_a_halo_of_several_tiles_takes_only_the_rows_it_needs() -> None:
    way = rounds(pieces(tiles(16, 8), [Span(k, 2 * k - 3, 2 * k + 2).clipped(0, 16) for k in range(8)]))
    assert sent(way) == 3


def test_tiles_of_another_size_need_as_many_rounds_as_a_tile_has_neighbours() -> None:
    """Half an array over 1,024 devices: distances up to 512, but no device sends or gets more than two pieces."""
    way = rounds(pieces(tiles(4096, 1024), [Span(k, 2 * k, 2 * k + 2) for k in range(1024)]))
    assert len([r for r in way if not r.stays]) <= 3
    assert sent(way) <= 4


def test_windows_over_most_of_the_array_cost_no_more_than_a_gather() -> None:
    assert transfer(16, 4, windows(4, 0, 0, 16)) == 12
    assert transfer(16, 4, windows(4, -1, 4, 6)) == 2


def test_first_fit_sends_less_than_a_round_for_each_distance() -> None:
    """Tiles of 4 become windows of 7 that move by 3, as in a convolution without padding."""
    way = rounds(pieces(tiles(16, 4), [Span(k, 3 * k, 3 * k + 7).clipped(0, 16) for k in range(4)]))
    assert sent(way) == 5


def test_what_is_whole_comes_from_the_device_itself() -> None:
    found = own_pieces([Span(k, 0, 10) for k in range(3)], [Span(k, 4 * k, 4 * k + 4).clipped(0, 10) for k in range(3)])
    assert found == [Piece(0, 0, 0, 0, 4), Piece(1, 1, 4, 0, 4), Piece(2, 2, 8, 0, 2)]


@pytest.mark.parametrize(
    ("values", "low", "high", "found"),
    [
        ([3, 5, 7], None, None, (3, 2)),
        ([3, None, 7, None], None, None, (3, 2)),
        ([3, 5, 8], None, None, None),
        ([4, 4, 4], None, None, (4, 0)),
        ([None, None], None, None, (0, 0)),
        ([2, 0, 0, 0], 0, None, (2, -2)),
        ([5, 5, 4, 1], None, 5, (10, -3)),
        ([5, 5, 5, 4], None, 5, (19, -5)),
        ([1, 0, 1, 0], 0, None, None),
    ],
)
def test_line(values: list[int | None], low: int | None, high: int | None, found: tuple[int, int] | None) -> None:
    assert line(values, low, high) == found


def test_tiles_along_other_atoms() -> None:
    """Each device gets its tile from devices that differ in the old atoms alone."""
    parts, values = (2, 2, 3), np.arange(7)
    for old, new in itertools.product(((0,), (0, 1), (2, 0), (1, 0)), ((0,), (1,), (0, 2), (1, 2, 0))):
        axes = joint(old, new)
        places = [dict(zip(axes, at, strict=True)) for at in np.ndindex(*(parts[a] for a in axes))]

        def number(at: dict[int, int], atoms: tuple[int, ...]) -> int:
            return int(np.ravel_multi_index([at[a] for a in atoms], [parts[a] for a in atoms]))

        tile, goal = (-(-7 // prod(parts[a] for a in atoms)) for atoms in (old, new))
        have = [np.resize(values[number(at, old) * tile :][:tile], tile) for at in places]
        found = [np.full(goal, -1) for _ in places]
        for p in retiled(7, tile, old, new, parts, goal):
            assert all(places[p.source][a] == places[p.target][a] for a in new if a not in old)
            found[p.target][p.write : p.write + p.size] = have[p.source][p.read : p.read + p.size]
        for at, got in zip(places, found, strict=True):
            wanted = values[number(at, new) * goal :][:goal]
            assert (got[: len(wanted)] == wanted).all(), (old, new, at)
