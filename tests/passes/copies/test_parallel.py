from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from heron.passes.copies.model.parallel_moves import Move, sequence


def run(moves: list[Move], places: dict[str, str]) -> dict[str, str]:
    saved: dict[object, str] = {}
    places = dict(places)
    for move, spill in sequence(moves):
        value = saved.get(move.key, places[move.source])
        if spill:
            saved[move.key] = value
        else:
            places[move.target] = value
    return places


@given(st.permutations("abcde"), st.lists(st.sampled_from("abcde"), min_size=5, max_size=5))
def test_all_read_before_any_writes(targets: list[str], sources: list[str]) -> None:
    start = {p: p.upper() for p in "abcde"}
    moves = [Move(t, s, t) for s, t in zip(sources, targets, strict=True) if s != t]
    wanted = {**start, **{m.target: start[m.source] for m in moves}}
    assert run(moves, start) == wanted


def test_a_move_goes_as_soon_as_nobody_reads_its_target() -> None:
    """The first of those that may, in the order given; a move to its own place is no obstacle to itself."""
    moves = [Move("1", "a", "b"), Move("2", "b", "c"), Move("3", "d", "d"), Move("4", "c", "e"), Move("5", "x", "y")]
    assert [(m.key, spill) for m, spill in sequence(moves)] == [(k, False) for k in "34215"]
    many = [Move(n, n, n + 1) for n in range(20_000)]
    assert [m.key for m, _ in sequence(many)] == list(reversed(range(20_000)))


def test_one_spill_a_ring() -> None:
    rings = [Move("1", "a", "b"), Move("2", "b", "a"), Move("3", "c", "d"), Move("4", "d", "c")]
    assert sum(spill for _, spill in sequence(rings)) == 2
    chain = [Move("1", "a", "b"), Move("2", "b", "c")]
    assert [(m.key, spill) for m, spill in sequence(chain)] == [("2", False), ("1", False)]
    assert all(run([Move("x", s, t)], {s: "S", t: "T"})[t] == "S" for s, t in product("ab", "cd"))
