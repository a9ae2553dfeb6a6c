"""Normalisations become one kernel a row, with the values they had; what is none stays apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heron
from heron.analysis.fusion.analysis import analyse
from heron.evaluator import evaluate
from heron.hlo.text import parse
from tests.buffers.compiled import run_passes
from tests.passes.fusion.test_instruction_fusion import entry

FUSION = ("instruction-fusion", "dce", "multi-output-fusion", "dce", "normalization-fusion", "dce")


def fusions(text: str) -> int:
    """Kernels after fusion."""
    module = parse(text)
    run_passes(module, FUSION)
    return sum(i.opcode in ("fusion", "reduce") for i in module.entry.instructions)


def mean_and_scale(rows: int, row: int, last: str = "ROOT r = f32[D] multiply(d, v)") -> str:
    body = (
        """
  x = f32[D] parameter(0)
  zero = f32[] constant(0)
  a = f32[R] reduce(x, zero), dimensions={1}, to_apply=plus
  w = f32[D] broadcast(a), dimensions={0}
  d = f32[D] subtract(x, w)
  q = f32[D] multiply(d, d)
  b = f32[R] reduce(q, zero), dimensions={1}, to_apply=plus
  c = f32[R] rsqrt(b)
  v = f32[D] broadcast(c), dimensions={0}
  """
        + last
    )
    return entry(body.replace("f32[D]", f"f32[{rows},{row}]").replace("f32[R]", f"f32[{rows}]"))


@pytest.mark.parametrize("row", [2, 3, 7, 17, 50, 512])
def test_a_chain_is_one_kernel(row: int) -> None:
    assert fusions(mean_and_scale(64, row)) == 1


@pytest.mark.parametrize("row", [2, 5, 8, 9, 40])
def test_short_rows_take_no_memory_and_the_shortest_become_vectors_of_rows(row: int) -> None:
    text = mean_and_scale(1000, row)
    exe = heron.compile(parse(text))
    assert exe.memory.temp == 0
    loops = exe.stage("llvm").count("br i1 ")
    assert loops == 1 if row <= 8 else loops >= 4  # without masks, rows end with loops of their own
    _same(text)


@pytest.mark.parametrize(("rows", "row"), [(64, 1), (4, 512), (16, 1 << 16)])
def test_few_and_long_rows(rows: int, row: int) -> None:
    assert fusions(mean_and_scale(rows, row)) == 3


PLACE = """
place {
  x = f32[] parameter(0)
  p = s32[] parameter(1)
  y = f32[] parameter(2)
  q = s32[] parameter(3)
  more = pred[] compare(x, y), direction=GT
  none = pred[] compare(x, x), direction=NE
  left = pred[] or(more, none)
  same = pred[] compare(x, y), direction=EQ
  before = pred[] compare(p, q), direction=LT
  first = pred[] and(same, before)
  it = pred[] or(left, first)
  z = f32[] select(left, x, y)
  r = s32[] select(it, p, q)
  ROOT t = (f32[], s32[]) tuple(z, r)
}
"""


def largest_and_centred(rows: int, row: int) -> str:
    """The place of the largest element of a row, and the elements less the mean."""
    body = """
  x = f32[D] parameter(0)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  start = s32[] constant(0)
  n = s32[D] iota(), iota_dimension=1
  m = (f32[R], s32[R]) reduce(x, n, low, start), dimensions={1}, to_apply=place
  i = s32[R] get-tuple-element(m), index=1
  z = f32[R] get-tuple-element(m), index=0
  a = f32[R] reduce(x, zero), dimensions={1}, to_apply=plus
  b = f32[R] add(a, z)
  w = f32[D] broadcast(b), dimensions={0}
  d = f32[D] subtract(x, w)
  ROOT r = (f32[D], s32[R]) tuple(d, i)"""
    for name, dims in (("D", f"{rows},{row}"), ("R", f"{rows}")):
        body = body.replace(f"32[{name}]", f"32[{dims}]")
    return entry(body).replace("ENTRY", f"{PLACE}\nENTRY", 1)


@pytest.mark.parametrize("row", [2, 4, 7, 8, 9, 40])
def test_the_place_of_an_extremum_comes_along(row: int) -> None:
    text = largest_and_centred(64, row)
    exe = heron.compile(parse(text))
    assert len(exe.kernels) == 1
    x = np.random.default_rng(2).integers(0, 3, (64, row)).astype(np.float32)
    x[5, row // 2] = x[6, 0] = np.nan
    for found, wanted in zip(exe(x), evaluate(parse(text), x), strict=True):
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6)


def test_what_else_is_made_of_a_row_comes_along() -> None:
    """The sum of the residual, stored on the way; the variance; the normalised row and its mean."""
    text = entry("""
  x = f32[64,512] parameter(0)
  y = f32[64,512] parameter(1)
  zero = f32[] constant(0)
  s = f32[64,512] add(x, y)
  a = f32[64] reduce(s, zero), dimensions={1}, to_apply=plus
  w = f32[64,512] broadcast(a), dimensions={0}
  d = f32[64,512] subtract(s, w)
  q = f32[64,512] multiply(d, d)
  b = f32[64] reduce(q, zero), dimensions={1}, to_apply=plus
  v = f32[64,512] broadcast(b), dimensions={0}
  r = f32[64,512] multiply(d, v)
  ROOT t = (f32[64,512], f32[64,512], f32[64], f32[64]) tuple(s, r, a, b)""")
    assert fusions(text) == 1
    _same(text)


def test_columns_stay_apart() -> None:
    text = mean_and_scale(512, 512).replace("dimensions={1}, to_apply", "dimensions={0}, to_apply")
    assert fusions(text.replace("broadcast(a), dimensions={0}", "broadcast(a), dimensions={1}")) >= 2


def test_every_kernel_inside_reads_the_rows_own() -> None:
    """One kernel reads the first sums turned round, so that they stay outside, though the last one does not."""
    text = entry("""
  x = f32[32,64] parameter(0)
  zero = f32[] constant(0)
  a = f32[32] reduce(x, zero), dimensions={1}, to_apply=plus
  v = f32[32,64] broadcast(a), dimensions={0}
  b = f32[32] reduce(v, zero), dimensions={1}, to_apply=plus
  s = f32[32] add(a, b)
  w = f32[32,64] broadcast(s), dimensions={0}
  r = f32[32] reverse(a), dimensions={0}
  ROOT t = (f32[32,64], f32[32,64], f32[32]) tuple(v, w, r)""")
    assert fusions(text) == 2
    _same(text)


def test_no_cycle() -> None:
    """The sum of squares goes through a dot before it scales the row."""
    text = mean_and_scale(64, 64).replace(
        "c = f32[64] rsqrt(b)",
        "n = f32[64] dot(b, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n  c = f32[64] add(n, b)",
    )
    assert fusions(text) >= 2
    _same(text)


def _same(text: str, target: str = "cpu") -> None:
    module = parse(text)
    random = np.random.default_rng(1)
    inputs = [random.uniform(0.5, 1.5, p.shape.dims).astype(np.float32) for p in module.entry.parameters]
    wanted = evaluate(parse(text), *inputs)
    got = heron.compile(module, target)(*inputs)
    for g, w in zip(got if isinstance(got, (tuple, list)) else [got], wanted, strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=2e-4, atol=1e-5)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Elementwise ops, sums and maxima of rows, spread over the row again in one way or another, in any order."""
    kept = draw(st.sampled_from([(32,), (4, 8), (1, 20), (5, 1, 4)]))
    row = draw(st.sampled_from([(64,), (100,), (8, 9), (3,), (2, 4), (19,)]))
    dims, rank = (*kept, *row), len(kept)
    text = {"S": ",".join(map(str, dims)), "K": ",".join(map(str, kept))}
    lines, wide, narrow = (
        ["x = f32[S] parameter(0)", "zero = f32[] constant(0)", "low = f32[] constant(-inf)"],
        ["x"],
        [],
    )
    over = ",".join(map(str, range(rank, len(dims))))
    by = ",".join(map(str, range(rank)))
    for n in range(draw(st.integers(4, 14))):
        kind = draw(st.sampled_from(["reduce", "spread", "wide", "narrow", "turn"]))
        if kind == "reduce":
            which = draw(st.sampled_from([("zero", "plus"), ("low", "largest")]))
            source = draw(st.sampled_from(wide))
            lines.append(f"n{n} = f32[K] reduce({source}, {which[0]}), dimensions={{{over}}}, to_apply={which[1]}")
            narrow.append(f"n{n}")
        elif kind == "spread" and narrow:
            lines.append(f"n{n} = f32[S] broadcast({draw(st.sampled_from(narrow))}), dimensions={{{by}}}")
            wide.append(f"n{n}")
        elif kind == "turn" and narrow:
            lines.append(f"n{n} = f32[K] reverse({draw(st.sampled_from(narrow))}), dimensions={{{rank - 1}}}")
            narrow.append(f"n{n}")
        elif kind in ("wide", "narrow") and (some := wide if kind == "wide" else narrow):
            op = draw(st.sampled_from(["add", "subtract", "maximum", "minimum"]))
            a, b = draw(st.sampled_from(some)), draw(st.sampled_from(some))
            lines.append(f"n{n} = f32[{'S' if kind == 'wide' else 'K'}] {op}({a}, {b})")
            some.append(f"n{n}")
    outputs = [(w, "S") for w in wide[-2:]] + [(v, "K") for v in narrow[-1:]]
    shapes = ", ".join(f"f32[{t}]" for _, t in outputs)
    lines.append(f"ROOT t = ({shapes}) tuple({', '.join(w for w, _ in outputs)})")
    body = "\n  ".join(lines)
    for name, sizes in text.items():
        body = body.replace(f"f32[{name}]", f"f32[{sizes}]")
    return entry("\n  " + body).replace(
        "ENTRY",
        "largest {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] maximum(a, b)\n}\n\nENTRY",
        1,
    )


@settings(max_examples=25)
@given(programs())
def test_same_values(text: str) -> None:
    """Every kernel that is made is done row by row: anything else would reduce a row for each of its elements."""
    module = parse(text)
    run_passes(module, FUSION[:4])
    before = {i.name for i in module.entry.instructions}
    run_passes(module, FUSION[4:])
    made = [i for i in module.entry.instructions if i.opcode == "fusion" and i.name not in before]
    assert [analyse(i).kind for i in made] == ["rows"] * len(made), str(module)
    _same(text)


@settings(max_examples=6, deadline=None)
@given(programs())
def test_same_values_on_the_gpu(text: str) -> None:
    _same(text, "sim:sm_90")


def test_what_two_kernels_move_is_told() -> None:
    """The row once less, the first sum once less as both read it, and a sum that is now inside not at all."""
    module = parse(mean_and_scale(64, 512))
    told = [d for d in run_passes(module, FUSION).trace.decisions if d.rule == "normalization-fusion"]
    assert [d.ok for d in told] == [True, True]
    assert [d.cost_before - d.cost_after for d in told if d.cost_before and d.cost_after] == [
        64 * 514 * 4,
        64 * 513 * 4,
    ]
