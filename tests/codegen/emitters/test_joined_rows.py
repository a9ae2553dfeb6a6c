"""Rows that concatenations along several dimensions put together, against the evaluator and by what is emitted."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron import targets
from heron.analysis.fusion.fusion import Fusion, fusion_of
from heron.analysis.fusion.joined_rows import joined_row
from heron.codegen.emit import emit_fusion
from heron.codegen.transforms import pipeline
from heron.codegen.transforms.options import TransformOptions
from tests.codegen.run_kernel import check, root_fusion
from tests.codegen.test_elemental_indexing import array, source

#: a matrix of a rotation, row by row
ROTATION = (
    ["f32[50,1]"],
    "s = f32[50,1] sine(p0)\n c = f32[50,1] cosine(p0)\n n = f32[50,1] negate(s)\n k = f32[] constant(0)\n"
    " z = f32[50,1] broadcast(k), dimensions={}\n a = f32[50,3] concatenate(c, n, z), dimensions={1}\n"
    " b = f32[50,3] concatenate(s, c, z), dimensions={1}\n d = f32[50,3] concatenate(z, z, p0), dimensions={1}\n"
    " u = f32[50,1,3] reshape(a)\n v = f32[50,1,3] reshape(b)\n w = f32[50,1,3] reshape(d)\n"
    " ROOT r = f32[50,3,3] concatenate(u, v, w), dimensions={1}",
)
#: columns of several vectors, and what is computed of the matrix
COLUMNS = (
    ["s32[40,1]", "s32[40,1]", "s32[40,3,4]"],
    "n = s32[40,1] negate(p0)\n a = s32[40,3] concatenate(p0, p1, n), dimensions={1}\n"
    " b = s32[40,3] concatenate(p1, n, p0), dimensions={1}\n u = s32[40,3,1] reshape(a)\n v = s32[40,3,1] reshape(b)\n"
    " m = s32[40,3,4] concatenate(u, v, v, u), dimensions={2}\n ROOT r = s32[40,3,4] multiply(m, p2)",
)
#: the blocks of a matrix with a border, padding among them
BORDER = (
    ["f32[30,4,4]", "f32[30,4]"],
    "u = f32[30,4,1] reshape(p1)\n a = f32[30,4,5] concatenate(p0, u), dimensions={2}\n v = f32[30,1,4] reshape(p1)\n"
    " k = f32[] constant(1)\n b = f32[30,1,5] pad(v, k), padding=0_0x0_0x0_1\n"
    " ROOT r = f32[30,5,5] concatenate(a, b), dimensions={1}",
)

#: the leaves of a tree: each level's products with one of two factors, by turns
TREE = (
    ["f32[50,15]"],
    "k = f32[] constant(1)\n a1 = f32[50,1] slice(p0), slice={[0:50], [0:1]}\n"
    " o1 = f32[50,1] broadcast(k), dimensions={}\n b1 = f32[50,1] subtract(o1, a1)\n"
    " l1 = f32[50,2] concatenate(a1, b1), dimensions={1}\n"
    + "\n ".join(
        f"s{n} = f32[50,{n}] slice(p0), slice={{[0:50], [{n - 1}:{2 * n - 1}]}}\n"
        f" o{n} = f32[50,{n}] broadcast(k), dimensions={{}}\n n{n} = f32[50,{n}] subtract(o{n}, s{n})\n"
        f" x{n} = f32[50,{n}] multiply(l{n // 2}, s{n})\n y{n} = f32[50,{n}] multiply(l{n // 2}, n{n})\n"
        f" u{n} = f32[50,{n},1] reshape(x{n})\n v{n} = f32[50,{n},1] reshape(y{n})\n"
        f" c{n} = f32[50,{n},2] concatenate(u{n}, v{n}), dimensions={{2}}\n"
        f" {'ROOT ' if n == 8 else ''}l{n} = f32[50,{2 * n}] reshape(c{n})"
        for n in (2, 4, 8)
    ),
)


def _fusion(case: tuple[list[str], str]) -> Fusion:
    return fusion_of(root_fusion(source(*case)).called[0])


def _emitted(case: tuple[list[str], str]) -> str:
    return str(emit_fusion(root_fusion(source(*case)), "k", targets.get("cpu")).module)


@pytest.mark.parametrize("case", [ROTATION, COLUMNS, BORDER, TREE], ids=["rotation", "columns", "border", "tree"])
@pytest.mark.parametrize("where", [{"parts": 3}, {"gpu": True}], ids=["cpu", "gpu"])
def test_values(case: tuple[list[str], str], where: dict) -> None:
    check(source(*case), [array(s) for s in case[0]], rtol=1e-6, **where)


def test_one_loop_stores_a_row() -> None:
    """What several elements of a row have in common is computed once."""
    row = joined_row(_fusion(ROTATION))
    assert row is not None and (row.first, row.elements) == (1, 9)
    ir = _emitted(ROTATION)
    assert "scf.if" not in ir and ir.count("tensor.insert") == 9
    assert ir.count("math.sin") <= 1 and ir.count("math.cos") <= 1


def test_elements_that_come_by_turns_at_several_levels_are_one_row() -> None:
    """No level chooses its operand while the kernel runs."""
    row = joined_row(_fusion(TREE))
    assert row is not None and row.elements == 16
    ir = _emitted(TREE)
    assert "scf.if" not in ir and ir.count("tensor.insert") == 16


def test_rows_of_one_operand_are_copied() -> None:
    """Each row has a loop for each part of it; the padding of the last is a mask."""
    assert joined_row(_fusion(BORDER)) is None
    kernel = emit_fusion(root_fusion(source(*BORDER)), "k", targets.get("cpu"))
    assert str(pipeline.run(kernel.module, TransformOptions())).count("scf.if") == 1


def test_rows_that_are_joined_themselves_are_no_rows() -> None:
    fusion = _fusion((["f32[5,2]", "f32[4,2]"], "ROOT r = f32[9,2] concatenate(p0, p1), dimensions={0}"))
    assert joined_row(fusion) is None


def test_times_of_what_is_joined() -> None:
    """A number in each element of a row is computed as often as the row has elements, one of a part as the part has."""
    body = (
        "a = f32[9,1] negate(p0)\n b = f32[9,2] abs(p1)\n c = f32[9,3] concatenate(a, b), dimensions={1}\n"
        " d = f32[9,3] add(c, c)\n e = f32[9,4] concatenate(d, a), dimensions={1}\n ROOT r = f32[9,4] negate(e)"
    )
    row = joined_row(_fusion((["f32[9,1]", "f32[9,2]"], body)))
    assert row is not None
    times = {i.opcode: n for i, n in row.times.items() if i.opcode != "negate"}
    assert times == {"parameter": 2, "abs": 2, "concatenate": 0, "add": 3}


@st.composite
def joins(draw: st.DrawFn) -> tuple[list[str], str]:
    """Blocks of a matrix for each of some rows: joined along one dimension, then along the other, some computed."""
    rows, heights = draw(st.integers(1, 20)), draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    width, flat = draw(st.integers(1, 9)), draw(st.booleans())
    shapes, lines, bands = [], [], []
    for h in heights:
        cuts = sorted({0, width, *draw(st.lists(st.integers(0, width), max_size=3))})
        names = []
        for a, b in pairwise(cuts):
            shape, n = f"s32[{rows},{h},{b - a}]", len(shapes)
            given_as = draw(st.sampled_from(["plain", "turned", "negative", "flat"]))
            shapes.append(
                {"turned": f"s32[{b - a},{rows},{h}]", "flat": f"s32[{rows},{h * (b - a)}]"}.get(given_as, shape)
            )
            names.append(f"v{n}")
            lines.append(
                {
                    "plain": f"v{n} = {shape} abs(p{n})",
                    "turned": f"v{n} = {shape} transpose(p{n}), dimensions={{1,2,0}}",
                    "negative": f"v{n} = {shape} negate(p{n})",
                    "flat": f"v{n} = {shape} reshape(p{n})",
                }[given_as]
            )
        bands.append(f"b{len(bands)}")
        lines.append(f"{bands[-1]} = s32[{rows},{h},{width}] concatenate({', '.join(names)}), dimensions={{2}}")
    whole = f"s32[{rows},{sum(heights)},{width}]"
    lines.append(f"c = {whole} concatenate({', '.join(bands)}), dimensions={{1}}")
    lines.append(f"m = {whole} add(c, c)")
    end = f"s32[{rows},{sum(heights) * width}]" if flat else whole
    lines.append(f"ROOT r = {end} reshape(m)" if flat else f"ROOT r = {end} negate(m)")
    return shapes, "\n ".join(lines)


@settings(max_examples=25)
@given(joins(), st.booleans())
def test_any_blocks(case: tuple[list[str], str], gpu: bool) -> None:
    values = [np.arange(array(s).size, dtype=np.int32).reshape(array(s).shape) + 100 * k for k, s in enumerate(case[0])]
    check(source(*case), values, **({"gpu": True} if gpu else {"parts": 3}))
