"""Reductions of few elements that take long: results lie side by side, in vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron import targets
from heron.analysis.fusion.analysis import MIN_REDUCED_ON_CPU, analyse
from heron.codegen.emit import emit_fusion
from tests.codegen.run_kernel import check, root_fusion

RNG = np.random.default_rng(5)

SUM = "add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }"
LARGER = """larger { a = s32[] parameter(0) i = s32[] parameter(1) b = s32[] parameter(2) j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GT e = pred[] compare(a, b), direction=EQ l = pred[] compare(i, j), direction=LT
  t = pred[] and(e, l) o = pred[] or(g, t) v = s32[] select(g, a, b) w = s32[] select(o, i, j)
  ROOT r = (s32[], s32[]) tuple(v, w) }"""


def program(shape: tuple[int, ...], dim: int, steps: int, position: bool) -> str:
    """A reduction along `dim` of numbers that take so many steps: to their sum, or to the largest and its position."""
    source, kept = ",".join(map(str, shape)), ",".join(str(n) for d, n in enumerate(shape) if d != dim)
    body = [f"x0 = s32[{source}] parameter(0)"]
    body += [
        f"k{n} = s32[] constant({n + 3}) c{n} = s32[{source}] broadcast(k{n}), dimensions={{}} "
        f"y{n} = s32[{source}] multiply(x{n}, c{n}) x{n + 1} = s32[{source}] xor(y{n}, c{n})"
        for n in range(steps)
    ]
    body += ["z = s32[] constant(0) low = s32[] constant(-2147483648)"]
    if position:
        body += [f"n = s32[{source}] iota(), iota_dimension={dim}"]
        reduce = f"(s32[{kept}], s32[{kept}]) reduce(x{steps}, n, low, z), dimensions={{{dim}}}, to_apply=larger"
        result = f"(s32[{kept}], s32[{kept}])"
    else:
        reduce = f"s32[{kept}] reduce(x{steps}, z), dimensions={{{dim}}}, to_apply=add"
        result = f"s32[{kept}]"
    body += [f"ROOT r = {reduce}"]
    return f"""HloModule m
{SUM}
{LARGER}
f {{ {" ".join(body)} }}
ENTRY e {{ p = s32[{source}] parameter(0) ROOT k = {result} fusion(p), kind=kInput, calls=f }}"""


@pytest.mark.parametrize(
    ("shape", "dim", "steps", "position", "form"),
    [
        ((400, 10), 1, 20, True, "rows of 10, up to"),
        ((400, 63), 1, 20, True, "rows of 63, up to"),
        ((400, 7), 1, 40, False, "rows of 7, up to"),
        ((400, 3), 1, 400, True, "rows of 3, up to"),
        ((10, 400), 0, 20, True, "columns of 10, up to"),
        ((10, 400), 0, 40, False, "columns of 10, up to"),
        ((20, 10, 40), 1, 20, True, "columns of 10, up to"),
    ],
)
def test_results_lie_side_by_side(shape: tuple[int, ...], dim: int, steps: int, position: bool, form: str) -> None:
    source = program(shape, dim, steps, position)
    kernel = emit_fusion(root_fusion(source), "k", targets.get("cpu"))
    assert kernel.notes["form"].startswith(form)
    check(source, [RNG.integers(-(2**31), 2**31, shape).astype(np.int32)], parts=3)
    # a question without a machine gets the kernel with the most parts
    assert analyse(root_fusion(source), least=MIN_REDUCED_ON_CPU).kind == "reduce"


@pytest.mark.parametrize(
    ("shape", "steps", "position", "why"),
    [
        ((400, 10), 2, True, "it is written out"),
        ((8, 10), 20, True, "there are too few results"),
        ((400, 20), 40, False, "a sum has vectors of partial results"),
    ],
)
def test_others_are_combined_as_before(shape: tuple[int, ...], steps: int, position: bool, why: str) -> None:
    kernel = emit_fusion(root_fusion(program(shape, 1, steps, position)), "k", targets.get("cpu"))
    assert "up to" not in kernel.notes.get("form", ""), why


def test_bytes_that_lie_apart_are_not_gathered() -> None:
    source = program((400, 10), 1, 20, True).replace("f { ", "f { q = s8[400,10] parameter(1) ", 1)
    source = source.replace("x1 = s32[400,10] xor(y0, c0)", "w = s32[400,10] convert(q) x1 = s32[400,10] xor(y0, w)")
    source = source.replace(
        "ROOT k = (s32[400], s32[400]) fusion(p)",
        "q = s8[400,10] parameter(1) ROOT k = (s32[400], s32[400]) fusion(p, q)",
    )
    kernel = emit_fusion(root_fusion(source), "k", targets.get("cpu"))
    assert "up to" not in kernel.notes.get("form", "")
    check(source, [RNG.integers(-9, 9, (400, 10)).astype(t) for t in (np.int32, np.int8)], parts=3)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=2, max_size=3), st.integers(0, 2), st.integers(1, 30), st.booleans(),
    st.integers(1, 5),
)  # fmt: skip
def test_any_of_them(sizes: list[int], dim: int, steps: int, position: bool, parts: int) -> None:
    source = program(tuple(sizes), dim % len(sizes), steps, position)
    check(source, [RNG.integers(-5, 5, sizes).astype(np.int32)], parts=parts)
