"""Reductions by functions whose sides may not change places: elements are combined in their order."""

from __future__ import annotations

import numpy as np
import pytest

from heron.analysis.fusion.reduce_order import in_any_order, position_of
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.text import parse

TWO = "a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)"
LARGER = "t = pred[] compare(a, b), direction=GE v = f32[] select(t, a, b) w = s32[] select(t, i, j)"
#: reducers of one array and of two; of each whether any order is right, given numbers that count and others
ONE_ARRAY = {
    "z = f32[] constant(0) t = pred[] compare(b, z), direction=NE ROOT r = f32[] select(t, b, a)": False,  # the last
    "z = f32[] constant(0) t = pred[] compare(a, z), direction=NE ROOT r = f32[] select(t, a, b)": False,  # the first
    "ROOT r = f32[] copy(a)": False,
    "ROOT r = f32[] subtract(a, b)": False,
    "ROOT r = f32[] add(b, a)": True,
    "c = f32[] multiply(a, a) d = f32[] multiply(b, b) ROOT r = f32[] add(c, d)": True,  # sides alike
    "c = f32[] multiply(a, a) d = f32[] multiply(b, a) ROOT r = f32[] add(c, d)": False,
    "t = pred[] compare(a, b), direction=GE ROOT r = f32[] select(t, a, b)": False,  # by its form
}
TWO_ARRAYS = {
    f"{LARGER} ROOT r = (f32[], s32[]) tuple(v, w)": (True, False),
    f"{LARGER} x = f32[] maximum(a, b) ROOT r = (f32[], s32[]) tuple(x, w)": (True, False),
    f"{LARGER} x = f32[] subtract(a, b) ROOT r = (f32[], s32[]) tuple(x, w)": (False, False),
    f"{LARGER} e = pred[] compare(i, j), direction=LT p = pred[] and(t, e) x = s32[] select(p, i, j) "
    "ROOT r = (f32[], s32[]) tuple(v, x)": (True, False),
    f"{LARGER} s = pred[] compare(a, b), direction=EQ e = pred[] compare(i, j), direction=LT p = pred[] and(s, e) "
    "g = pred[] compare(a, b), direction=GT o = pred[] or(g, p) x = s32[] select(o, i, j) "
    "ROOT r = (f32[], s32[]) tuple(v, x)": (True, True),
    "t = pred[] compare(i, j), direction=GE v = f32[] select(t, a, b) w = s32[] select(t, i, j) "
    "ROOT r = (f32[], s32[]) tuple(v, w)": (True, False),  # numbers that do not count are keys
    "x = f32[] multiply(a, b) y = s32[] multiply(i, j) z = s32[] add(y, j) ROOT r = (f32[], s32[]) tuple(x, z)": (
        False,
        False,
    ),
    "x = f32[] multiply(a, b) y = s32[] add(i, j) ROOT r = (f32[], s32[]) tuple(x, y)": (True, True),
}


def one(body: str, shape: str, dims: str, kept: str) -> str:
    return f"""HloModule m
f {{ a = f32[] parameter(0) b = f32[] parameter(1) {body} }}
ENTRY e {{ x = f32[{shape}] parameter(0) z = f32[] constant(0)
  ROOT r = f32[{kept}] reduce(x, z), dimensions={{{dims}}}, to_apply=f }}"""


def two(body: str, counts: bool, n: int = 300) -> str:
    numbers = f"n = s32[2,{n}] " + ("iota(), iota_dimension=1" if counts else "copy(k)")
    return f"""HloModule m
f {{ {TWO} {body} }}
ENTRY e {{ x = f32[2,{n}] parameter(0) k = s32[2,{n}] parameter(1) {numbers}
  low = f32[] constant(-1) zero = s32[] constant(0)
  ROOT r = (f32[2], s32[2]) reduce(x, n, low, zero), dimensions={{1}}, to_apply=f }}"""


@pytest.mark.parametrize("body", ONE_ARRAY)
def test_which_functions_of_one_array_take_any_order(body: str) -> None:
    assert in_any_order(parse(one(body, "300", "0", "")).entry.root) is ONE_ARRAY[body]


@pytest.mark.parametrize("body", TWO_ARRAYS)
@pytest.mark.parametrize("counts", [True, False])
def test_which_functions_of_two_arrays_take_any_order(body: str, counts: bool) -> None:
    root = parse(two(body, counts)).entry.root
    assert in_any_order(root) is TWO_ARRAYS[body][not counts]
    assert position_of(root) in (None, 1)


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize(
    ("shape", "dims", "kept"),
    [("300", "0", ""), ("3,200", "1", "3"), ("150,5", "0", "5"), ("20,30", "0,1", ""), ("6,7,30", "0,2", "7")],
)
def test_elements_keep_their_order(target: str, shape: str, dims: str, kept: str) -> None:
    rng = np.random.default_rng(5)
    sizes = [int(n) for n in shape.split(",")]
    x = (rng.integers(1, 99, sizes) * (rng.random(sizes) < 0.3)).astype(np.float32)
    for body in list(ONE_ARRAY)[:3]:
        module = parse(one(body, shape, dims, kept))
        assert np.array_equal(compile(module, target)(x), evaluate(module, x)[0])


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("counts", [True, False])
def test_pairs_keep_their_order(target: str, counts: bool) -> None:
    rng = np.random.default_rng(6)
    x, k = rng.integers(0, 4, (2, 300)).astype(np.float32), rng.integers(0, 99, (2, 300)).astype(np.int32)
    for body in [b for b in TWO_ARRAYS if "subtract" not in b][:3]:  # a difference cannot be grouped
        module = parse(two(body, counts))
        for found, wanted in zip(compile(module, target).run([x, k]), evaluate(module, x, k), strict=True):
            assert np.array_equal(found, wanted), body


FIRST = "z = s32[] constant(0) t = pred[] compare(a, z), direction=NE ROOT r = s32[] select(t, a, b)"
ACROSS = {
    "reduce of columns": "y = s32[30,20] transpose(x), dimensions={1,0} ROOT r = s32[] reduce(y, z), dimensions={0,1}, to_apply=f",
    "reduce in another order": "ROOT r = s32[] reduce(x, z), dimensions={1,0}, to_apply=f",
    "windows of columns": "y = s32[30,20] transpose(x), dimensions={1,0} ROOT r = s32[26,18] reduce-window(y, z), window={size=5x3}, to_apply=f",
}


@pytest.mark.parametrize("target", ["eval", "cpu", "sim:sm_90"])
@pytest.mark.parametrize("name", ACROSS)
def test_the_order_is_that_of_indices_not_of_memory(target: str, name: str) -> None:
    """The first number that is not 0; every number is its own place."""
    module = parse(f"""HloModule m
f {{ a = s32[] parameter(0) b = s32[] parameter(1) {FIRST} }}
ENTRY e {{ x = s32[20,30] parameter(0) z = s32[] constant(0) {ACROSS[name]} }}""")
    x = (np.arange(600) * (np.random.default_rng(7).random(600) < 0.1)).astype(np.int32).reshape(20, 30)
    y = x if "another" in name else x.T
    flat = np.lib.stride_tricks.sliding_window_view(y, (5, 3) if "window" in name else y.shape)
    flat = flat.reshape(*flat.shape[:2], -1)
    wanted = np.take_along_axis(flat, (flat != 0).argmax(-1)[..., None], -1)[..., 0]
    (found,) = evaluate(module, x) if target == "eval" else compile(module, target).run([x])
    assert np.array_equal(found, wanted.reshape(found.shape))


@pytest.mark.parametrize(
    ("made", "kept"),
    [
        ("y = f32[200,3] copy(x) q = f32[3] reduce(y, z), dimensions={0}, to_apply=f", "3"),
        ("y = f32[60,10] reshape(x) q = f32[10] reduce(y, z), dimensions={0}, to_apply=f", "10"),
        ("y = f32[15,40] reshape(x) q = f32[40] reduce(y, z), dimensions={0}, to_apply=f", "40"),
        ("y = f32[2,20,15] reshape(x) q = f32[2,15] reduce(y, z), dimensions={1}, to_apply=f", "2,15"),
        ("w = f32[4,15,10] reshape(x) y = f32[15,4,10] transpose(w), dimensions={1,0,2} "
         "q = f32[10] reduce(y, z), dimensions={0,1}, to_apply=f", "10"),
    ],
)  # fmt: skip
def test_columns_are_combined_row_by_row(made: str, kept: str) -> None:
    """Neighbouring results at once, whatever the function, and what the elements are made of beside them."""
    x = np.random.default_rng(8).integers(1, 99, (200, 3)).astype(np.float32)
    x *= np.random.default_rng(9).random(x.shape) < 0.2
    for body in list(ONE_ARRAY)[:3]:
        module = parse(f"""HloModule m
f {{ a = f32[] parameter(0) b = f32[] parameter(1) {body} }}
ENTRY e {{ x = f32[200,3] parameter(0) z = f32[] constant(0) {made}
  p = f32[{kept}] negate(q) ROOT r = (f32[{kept}], f32[{kept}]) tuple(p, q) }}""")
        program = compile(module, "cpu")
        for found, wanted in zip(program.run([x]), evaluate(module, x), strict=True):
            assert np.array_equal(found, wanted), body
        assert [k.emitter for k in program.trace.kernels] == ["reduce"]


@pytest.mark.parametrize("rows", [65536, 65537])
def test_long_columns_in_order(rows: int) -> None:
    module = parse(one(next(iter(ONE_ARRAY)), f"{rows},3", "0", "3"))
    x = np.random.default_rng(10).integers(-9, 2, (rows, 3)).astype(np.float32)
    assert np.array_equal(compile(module, "cpu")(x), x[[np.flatnonzero(c)[-1] for c in x.T], range(3)])
