"""Tiles of values, against the values: what a tile of the result is computed from is where the tiling says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron import targets
from heron.analysis.blocks.cost import plans
from heron.analysis.blocks.tiling import Refusal, Tiling, split
from heron.evaluator import evaluate
from heron.hlo.text import parse


def tiling_of(body: str) -> Tiling:
    entry = parse(f"HloModule m\nENTRY e {{\n{body}\n}}").entry
    return Tiling(entry.root, frozenset(entry.instructions))


MOVES = {
    "transpose": "ROOT r = s32[6,8,4] transpose(p), dimensions={1,2,0}",
    "slice": "ROOT r = s32[2,3,4] slice(p), slice={[1:3], [0:6:2], [4:8]}",
    "broadcast": "ROOT r = s32[4,5,6,8] broadcast(p), dimensions={0,2,3}",
    "reshape": "ROOT r = s32[24,8] reshape(p)",
    "reverse": "ROOT r = s32[4,6,8] reverse(p), dimensions={1}",
    "both": "t = s32[8,4,6] transpose(p), dimensions={2,0,1}\nROOT r = s32[4,4,3] slice(t), slice={[4:8], [0:4], [0:6:2]}",
    "slice of a reshape": "t = s32[4,2,3,8] reshape(p)\nROOT r = s32[4,1,3,4] slice(t), slice={[0:4],[1:2],[0:3],[2:6]}",
}


def test_two_numbers_of_one_byte() -> None:
    """A tile of what is unpacked begins with a byte, and comes from half as many; not where the tile may not."""
    tiling = tiling_of("""
      p = u8[4,8] parameter(0)
      w = u8[4,8,2] broadcast(p), dimensions={0,1}
      i = u8[4,8,2] iota(), iota_dimension=2
      s = u8[4,8,2] shift-right-logical(w, i)
      ROOT r = u8[4,16] reshape(s)
    """)
    found = {i.opcode: tiling.tile(i, ways[0], (4, 8), packed=True) for i, ways in tiling.values.items()}
    assert [s.size for s in found["parameter"]] == [4, 4] and [s.size for s in found["iota"]] == [4, 4, 2]
    parameter = next(i for i in tiling.values if i.opcode == "parameter")
    (index,) = tiling.values[parameter]
    assert isinstance(tiling.tile(parameter, index, (4, 7), packed=True), Refusal)
    assert isinstance(tiling.tile(parameter, index, (4, 8)), Refusal)


@settings(max_examples=30, deadline=None)
@given(name=st.sampled_from(sorted(MOVES)), data=st.data())
def test_tiles_of_what_only_moves(name: str, data: st.DataObject) -> None:
    """The tile of the parameter holds, in order, the elements of the tile of the result."""
    body = f"p = s32[4,6,8] parameter(0)\n{MOVES[name]}"
    tiling = tiling_of(body)
    p = np.arange(4 * 6 * 8, dtype=np.int32).reshape(4, 6, 8)
    result = np.asarray(evaluate(parse(f"HloModule m\nENTRY e {{\n{body}\n}}"), p)[0])
    sizes = [data.draw(st.integers(1, n)) for n in result.shape]
    place = [data.draw(st.integers(0, n - s)) for n, s in zip(result.shape, sizes, strict=True)]
    wanted = result[tuple(slice(a, a + s) for a, s in zip(place, sizes, strict=True))]
    parameter = next(i for i in tiling.values if i.opcode == "parameter")
    (index,) = tiling.values[parameter]
    tile = tiling.tile(parameter, index, sizes)
    if isinstance(tile, Refusal):
        assert "equal steps" in tile.why or "dimensions of the tile" in tile.why
        return
    at = [int(s.offset.evaluate(place)) + s.stride * np.arange(s.size) for s in tile]
    found = p[np.ix_(*at)]
    assert sorted(found.reshape(-1)) == sorted(set(wanted.reshape(-1).tolist()))


def test_a_reshape_that_cuts_a_dimension_is_refused_when_a_tile_spans_it() -> None:
    tiling = tiling_of("p = s32[4,6,8] parameter(0)\nROOT r = s32[24,8] reshape(p)")
    parameter = next(i for i in tiling.values if i.opcode == "parameter")
    refused = tiling.tile(parameter, tiling.values[parameter][0], [3, 8])
    assert isinstance(refused, Refusal) and "equal steps" in refused.why
    assert not isinstance(tiling.tile(parameter, tiling.values[parameter][0], [1, 8]), Refusal)


SWIGLU = """
a = bf16[512,512] parameter(0)
w = bf16[512,1408] parameter(1)
u = bf16[512,1408] parameter(2)
c = bf16[512,2816] concatenate(w, u), dimensions={1}
d = bf16[512,2816] dot(a, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
x = bf16[512,1408] slice(d), slice={[0:512], [0:1408]}
y = bf16[512,1408] slice(d), slice={[0:512], [1408:2816]}
ROOT r = bf16[512,1408] multiply(x, y)
"""


def test_products_at_two_places() -> None:
    """Each slice needs the product elsewhere, and there only one part of the concatenated weights."""
    tiling = tiling_of(SWIGLU)
    (dot, first), (_, second) = tiling.products
    assert [str(e) for e in split(dot, first)[2]] == ["d1"]
    assert [str(e) for e in split(dot, second)[2]] == ["d1 + 1408"]
    reads = {i.name: ways for i, ways in tiling.values.items() if i.opcode == "parameter"}
    assert len(reads["w"]) == len(reads["u"]) == 1
    assert [v.kind for v in tiling.variables] == ["result", "result", "sum", "sum"]


def test_plans() -> None:
    """The quickest cut fits into the machine, and its programs cover the result."""
    found = plans(tiling_of(SWIGLU), targets.get("sm_90"))
    assert not isinstance(found, Refusal)
    best = found[0]
    assert best.seconds == min(p.seconds for p in found)
    rows, columns = best.config.tiles
    assert best.programs == -(-512 // rows) * -(-1408 // columns)
    assert rows >= 64 and columns >= 32


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            "a = bf16[1,64] parameter(0)\nb = bf16[64,64] parameter(1)\n"
            "ROOT d = bf16[1,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "single row",
        ),
        (
            "a = bf16[64,64,64] parameter(0)\nd = bf16[64,64,64] dot(a, a), lhs_batch_dims={0}, rhs_batch_dims={0},"
            " lhs_contracting_dims={2}, rhs_contracting_dims={1}\n"
            "t = bf16[64,64,64] transpose(d), dimensions={1,0,2}\nROOT r = bf16[64,64,64] add(d, t)",
            "two parts",
        ),
    ],
)
def test_refusals(body: str, why: str) -> None:
    refused = plans(tiling_of(body), targets.get("sm_90"))
    assert isinstance(refused, Refusal) and why in refused.why


@pytest.mark.parametrize(("rows", "fits"), [(32767, True), (32768, False)])
def test_arrays_beyond_32_bits_are_refused(rows: int, fits: bool) -> None:
    """2^31 elements and more: offsets of a block kernel have 32 bits, and would lead to memory before the array."""
    operand = tiling_of(f"""
      p = s8[{rows},65536] parameter(0)
      w = bf16[65536,16] parameter(1)
      c = bf16[{rows},65536] convert(p)
      ROOT r = bf16[{rows},16] dot(c, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}""")
    result = tiling_of(f"""
      p = bf16[{rows},16] parameter(0)
      w = bf16[16,65536] parameter(1)
      ROOT r = bf16[{rows},65536] dot(p, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}""")
    for tiling in (operand, result):
        assert not tiling.refusals if fits else "2,147,483,648 elements" in tiling.refusals[0].why
