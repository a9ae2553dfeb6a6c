from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from heron.buffers.heap import Block, Shelf, merged, pack, peak_of


def overlaps(a: Block, b: Block) -> bool:
    in_time = any(s <= e2 and s2 <= e for s, e in a.intervals for s2, e2 in b.intervals)
    return in_time and a.shelf == b.shelf and a.offset < b.offset + b.size and b.offset < a.offset + a.size


@st.composite
def blocks(draw) -> list[Block]:  # noqa: ANN001
    found = []
    for _ in range(draw(st.integers(1, 25))):
        ticks = sorted(draw(st.lists(st.integers(0, 30), min_size=2, max_size=4, unique=True)))
        pairs = list(zip(ticks[::2], ticks[1::2], strict=False))
        found.append(Block(64 * draw(st.integers(1, 9)), pairs))
    return found


@given(blocks(), st.integers(0, 600))
def test_no_overlap_and_never_below_the_peak(given_blocks: list[Block], room: int) -> None:
    shelves = [Shelf(room, [(10, 30)]), Shelf(200, [(0, 12)])]
    size = pack(given_blocks, shelves)
    for n, a in enumerate(given_blocks):
        assert not any(overlaps(a, b) for b in given_blocks[:n])
        if a.shelf >= 0:
            shelf = shelves[a.shelf]
            assert a.offset + a.size <= shelf.size
            assert not any(s <= e2 and s2 <= e for s, e in a.intervals for s2, e2 in shelf.taken)
    assert size >= peak_of([b for b in given_blocks if b.shelf < 0])


def test_holes_in_a_lifetime_are_used() -> None:
    holed, guest = Block(64, [(0, 2), (8, 9)]), Block(64, [(4, 6)])
    assert pack([holed, guest]) == 64 and guest.offset == 0


def test_merged() -> None:
    assert merged([(0, 3, "a"), (3, 5, "b"), (6, 7, "c"), (9, 9, "d")]) == [(0, 7), (9, 9)]


def test_thousands_of_blocks_stay_near_the_peak() -> None:
    rng = Random(1)
    many = []
    for _ in range(7400):
        start = rng.randint(0, 15000)
        many.append(Block(64 * rng.randint(1, 1000), [(start, start + rng.randint(2, 60))]))
    assert pack(many) < 1.3 * peak_of(many)


def test_the_largest_does_not_take_the_shelf_from_what_lives_at_the_peak() -> None:
    given = [Block(128, [(5, 8)]), Block(192, [(2, 3)]), Block(128, [(3, 6)])]
    assert pack(given, [Shelf(192, [(7, 9)])]) == 192


@given(st.lists(st.integers(1, 4), min_size=2, max_size=12))
def test_a_chain_of_values_needs_no_more_than_one_beside_an_output(sizes: list[int]) -> None:
    """Each is made of the one before: by turns they lie in the output, which begins last, and in the arena."""
    chain = [Block(64 * size, [(n, n + 1)]) for n, size in enumerate(sizes)]
    largest = max(b.size for b in chain)
    assert pack(chain, [Shelf(largest, [(len(sizes), len(sizes))])]) <= largest


def test_the_largest_first_is_not_always_best() -> None:
    lives = [(192, 0, 4), (192, 2, 6), (128, 0, 1), (128, 5, 7), (192, 4, 7), (192, 7, 9)]
    given = [Block(size, [(first, last)]) for size, first, last in lives]
    assert pack(given) == peak_of(given) == 576
