"""Loops whose body asks on which side of a border it is: rolls, padding, concatenations, against the evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron import targets
from heron.codegen.emit import emit_fusion
from heron.codegen.transforms import pipeline
from heron.codegen.transforms.options import TransformOptions
from tests.codegen.run_kernel import check, root_fusion
from tests.codegen.test_elemental_indexing import array, source

ROLL = (
    ["pred[5,70]", "s32[]"],
    "c = pred[5,140] concatenate(p0, p0), dimensions={1}\n z = s32[] constant(0)\n"
    " d = pred[5,70] dynamic-slice(c, z, p1), dynamic_slice_sizes={5,70}\n ROOT r = pred[5,70] and(d, p0)",
)
ROLL_OF_EACH_ROW = (
    ["f32[6,90]", "s32[6]"],
    "c = f32[6,180] concatenate(p0, p0), dimensions={1}\n i = s32[6,1] iota(), iota_dimension=0\n"
    " s = s32[6,1] reshape(p1)\n k = s32[6,2] concatenate(i, s), dimensions={1}\n"
    " g = f32[6,90] gather(c, k), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0,1}, "
    "index_vector_dim=1, slice_sizes={1,90}\n ROOT r = f32[6,90] add(g, p0)",
)
THREE = (
    ["f32[4,40]", "f32[4,3]", "f32[4,50]", "s32[]"],
    "c = f32[4,93] concatenate(p0, p1, p2), dimensions={1}\n z = s32[] constant(0)\n"
    " d = f32[4,60] dynamic-slice(c, z, p3), dynamic_slice_sizes={4,60}\n ROOT r = f32[4,60] negate(d)",
)
WINDOWS = (
    ["f32[8,66]"],
    "l = f32[8,1] slice(p0), slice={[0:8],[0:1]}\n h = f32[8,1] slice(p0), slice={[0:8],[65:66]}\n"
    " c = f32[8,68] concatenate(l, p0, h), dimensions={1}\n a = f32[8,66] slice(c), slice={[0:8],[0:66]}\n"
    " b = f32[8,66] slice(c), slice={[0:8],[2:68]}\n s = f32[8,66] add(a, b)\n ROOT r = f32[8,66] subtract(s, p0)",
)
CASES = [(ROLL, 2), (ROLL_OF_EACH_ROW, 2), (THREE, 3), (WINDOWS, 3)]


def split(shapes: list[str], body: str) -> str:
    """The kernel after the step."""
    kernel = emit_fusion(root_fusion(source(shapes, body)), "k", targets.get("cpu"))
    found: list[str] = []

    def see(name: str, module: object) -> None:
        if name == "split-loops":
            found.append(str(module))

    pipeline.run(kernel.module, TransformOptions(target="cpu", verify=True), observe=see)
    return found[0]


def values(shape: str, shift: int) -> np.ndarray:
    if shape == "s32[]":
        return np.array(shift, np.int32)
    return array(shape.replace("pred", "s32")) > 2 if shape[0] == "p" else array(shape)


@pytest.mark.parametrize("case, loops", CASES)
@pytest.mark.parametrize("shift", [-7, 0, 1, 33, 70, 500])
def test_a_loop_for_each_side(case: tuple[list[str], str], loops: int, shift: int) -> None:
    shapes, body = case
    text = split(shapes, body)
    assert "scf.if" not in text and text.count("scf.for") == loops + 1
    check(source(shapes, body), [values(s, shift) for s in shapes], parts=3)


@pytest.mark.parametrize("rounds, stays", [(2, True), (3, False), (8, False)])
def test_loops_for_each_round_are_no_gain(rounds: int, stays: bool) -> None:
    shapes, body = ROLL
    short = (
        [s.replace("70", str(rounds)) for s in shapes],
        body.replace("140", str(2 * rounds)).replace("70", str(rounds)),
    )
    assert ("scf.if" in split(*short)) == stays
    check(source(*short), [values(s, 1) for s in short[0]], parts=2)


def test_many_borders_stay() -> None:
    names = ", ".join(f"p{n}" for n in range(9))
    many = (
        ["f32[4,7]"] * 9 + ["s32[]"],
        f"c = f32[4,63] concatenate({names}), dimensions={{1}}\n z = s32[] constant(0)\n"
        " d = f32[4,60] dynamic-slice(c, z, p9), dynamic_slice_sizes={4,60}\n ROOT r = f32[4,60] negate(d)",
    )
    assert "scf.if" in split(*many)
    check(source(*many), [values(s, 2) for s in many[0]])


def test_values_alone_are_selected() -> None:
    """Only where branches read memory is a loop for each side worth its code."""
    body = (
        "i = s32[4,80] iota(), iota_dimension=1\n f = s32[] constant(50)\n b = s32[4,80] broadcast(f), dimensions={}\n"
        " t = pred[4,80] compare(i, b), direction=LT\n n = f32[4,80] negate(p0)\n ROOT r = f32[4,80] select(t, p0, n)"
    )
    assert split(["f32[4,80]"], body).count("scf.for") == 2
    check(source(["f32[4,80]"], body), [array("f32[4,80]")])


@settings(max_examples=15, derandomize=True)
@given(st.integers(32, 80), st.lists(st.integers(1, 40), min_size=2, max_size=4), st.integers(-20, 120))
def test_any_borders(size: int, parts: list[int], shift: int) -> None:
    total = sum(parts)
    if total < size:
        parts, total = [*parts, size], total + size
    shapes = [*(f"s32[3,{n}]" for n in parts), "s32[]"]
    names, last = ", ".join(f"p{n}" for n in range(len(parts))), len(parts)
    body = (
        f"c = s32[3,{total}] concatenate({names}), dimensions={{1}}\n z = s32[] constant(0)\n"
        f" d = s32[3,{size}] dynamic-slice(c, z, p{last}), dynamic_slice_sizes={{3,{size}}}\n"
        f" ROOT r = s32[3,{size}] negate(d)"
    )
    check(source(shapes, body), [values(s, shift) for s in shapes], parts=2)


def test_numbers_of_one_branch_are_read_under_masks() -> None:
    """Padding by a constant is a mask; of bytes LLVM makes none."""
    for t, loops in (("f32", 2), ("s8", 3)):
        body = (
            f"z = {t}[] constant(0)\n a = {t}[3,80] pad(p0, z), padding=1_0x7_0\n b = {t}[3,80] slice(p1), "
            f"slice={{[1:4],[0:80]}}\n ROOT r = ({t}[3,80], {t}[3,80]) tuple(a, b)"
        )
        shapes = [f"{t}[2,73]", f"{t}[4,80]"]
        inputs = [array(s.replace("s8", "s32")).astype(np.int8 if t == "s8" else np.float32) for s in shapes]
        assert split(shapes, body).count("scf.for") >= loops
        check(source(shapes, body), inputs, parts=2)


def test_branches_that_write() -> None:
    """Updates outside the operand are left out: a branch gives an array, which is no number."""
    body = (
        "i = s32[40,1] iota(), iota_dimension=0\n k = s32[] constant(9)\n b = s32[40,1] broadcast(k), dimensions={}\n"
        " n = s32[40,1] subtract(i, b)\n"
        " ROOT r = f32[50] scatter(p0, n, p1), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"
    )
    shapes = ["f32[50]", "f32[40]"]
    check(source(shapes, body), [array(s) for s in shapes])


@pytest.mark.parametrize("size, splits", [(2, False), (20, True), (400, True)])
def test_loops_over_work_items(size: int, splits: bool) -> None:
    """Their bounds are known when they run; how many there are at most, their indices tell."""
    body = (
        f"c = s32[{2 * size}] concatenate(p0, p0), dimensions={{0}}\n"
        f" d = s32[{size}] dynamic-slice(c, p1), dynamic_slice_sizes={{{size}}}\n ROOT r = s32[{size}] negate(d)"
    )
    shapes = [f"s32[{size}]", "s32[]"]
    assert ("scf.if" in split(shapes, body)) != splits
    check(source(shapes, body), [values(s, 7) for s in shapes], parts=3)
