"""Long sums on the CPU keep their digits: within a few roundings for each doubling of the length."""

from __future__ import annotations

from math import log2, prod

import numpy as np
import pytest

import heron
from heron.codegen.emitters.partial_sums import FAN, cuts
from heron.compiling import compile

EPS = {"f32": 2.0**-24, "c64": 2.0**-24, "bf16": 2.0**-9, "f64": 2.0**-53}


def _sum(t: str, dims: tuple[int, ...], reduced: tuple[int, ...], value: str = "broadcast(p), dimensions={}") -> str:
    of = ",".join(map(str, dims))
    left = ",".join(str(n) for d, n in enumerate(dims) if d not in reduced)
    zero = "(0, 0)" if t == "c64" else "0"
    return f"""HloModule m
add {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT s = {t}[] add(a, b)
}}
ENTRY main {{
  p = {t}[] parameter(0)
  x = {t}[{of}] {value}
  zero = {t}[] constant({zero})
  ROOT r = {t}[{left}] reduce(x, zero), dimensions={{{",".join(map(str, reduced))}}}, to_apply=add
}}"""


def _off(t: str, dims: tuple[int, ...], reduced: tuple[int, ...], value: float) -> float:
    """By how many units in the last place of its type the sum of equal values is off, for each doubling of them."""
    module = heron.parse(_sum(t, dims, reduced))
    dtype = module.entry.parameters[0].shape.element_type.dtype
    x = np.array(value).astype(dtype)
    found = compile(module, "cpu").run([x])[0].astype(np.complex128)
    count = prod(dims[d] for d in reduced)
    wanted = complex(x) * count
    return float(np.max(np.abs(found - wanted)) / abs(wanted) / EPS[t] / log2(count))


@pytest.mark.parametrize("value", [1.0, 0.7, 1 / 3])
@pytest.mark.parametrize(
    ("dims", "reduced"),
    [
        ((1 << 20,), (0,)),
        ((1 << 26,), (0,)),
        ((32, 999, 40, 512), (0, 1, 2, 3)),
        ((2, (1 << 22) + 5), (1,)),
        ((64, 1_000_003), (1,)),
        ((3, 700, 5, 400), (1, 3)),
        ((65536, 128), (0,)),
        ((20011, 70), (0,)),
        ((1 << 20, 3), (0,)),
        ((5000, 64, 50), (0, 2)),
    ],
)
def test_sums_of_equal_values(dims: tuple[int, ...], reduced: tuple[int, ...], value: float) -> None:
    assert _off("f32", dims, reduced, value) < 8


@pytest.mark.parametrize("t", ["bf16", "c64", "f64"])
@pytest.mark.parametrize(("dims", "reduced"), [((1 << 22,), (0,)), ((40000, 70), (0,))])
def test_other_types(t: str, dims: tuple[int, ...], reduced: tuple[int, ...]) -> None:
    assert _off(t, dims, reduced, 0.7) < 8


def test_values_in_memory() -> None:
    random = np.random.default_rng(1)
    for dims, reduced in (((1 << 21,), (0,)), ((30000, 64), (0,)), ((64, 30000), (1,))):
        x = random.random(dims, np.float32)
        text = _sum("f32", dims, reduced, "parameter(1)")
        found = compile(heron.parse(text), "cpu").run([np.float32(0), x])[0]
        wanted = x.astype(np.float64).sum(reduced)
        assert np.max(np.abs(found - wanted) / wanted) < 20 * EPS["f32"]


def test_rows_that_are_normalised() -> None:
    """A kernel by rows sums them in parts too."""
    n = 1 << 20
    text = _sum("f32", (1, n), (1,), "parameter(1)").replace("ROOT r", "r")[:-1] + (
        f"  s = f32[1,{n}] broadcast(r), dimensions={{0}}\n  ROOT d = f32[1,{n}] divide(x, s)\n}}"
    )
    found = compile(heron.parse(text), "cpu").run([np.float32(0), np.full((1, n), 0.7, np.float32)])[0]
    np.testing.assert_allclose(found, 1 / n, rtol=40 * EPS["f32"])


@pytest.mark.parametrize(("dims", "along"), [((1 << 20,), 0), ((3, 100_003), 1), ((20_000, 20), 0)])
def test_running_sums(dims: tuple[int, ...], along: int) -> None:
    n = dims[along]
    window = "x".join(str(n) if d == along else "1" for d in range(len(dims)))
    pad = "x".join(f"{n - 1}_0" if d == along else "0_0" for d in range(len(dims)))
    whole = _sum("f32", dims, (along,), "parameter(1)")
    of = ",".join(map(str, dims))
    text = whole[: whole.index("  ROOT r =")] + (
        f"  ROOT r = f32[{of}] reduce-window(x, zero), window={{size={window} pad={pad}}}, to_apply=add\n}}"
    )
    x = np.full(dims, 0.7, np.float32)
    found = compile(heron.parse(text), "cpu").run([np.float32(0), x])[0]
    wanted = np.cumsum(x.astype(np.float64), along)
    assert np.max(np.abs(found - wanted) / wanted) < 20 * log2(n) * EPS["f32"]


@pytest.mark.parametrize("places", [1, 5, 300, 4096])
@pytest.mark.parametrize("n", [64, 65, 130, 4099, 8193, 10007, 552_960, 1_000_003, 1 << 24, (1 << 24) - 3])
def test_cuts(n: int, places: int) -> None:
    """All of it once, no chain longer than the fan, blocks of about the length asked for."""
    if n < places:
        return
    (*counts, last), rest = cuts(n, places)
    assert prod(counts) * last + rest == n
    assert max(counts, default=1) <= FAN
    assert last == 1 if places == 1 else last <= 4 * places


#: the combiner of a running value, what it starts from, and the same in f64
RUNNING = {
    "sum": ("ROOT r = f32[] add(a, b)", "0", np.cumsum),
    "log of a sum of exponentials": (
        "h = f32[] maximum(a, b)  l = f32[] minimum(a, b)  d = f32[] subtract(l, h)  e = f32[] exponential(d) "
        "p = f32[] log-plus-one(e)  ROOT r = f32[] add(h, p)",
        "-inf",
        np.logaddexp.accumulate,
    ),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("dims", "d"), [((8192,), 0), ((3, 8191), 1), ((4099, 3), 0), ((2, 4000, 65), 1), ((3, 700), 1)]
)
@pytest.mark.parametrize("name", RUNNING)
def test_running_values(name: str, dims: tuple[int, ...], d: int, reverse: bool) -> None:
    """Every result of a long scan, and the last ones no less than the first, has its digits."""
    combiner, start, accumulate = RUNNING[name]
    of, n, rank = ",".join(map(str, dims)), dims[d], len(dims)
    sizes = "x".join(str(n) if k == d else "1" for k in range(rank))
    pad = f"0_{n - 1}" if reverse else f"{n - 1}_0"
    pads = "x".join(pad if k == d else "0_0" for k in range(rank))
    text = f"""HloModule m
f {{ a = f32[] parameter(0) b = f32[] parameter(1) {combiner} }}
ENTRY e {{ x = f32[{of}] parameter(0) z = f32[] constant({start})
  ROOT o = f32[{of}] reduce-window(x, z), window={{size={sizes} pad={pads}}}, to_apply=f }}"""
    x = np.random.default_rng(2).random(dims, np.float32)
    wide = np.flip(x, d).astype(np.float64) if reverse else x.astype(np.float64)
    wanted = accumulate(wide, d)
    found = compile(heron.parse(text), "cpu").run([x])[0]
    found = np.flip(found, d) if reverse else found
    assert np.max(np.abs(found - wanted) / np.abs(wanted)) < 12 * EPS["f32"]


@pytest.mark.parametrize(
    ("x", "w", "out", "labels", "window"),
    [
        ((2, 6, 6, 300), (3, 3, 300, 24), (2, 6, 6, 24), "b01f_01io->b01f", "size=3x3 pad=1_1x1_1"),
        ((1, 3000, 1), (2001, 1, 4), (1, 3000, 4), "b0f_0io->b0f", "size=2001 pad=1000_1000"),
        # gradients of filters: sums over all positions of all images
        ((4, 900, 33), (4, 900, 21), (3, 33, 21), "f0b_i0o->0bf", "size=900 pad=1_1"),
        ((16, 24, 24, 9), (16, 24, 24, 20), (3, 3, 9, 20), "f01b_i01o->01bf", "size=24x24 pad=1_1x1_1"),
    ],
)
def test_convolutions(x: tuple[int, ...], w: tuple[int, ...], out: tuple[int, ...], labels: str, window: str) -> None:
    """Sums of thousands of products, wherever their loops lie."""
    random = np.random.default_rng(3)
    arrays = [random.random(s, np.float32) for s in (x, w)]

    def text(t: str) -> str:
        given = [f"{t}[{','.join(map(str, s))}]" for s in (x, w, out)]
        return f"""HloModule m
ENTRY e {{
  x = {given[0]} parameter(0)
  w = {given[1]} parameter(1)
  ROOT r = {given[2]} convolution(x, w), window={{{window}}}, dim_labels={labels}
}}"""

    found = compile(heron.parse(text("f32")), "cpu").run(arrays)[0]
    wanted = compile(heron.parse(text("f64")), "cpu").run([a.astype(np.float64) for a in arrays])[0]
    assert np.max(np.abs(found - wanted) / wanted) < 12 * EPS["f32"]
