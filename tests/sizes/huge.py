"""Arrays of more than 2^31 bytes, and of more than 2^31 elements: few elements are set, and few are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import heron
from tests.sizes.case import Case, program, reducer, shape
from tests.sizes.run import Outcome

#: above 2^31 by an odd number
_MANY = (1 << 31) + 77
_SIDES = (46_349, 46_351)


@dataclass(frozen=True)
class Huge(Case):
    """A case whose result is checked by a function of the result and the inputs; it says what is wrong, or ''."""

    check: Callable[..., str] = lambda *_: ""


def cases() -> Iterator[Huge]:
    """Every case. Inputs take 2 to 4 GiB, results as much."""
    line = shape("s8", (_MANY,))
    yield Huge(
        "negate",
        "s8",
        program([line], line, "negate(p0)"),
        _one(_marked),
        check=lambda r, a: _compared(r, -a[_PLACES], _PLACES),
    )
    yield Huge(
        "reverse",
        "s8",
        program([line], line, "reverse(p0), dimensions={0}"),
        _one(_marked),
        check=lambda r, a: _compared(r, a[_PLACES], _MANY - 1 - _PLACES),
    )
    whole = f"HloModule m\n{reducer('add', 's32')}\nENTRY e {{\np0 = {line} parameter(0)\nc = s32[{_MANY}]{{0}} convert(p0)\nz = s32[] constant(0)\nROOT r = s32[] reduce(c, z), dimensions={{0}}, to_apply=f\n}}\n"
    yield Huge(
        "reduce",
        "s8 to a scalar",
        whole,
        _one(_marked),
        check=lambda r, a: "" if int(r) == int(a[_PLACES].astype(int).sum()) else f"{r}",
    )
    rows = shape("s8", _SIDES)
    turned = shape("s8", _SIDES[::-1])
    yield Huge(
        "transpose",
        "s8",
        program([rows], turned, "transpose(p0), dimensions={1,0}"),
        _one(_marked_rows),
        check=_transposed,
    )
    end = f"slice(p0), slice={{[{_MANY - 5}:{_MANY}]}}"
    yield Huge(
        "slice",
        "the end",
        program([line], shape("s8", (5,)), end),
        _one(_marked),
        check=lambda r, a: _compared(r, a[-5:], np.arange(5)),
    )
    yield Huge(
        "dynamic-slice",
        "the end",
        program([line, "s64[]"], shape("s8", (5,)), "dynamic-slice(p0, p1), dynamic_slice_sizes={5}"),
        lambda rng: [_marked(rng), np.asarray(_MANY - 5)],
        check=lambda r, a, i: _compared(r, a[-5:], np.arange(5)),
    )
    yield Huge(
        "concatenate",
        "behind 2^31",
        program([line, shape("s8", (9,))], shape("s8", (_MANY + 9,)), "concatenate(p0, p1), dimensions={0}"),
        lambda rng: [_marked(rng), np.arange(1, 10, dtype=np.int8)],
        check=lambda r, a, b: _compared(r, a[_PLACES], _PLACES) or _compared(r, b, _MANY + np.arange(9)),
    )
    yield Huge(
        "gather",
        "behind 2^31",
        program(
            [line, shape("s64", (64, 1))],
            shape("s8", (64,)),
            "gather(p0, p1), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
        ),
        lambda rng: [_marked(rng), _PLACES[:64, None]],
        check=lambda r, a, i: _compared(r, a[_PLACES[:64]], np.arange(64)),
    )
    f32 = shape("f32", ((1 << 29) + 77,))
    yield Huge(
        "multiply",
        "f32",
        program([f32, f32], f32, "multiply(p0, p1)"),
        lambda rng: [_floats(rng)] * 2,
        check=lambda r, a, b: _compared(r, a[_FLOATS] ** 2, _FLOATS),
    )
    matrix, vector = shape("f32", (23_171, 23_173)), shape("f32", (23_173,))
    yield Huge(
        "dot",
        "matrix by vector",
        program(
            [matrix, vector], shape("f32", (23_171,)), "dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
        ),
        _matrix,
        check=lambda r, a, b: _compared(r, a.sum(1) * 2, np.arange(23_171)),
    )
    yield Huge(
        "iota",
        "s8 broadcast to 2^31",
        f"HloModule m\nENTRY e {{\nz = s8[] parameter(0)\nROOT b = {line} broadcast(z), dimensions={{}}\n}}\n",
        lambda rng: [np.asarray(7, np.int8)],
        check=lambda r, z: _compared(r, np.full(len(_PLACES), 7), _PLACES),
    )


#: where arrays are set and looked at: both ends, around 2^31, and between
_PLACES = np.unique(
    np.concatenate(
        [np.arange(40), _MANY - 1 - np.arange(80), (1 << 31) + np.arange(-40, 40), np.arange(1, 99) * 21_474_837]
    )
)
_FLOATS = np.unique(np.concatenate([np.arange(40), (1 << 29) + 76 - np.arange(80), np.arange(1, 99) * 5_368_709]))


def run(case: Case) -> list[Outcome]:
    """The case on the CPU."""
    assert isinstance(case, Huge)
    inputs = case.inputs(np.random.default_rng(0))
    try:
        result = heron.compile(heron.parse(case.text), "cpu")(*inputs)
    except heron.HeronError as error:
        return [Outcome("cpu", "refused", str(error).splitlines()[0])]
    words = case.check(np.asarray(result), *inputs)
    return [Outcome("cpu", "differs" if words else "ok", words)]


def _one(draw: Callable[[np.random.Generator], np.ndarray]) -> Callable[[np.random.Generator], list[np.ndarray]]:
    return lambda rng: [draw(rng)]


def _marked(rng: np.random.Generator) -> np.ndarray:
    a = np.zeros(_MANY, np.int8)
    a[_PLACES] = rng.integers(-100, 100, len(_PLACES))
    return a


def _marked_rows(rng: np.random.Generator) -> np.ndarray:
    a = np.zeros(_SIDES, np.int8)
    a.reshape(-1)[_PLACES] = rng.integers(-100, 100, len(_PLACES))
    return a


def _floats(rng: np.random.Generator) -> np.ndarray:
    a = np.zeros((1 << 29) + 77, np.float32)
    a[_FLOATS] = rng.integers(-100, 100, len(_FLOATS))
    return a


def _matrix(rng: np.random.Generator) -> list[np.ndarray]:
    a = np.zeros((23_171, 23_173), np.float32)
    a.reshape(-1)[_FLOATS[_FLOATS < a.size]] = rng.integers(-100, 100, int((_FLOATS < a.size).sum()))
    return [a, np.full(23_173, 2, np.float32)]


def _transposed(r: np.ndarray, a: np.ndarray) -> str:
    i, j = np.divmod(_PLACES, _SIDES[1])
    found = r[j, i] == a[i, j]
    total = int(np.count_nonzero(r)) == int(np.count_nonzero(a))
    return "" if found.all() and total else f"{int((~found).sum())} of {len(found)} elements looked at differ"


def _compared(result: np.ndarray, wanted: np.ndarray, places: np.ndarray) -> str:
    found = result[places]
    wrong = np.flatnonzero(found != wanted)
    return f"at {places[wrong[0]]}: {found[wrong[0]]} instead of {wanted[wrong[0]]}" if len(wrong) else ""
