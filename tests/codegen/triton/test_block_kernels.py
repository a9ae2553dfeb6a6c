"""Block kernels against the evaluator: every form of product, what goes into one and comes behind it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.analysis.blocks.config import BlockConfig
from heron.errors import HeronError
from tests.codegen.triton.kernels import check_equal, expected, inputs_of, program, run

CASES = {
    "transposed result": (
        """
        a = bf16[3,40,96] parameter(0)
        b = bf16[3,72,96] parameter(1)
        d = f32[3,40,72] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
        ROOT t = f32[3,72,40] transpose(d), dimensions={0,2,1}
        """,
        BlockConfig((1, 32, 16), 32),
    ),
    "long sum that does not divide": (
        """
        a = f16[20,300] parameter(0)
        b = f16[300,33] parameter(1)
        ROOT d = f32[20,33] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        """,
        BlockConfig((16, 32), 64),
    ),
    "two products share their rows": (
        """
        a = bf16[64,256] parameter(0)
        w = bf16[256,96] parameter(1)
        u = bf16[256,96] parameter(2)
        c = bf16[256,192] concatenate(w, u), dimensions={1}
        d = f32[64,192] dot(a, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        x = f32[64,96] slice(d), slice={[0:64], [0:96]}
        y = f32[64,96] slice(d), slice={[0:64], [96:192]}
        z = f32[64,96] maximum(x, y)
        ROOT t = f32[64,96] multiply(x, z)
        """,
        BlockConfig((32, 64), 32),
    ),
    "an edge inside a tile": (
        """
        a = bf16[32,48] parameter(0)
        w = bf16[48,40] parameter(1)
        u = bf16[48,24] parameter(2)
        c = bf16[48,64] concatenate(w, u), dimensions={1}
        ROOT d = f32[32,64] dot(a, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        """,
        BlockConfig((32, 32), 32),
    ),
    "bytes with scales": (
        """
        q = s8[130,300] parameter(0)
        k = s8[300,70] parameter(1)
        s = s32[130,70] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        sc = f32[130] parameter(2)
        sb = f32[130,70] broadcast(sc), dimensions={0}
        c = f32[130,70] convert(s)
        ROOT o = f32[130,70] multiply(c, sb)
        """,
        BlockConfig((64, 32), 64),
    ),
    "batches of two dimensions": (
        """
        q = f16[6,20,32] parameter(0)
        k = f16[2,3,32,64] parameter(1)
        k1 = f16[6,32,64] reshape(k)
        s = f16[6,20,64] dot(q, k1), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
        ROOT o = f16[2,3,20,64] reshape(s)
        """,
        BlockConfig((1, 1, 16, 64), 32),
    ),
    "floats of 8 bits of both kinds": (
        """
        a = f8e4m3fn[40,272] parameter(0)
        b = f8e5m2[48,272] parameter(1)
        d = bf16[40,48] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}
        ROOT n = bf16[40,48] negate(d)
        """,
        BlockConfig((32, 32), 128),
    ),
    "integers of 4 bits, a byte each": (
        """
        q = s4[160,48] parameter(0)
        t = s4[48,160] transpose(q), dimensions={1,0}
        a = bf16[48,160] convert(t)
        u = u4[160,80] parameter(1)
        b = bf16[160,80] convert(u)
        ROOT d = f32[48,80] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        """,
        BlockConfig((16, 32), 32),
    ),
    "integers of 4 bits, two a byte, along columns": (
        """
        x = bf16[32,160] parameter(0)
        p = u8[160,24] parameter(1)
        w = u8[160,24,2] broadcast(p), dimensions={0,1}
        i = u8[160,24,2] iota(), iota_dimension=2
        four = u8[] constant(4)
        fours = u8[160,24,2] broadcast(four), dimensions={}
        by = u8[160,24,2] multiply(i, fours)
        moved = u8[160,24,2] shift-right-logical(w, by)
        low = u4[160,24,2] convert(moved)
        q = s4[160,24,2] bitcast-convert(low)
        c = bf16[160,24,2] convert(q)
        r = bf16[160,48] reshape(c)
        ROOT d = f32[32,48] dot(x, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        """,
        BlockConfig((16, 32), 32),
    ),
    "integers of 4 bits, two a byte, along the sum": (
        """
        x = bf16[32,160] parameter(0)
        p = u8[80,48] parameter(1)
        w = u8[80,2,48] broadcast(p), dimensions={0,2}
        i = u8[80,2,48] iota(), iota_dimension=1
        four = u8[] constant(4)
        fours = u8[80,2,48] broadcast(four), dimensions={}
        by = u8[80,2,48] multiply(i, fours)
        moved = u8[80,2,48] shift-right-logical(w, by)
        low = u4[80,2,48] convert(moved)
        c = bf16[80,2,48] convert(low)
        r = bf16[160,48] reshape(c)
        ROOT d = f32[32,48] dot(x, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        """,
        BlockConfig((16, 32), 32),
    ),
    "a mask by places": (
        """
        a = bf16[48,200] parameter(0)
        b = bf16[200,48] parameter(1)
        d = f32[48,48] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        i = s32[48,48] iota(), iota_dimension=0
        j = s32[48,48] iota(), iota_dimension=1
        m = pred[48,48] compare(i, j), direction=GE
        n = pred[48] parameter(2)
        nb = pred[48,48] broadcast(n), dimensions={1}
        both = pred[48,48] and(m, nb)
        zero = f32[] constant(-1)
        z = f32[48,48] broadcast(zero), dimensions={}
        ROOT r = f32[48,48] select(both, d, z)
        """,
        BlockConfig((32, 16), 64),
    ),
}


@pytest.mark.parametrize("tma", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, tma: bool) -> None:
    body, config = CASES[name]
    check_equal(program(body), replace(config, tma=tma))


ATTENTION = """
  q = bf16[2,40,16] parameter(0)
  k = bf16[2,40,16] parameter(1)
  v = bf16[2,40,16] parameter(2)
  s = f32[2,40,40] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  least = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[2,40] reduce(s, least), dimensions={2}, to_apply=max
  mb = f32[2,40,40] broadcast(m), dimensions={0,1}
  below = f32[2,40,40] subtract(s, mb)
  e = f32[2,40,40] exponential(below)
  t = f32[2,40] reduce(e, zero), dimensions={2}, to_apply=add
  tb = f32[2,40,40] broadcast(t), dimensions={0,1}
  p = f32[2,40,40] divide(e, tb)
  pb = bf16[2,40,40] convert(p)
  ROOT o = f32[2,40,16] dot(pb, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
"""


WAYS = {
    "whole rows": BlockConfig((1, 16, 16), 32),
    "three loops": BlockConfig((1, 16, 16), 32, row=16),
    "online": BlockConfig((1, 16, 16), 32, row=16, online=True),
}


@pytest.mark.parametrize("tma", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_attention_is_one_kernel(way: str, tma: bool) -> None:
    """Both products and the softmax between them. Only the order of 40 additions differs: 40 roundings at most."""
    text = program(ATTENTION)
    inputs = inputs_of(text)
    (got,), (wanted,) = run(text, replace(WAYS[way], tma=tma), inputs), expected(text, inputs)
    bf16 = 2.0**-8  # a probability may round to its neighbour in bf16 when its sum was rounded otherwise
    np.testing.assert_allclose(got, wanted, rtol=0, atol=3 * bf16 + 40 * 2.0**-24 * 3)


SIZES = st.integers(1, 70)
TILES = st.sampled_from([16, 32, 64])


@settings(max_examples=25, deadline=None)
@given(
    m=SIZES, n=SIZES, k=st.integers(1, 300), tiles=st.tuples(TILES, TILES), step=st.sampled_from([32, 64]),
    lhs_k_first=st.booleans(), rhs_k_last=st.booleans(), scaled=st.booleans(), turned=st.booleans(),
    tma=st.booleans(), even=st.booleans(), seed=st.integers(0, 9),
)  # fmt: skip
def test_any_sizes(
    m: int, n: int, k: int, tiles: tuple[int, int], step: int, lhs_k_first: bool, rhs_k_last: bool, scaled: bool,
    turned: bool, tma: bool, even: bool, seed: int,
) -> None:  # fmt: skip
    """Sizes that no tile divides, operands either way round, with ops before and behind, by the copy engine or not."""
    if even:  # rows are as far apart as the engine wants them
        m, n, k = 16 * m, 16 * n, -(-k // 16) * 16
    lhs, rhs = (f"{k},{m}" if lhs_k_first else f"{m},{k}"), (f"{n},{k}" if rhs_k_last else f"{k},{n}")
    lines = [f"x = s8[{lhs}] parameter(0)", f"a = bf16[{lhs}] convert(x)", f"y = bf16[{rhs}] parameter(1)"]
    b = "y"
    if scaled:  # rows of the sum by numbers of their own
        lines += [f"f = bf16[{k}] parameter(2)", f"fb = bf16[{rhs}] broadcast(f), dimensions={{{int(rhs_k_last)}}}"]
        lines += [f"b = bf16[{rhs}] multiply(y, fb)"]
        b = "b"
    dims = f"lhs_contracting_dims={{{1 - lhs_k_first}}}, rhs_contracting_dims={{{int(rhs_k_last)}}}"
    lines.append(f"d = f32[{m},{n}] dot(a, {b}), {dims}")
    lines.append(
        f"ROOT r = f32[{n},{m}] transpose(d), dimensions={{1,0}}" if turned else f"ROOT r = f32[{m},{n}] negate(d)"
    )
    check_equal(program("\n".join(lines)), BlockConfig(tiles, step, tma=tma), seed)


def test_what_has_no_form() -> None:
    text = program("""
      a = bf16[32,32] parameter(0)
      r = bf16[32,32] reverse(a), dimensions={0}
      s = bf16[32,32] sort(r), dimensions={0}, is_stable=false, to_apply=less
      ROOT d = bf16[32,32] dot(s, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """).replace(
        "ENTRY",
        "less {\n  a = bf16[] parameter(0)\n  b = bf16[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=LT\n}\n\nENTRY",
    )
    with pytest.raises(HeronError, match="GEN015"):
        run(text, BlockConfig((32, 32), 32), inputs_of(text))
