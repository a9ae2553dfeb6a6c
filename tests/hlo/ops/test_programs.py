"""Small programs, family by family, against XLA:CPU: corners of every op that is not elementwise."""

from __future__ import annotations

import pytest

from tests.hlo.ops.agree import check, program, reducer

ADD, MAX = reducer("add", "f32", "add"), reducer("max", "f32", "maximum")
ARGMAX = """argmax {
 a = f32[] parameter(0)
 i = s32[] parameter(1)
 b = f32[] parameter(2)
 j = s32[] parameter(3)
 more = pred[] compare(a, b), direction=GT
 unordered = pred[] compare(a, a), direction=NE
 wins = pred[] or(more, unordered)
 equal = pred[] compare(a, b), direction=EQ
 before = pred[] compare(i, j), direction=LT
 tie = pred[] and(equal, before)
 first = pred[] or(wins, tie)
 v = f32[] select(wins, a, b)
 k = s32[] select(first, i, j)
 ROOT t = (f32[], s32[]) tuple(v, k)
}
"""

MOVEMENT = {
    "broadcast a transpose": """ p = f32[3,4] parameter(0)
 t = f32[4,3] transpose(p), dimensions={1,0}
 ROOT r = f32[4,2,3] broadcast(t), dimensions={0,2}""",
    "reverse a concatenation": """ p = f32[3,4] parameter(0)
 q = f32[3,2] parameter(1)
 t = f32[3,6] concatenate(p, q), dimensions={1}
 ROOT r = f32[3,6] reverse(t), dimensions={0,1}""",
    "pad and cut": """ p = f32[5,6] parameter(0)
 z = f32[] constant(7)
 ROOT r = f32[9,10] pad(p, z), padding=-1_1_1x2_-3_1""",
    "pad nothing": """ p = f32[0,2] parameter(0)
 z = f32[] constant(7)
 ROOT r = f32[3,2] pad(p, z), padding=2_1_3x0_0""",
    "slice": " p = f32[9,4] parameter(0)\n ROOT r = f32[3,2] slice(p), slice={[1:9:3], [0:2]}",
    "dynamic-slice": """ p = f32[5,6] parameter(0)
 i = u32[] parameter(1)
 j = u32[] parameter(2)
 ROOT r = f32[2,3] dynamic-slice(p, i, j), dynamic_slice_sizes={2,3}""",
    "dynamic-update-slice": """ p = f32[5,6] parameter(0)
 u = f32[2,3] parameter(1)
 i = s32[] constant(4)
 j = s32[] constant(-3)
 ROOT r = f32[5,6] dynamic-update-slice(p, u, i, j)""",
    "iota": " ROOT r = bf16[3,300] iota(), iota_dimension=1",
}


@pytest.mark.parametrize("name", MOVEMENT)
def test_movement(name: str) -> None:
    check(program(MOVEMENT[name]))


REDUCTIONS = {
    "sum with an initial value": """ p = f32[6,4] parameter(0)
 z = f32[] constant(10)
 ROOT r = f32[4] reduce(p, z), dimensions={0}, to_apply=add""",
    "of nothing": """ p = f32[6,0] parameter(0)
 z = f32[] constant(10)
 ROOT r = f32[6] reduce(p, z), dimensions={1}, to_apply=add""",
    "over two dimensions": """ p = f32[3,4,5] parameter(0)
 z = f32[] constant(-inf)
 ROOT r = f32[4] reduce(p, z), dimensions={0,2}, to_apply=max""",
    "argmax": """ p = f32[7,3] parameter(0)
 i = s32[7,3] iota(), iota_dimension=0
 z = f32[] constant(-inf)
 k = s32[] constant(0)
 ROOT r = (f32[3], s32[3]) reduce(p, i, z, k), dimensions={0}, to_apply=argmax""",
    "windows with padding that is not neutral": """ p = f32[6,5] parameter(0)
 z = f32[] constant(10)
 ROOT r = f32[4,3] reduce-window(p, z), window={size=3x2 stride=2x2 pad=2_1x0_1}, to_apply=add""",
    "dilated windows": """ p = f32[6,5] parameter(0)
 z = f32[] constant(-5)
 ROOT r = f32[9,3] reduce-window(p, z), window={size=3x2 pad=1_1x0_0 lhs_dilate=2x1 rhs_dilate=2x2}, to_apply=max""",
    "windows with negative padding": """ p = f32[6,5] parameter(0)
 z = f32[] constant(0)
 ROOT r = f32[3,5] reduce-window(p, z), window={size=3x1 pad=-1_0x0_0}, to_apply=add""",
    "cumulative sum": """ p = f32[33] parameter(0)
 z = f32[] constant(0)
 ROOT r = f32[33] reduce-window(p, z), window={size=33 pad=32_0}, to_apply=add""",
    "argmax of windows": """ p = f32[7] parameter(0)
 i = s32[7] iota(), iota_dimension=0
 z = f32[] constant(-inf)
 k = s32[] constant(99)
 ROOT r = (f32[5], s32[5]) reduce-window(p, i, z, k), window={size=4 pad=1_0}, to_apply=argmax""",
    "select-and-scatter": """ p = f32[5,6] parameter(0)
 s = f32[3,4] parameter(1)
 z = f32[] constant(3)
 ROOT r = f32[5,6] select-and-scatter(p, s, z), window={size=3x3 stride=2x2 pad=1_1x1_2}, select=ge, scatter=add""",
}
GE = """ge {
 gea = f32[] parameter(0)
 geb = f32[] parameter(1)
 ROOT gec = pred[] compare(gea, geb), direction=GE
}
"""


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    check(program(REDUCTIONS[name], ADD + MAX + ARGMAX + GE))


SET = "set {\n sa = f32[] parameter(0)\n ROOT sb = f32[] parameter(1)\n}\n"
TWO = """two {
 ta = f32[] parameter(0)
 tb = s32[] parameter(1)
 tc = f32[] parameter(2)
 td = s32[] parameter(3)
 te = f32[] add(ta, tc)
 tf = s32[] maximum(tb, td)
 ROOT tt = (f32[], s32[]) tuple(te, tf)
}
"""
POINTS = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
INDEXED = {
    "gather moves slices inside": """ p = f32[6,4] parameter(0)
 i = s32[4,2] constant({{4,2},{5,3},{-1,0},{100,-100}})
 ROOT r = f32[4,2,2] gather(p, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1},
   index_vector_dim=1, slice_sizes={2,2}""",
    "gather with batching dimensions": """ p = f32[5,6,7] parameter(0)
 i = s32[3,5,2] parameter(1)
 ROOT r = f32[3,5,2] gather(p, i), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={2,1},
   operand_batching_dims={0}, start_indices_batching_dims={1}, index_vector_dim=2, slice_sizes={1,1,2}""",
    "gather with index vectors in front": """ p = f32[5,6] parameter(0)
 i = s32[2,3,4] parameter(1)
 ROOT r = f32[2,3,4,3] gather(p, i), offset_dims={0,3}, collapsed_slice_dims={}, start_index_map={1,0},
   index_vector_dim=0, slice_sizes={2,3}""",
    "scatter drops whole windows": """ p = f32[6,4] parameter(0)
 u = f32[3,2,2] parameter(1)
 i = s32[3,2] constant({{4,2},{5,3},{-1,0}})
 ROOT r = f32[6,4] scatter(p, i, u), update_window_dims={1,2}, inserted_window_dims={},
   scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=add""",
    "scatter with batching dimensions": """ p = f32[5,6,7] parameter(0)
 i = s32[5,3,1] parameter(1)
 u = f32[5,3,2] parameter(2)
 ROOT r = f32[5,6,7] scatter(p, i, u), update_window_dims={2}, inserted_window_dims={1},
   scatter_dims_to_operand_dims={2}, input_batching_dims={0}, scatter_indices_batching_dims={0},
   index_vector_dim=2, to_apply=add""",
    "scatter sets the last": f""" p = f32[6] parameter(0)
 u = f32[5] parameter(1)
 i = s32[5] constant({{1,1,5,0,6}})
 ROOT r = f32[6] scatter(p, i, u), {POINTS}, to_apply=set""",
    "scatter in order": f""" p = f32[6] parameter(0)
 u = f32[5] parameter(1)
 i = s32[5] constant({{1,1,5,1,6}})
 ROOT r = f32[6] scatter(p, i, u), {POINTS}, to_apply=sub""",
    "scatter two arrays": f""" p = f32[6] parameter(0)
 q = s32[6] parameter(1)
 u = f32[5] parameter(2)
 v = s32[5] parameter(3)
 i = s32[5] constant({{1,1,5,0,-1}})
 ROOT r = (f32[6], s32[6]) scatter(p, q, i, u, v), {POINTS}, to_apply=two""",
}


@pytest.mark.parametrize("name", INDEXED)
def test_gather_and_scatter(name: str) -> None:
    check(program(INDEXED[name], ADD + SET + TWO + reducer("sub", "f32", "subtract")))


def _comparator(direction: str, order: str) -> str:
    return (
        "before {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n"
        f" ROOT r = pred[] compare(a, b), direction={direction}, type={order}\n}}\n"
    )


@pytest.mark.parametrize("direction", ["LT", "GT"])
@pytest.mark.parametrize("order", ["FLOAT", "TOTALORDER"])
def test_stable_sort(direction: str, order: str) -> None:
    keys = ", ".join(["0", "-0.0", "inf", "-inf", "1", "-1"] * 6 + ["2"] * 4)
    body = f""" k = f32[40] constant({{{keys}}})
 i = s32[40] iota(), iota_dimension=0
 ROOT s = (f32[40], s32[40]) sort(k, i), dimensions={{0}}, is_stable=true, to_apply=before"""
    check(program(body, _comparator(direction, order)))


@pytest.mark.parametrize("n", [1, 2, 37])
def test_sort_by_two_keys(n: int) -> None:
    comparator = """before {
 a = s32[] parameter(0)
 b = s32[] parameter(1)
 c = s32[] parameter(2)
 d = s32[] parameter(3)
 e = s32[] parameter(4)
 f = s32[] parameter(5)
 equal = pred[] compare(a, b), direction=EQ
 less = pred[] compare(a, b), direction=LT
 more = pred[] compare(c, d), direction=GT
 ROOT r = pred[] select(equal, more, less)
}
"""
    body = f""" p = s32[4,{n}] parameter(0)
 three = s32[] constant(3)
 threes = s32[4,{n}] broadcast(three), dimensions={{}}
 q = s32[4,{n}] remainder(p, threes)
 i = s32[4,{n}] iota(), iota_dimension=1
 ROOT s = (s32[4,{n}], s32[4,{n}], s32[4,{n}]) sort(q, p, i), dimensions={{1}}, is_stable=true, to_apply=before"""
    check(program(body, comparator))


def test_topk() -> None:
    check(program(" p = f32[3,9] parameter(0)\n ROOT r = (f32[3,4], s32[3,4]) topk(p), k=4, largest=true"))
    check(
        program(
            " p = f32[8] constant({1, nan, -nan, inf, -0.0, 0, 1, 3})\n"
            " ROOT r = (f32[6], s32[6]) topk(p), k=6, largest=true"
        )
    )


def test_map_and_conditional() -> None:
    angle = reducer("angle", "f32", "atan2")
    body = " p = f32[3,4] parameter(0)\n q = f32[3,4] parameter(1)\n"
    check(program(body + " ROOT r = f32[3,4] map(p, q), dimensions={0,1}, to_apply=angle", angle))
    branches = "".join(
        f"{n} {{\n {n}x = f32[] parameter(0)\n {n}k = f32[] constant({v})\n ROOT {n}s = f32[] add({n}x, {n}k)\n}}\n"
        for n, v in (("a", 1), ("b", 2), ("c", 3))
    )
    for index in (-1, 0, 1, 2, 7):
        body = f" p = f32[] parameter(0)\n i = s32[] constant({index})\n"
        body += " ROOT r = f32[] conditional(i, p, p, p), branch_computations={a, b, c}"
        check(program(body, branches))
