"""gather, scatter and dynamic slices against XLA:CPU: every way to say where, and indices out of bounds."""

from __future__ import annotations

import numpy as np

from heron.evaluator import evaluate
from heron.hlo.text import parse
from tests.conformance.case import Case
from tests.conformance.reducers import FIRST, LOOP, SECOND, SUM_AND_MAX, binary
from tests.conformance.runner import expect_agreement
from tests.conformance.tables import SOME, STEPS, of_type, table
from tests.hlo.ops.agree import program

#: index types with the extremes of each
EXTREMES = {
    "s8": "-128,-1,0,2,127",
    "u8": "0,1,3,128,255",
    "s16": "-32768,-1,0,2,32767",
    "s32": "-2147483648,-1,0,2,2147483647",
    "u32": "0,1,3,2147483648,4294967295",
    "s64": "-9223372036854775808,-1,0,2,9223372036854775807",
    "u64": "0,1,3,9223372036854775808,18446744073709551615",
}


# -- gather ----------------------------------------------------------------------------------------------------------
def _gather(x: str, starts: str, result: str, numbers: str, i: str = "s32") -> str:
    """`starts`: dimensions, then a constant's text."""
    dims, _, values = starts.partition(" ")
    return (
        f" p = T[{x}] parameter(0)\n i = {i}[{dims}] constant({values})\n ROOT r = T[{result}] gather(p, i), {numbers}"
    )


ROWS = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}"
GATHERS = {
    "rows": _gather("5,4", "3 {4,0,4}", "3,4", ROWS),
    "rows out of bounds": _gather("5,4", "4 {5,-1,100,-100}", "4,4", ROWS),
    "slices moved inside": _gather(
        "6,4",
        "4,2 {{4,2},{5,3},{-1,0},{100,-100}}",
        "4,2,2",
        "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={2,2}",
    ),
    "one index for all": _gather(
        "5,4",
        " 3",
        "4",
        "offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={1,4}",
    ),
    "one vector": _gather(
        "5,4",
        "2 {3,1}",
        "",
        "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=0, slice_sizes={1,1}",
    ),
    "scalar indices behind all dimensions": _gather(
        "5,4",
        "2,3 {{0,1,2},{4,3,9}}",
        "2,4,3",
        "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,4}",
    ),
    "vectors in front": _gather(
        "5,6",
        "2,3 {{0,1,2},{4,3,9}}",
        "2,3,3",
        "offset_dims={0,2}, collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=0, slice_sizes={2,3}",
    ),
    "vectors in the middle": _gather(
        "5,6,2",
        "2,2,2 {{{0,1},{2,5}},{{4,3},{-1,9}}}",
        "2,2,2,1",
        "offset_dims={1,3}, collapsed_slice_dims={0}, start_index_map={1,0}, index_vector_dim=1, slice_sizes={1,2,1}",
    ),
    "some dimensions start at 0": _gather(
        "3,4,5",
        "2,1 {{1},{3}}",
        "2,2,3",
        "offset_dims={1,2}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={2,1,3}",
    ),
    "no index entries": _gather(
        "3,4",
        "2,0 {{},{}}",
        "2,2,3",
        "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={}, index_vector_dim=1, slice_sizes={2,3}",
    ),
    "batching dimensions": _gather(
        "2,4,3",
        "3,2,1 {{{0},{3}},{{1},{1}},{{-2},{7}}}",
        "3,2,2",
        "offset_dims={2}, collapsed_slice_dims={}, start_index_map={1}, operand_batching_dims={0,2},"
        " start_indices_batching_dims={1,0}, index_vector_dim=2, slice_sizes={1,2,1}",
    ),
    "batching dimensions behind the vectors": _gather(
        "3,4",
        "1,3 {{0,3,9}}",
        "3,2",
        "offset_dims={1}, collapsed_slice_dims={}, start_index_map={1}, operand_batching_dims={0},"
        " start_indices_batching_dims={1}, index_vector_dim=0, slice_sizes={1,2}",
    ),
    "sorted": _gather("5,4", "3 {0,2,4}", "3,4", ROWS + ", indices_are_sorted=true"),
    "empty slices": _gather(
        "5,4",
        "3 {0,2,9}",
        "3,0",
        "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,0}",
    ),
    "no indices": _gather("5,4", "0 {}", "0,4", ROWS),
}


def gather_cases() -> list[Case]:
    cases = table("gather", SOME, GATHERS)
    for t, values in EXTREMES.items():
        body = _gather("5,4", f"5 {{{values}}}", "5,4", ROWS, t)
        wide = _gather(
            "5,4",
            f"5 {{{values}}}",
            "5,3,2",
            "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={1}, index_vector_dim=1, slice_sizes={3,2}",
            t,
        )
        cases += table("gather", "f32", {f"extremes of {t}": body, f"extremes of {t}, wide": wide})
    return cases


def test_gather() -> None:
    expect_agreement(gather_cases())


# -- scatter ---------------------------------------------------------------------------------------------------------
def _scatter(x: str, starts: str, updates: str, numbers: str, by: str = "add", i: str = "s32") -> str:
    dims, _, values = starts.partition(" ")
    return (
        f" p = T[{x}] parameter(0)\n i = {i}[{dims}] constant({values})\n u = T[{updates}] parameter(1)\n"
        f" ROOT r = T[{x}] scatter(p, i, u), {numbers}, to_apply={by}"
    )


POINTS = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
BANDS = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
BLOCKS = "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1"
SCATTERS = {
    "points": _scatter("6", "4 {0,5,2,3}", "4", POINTS),
    "the same points": _scatter("6", "5 {1,1,5,1,5}", "5", POINTS),
    "points out of bounds": _scatter("6", "5 {-1,6,100,-100,2}", "5", POINTS),
    "rows": _scatter("5,4", "3 {4,0,4}", "3,4", BANDS),
    "narrower rows": _scatter("5,4", "3 {4,0,4}", "3,3", BANDS),
    "whole windows dropped": _scatter("6,4", "4,2 {{4,2},{5,3},{-1,0},{4,3}}", "4,2,2", BLOCKS),
    "one index for all": _scatter(
        "5,4",
        " 3",
        "4",
        "update_window_dims={0}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=0",
    ),
    "scalar indices behind all dimensions": _scatter(
        "5,4",
        "2,3 {{0,1,2},{4,3,9}}",
        "2,4,3",
        "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=2",
    ),
    "vectors in front": _scatter(
        "5,6",
        "2,3 {{0,1,2},{3,3,9}}",
        "2,3,3",
        "update_window_dims={0,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=0",
    ),
    "no index entries": _scatter(
        "3,4",
        "2,0 {{},{}}",
        "2,2,3",
        "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=1",
    ),
    "no index entries, vectors in front": _scatter(
        "2",
        "0,4 {}",
        "4",
        "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={}, index_vector_dim=0",
    ),
    "batching dimensions": _scatter(
        "2,4,3",
        "3,2,1 {{{0},{2}},{{1},{1}},{{-2},{7}}}",
        "3,2,2",
        "update_window_dims={2}, inserted_window_dims={}, scatter_dims_to_operand_dims={1},"
        " input_batching_dims={0,2}, scatter_indices_batching_dims={1,0}, index_vector_dim=2",
    ),
    "sorted and unique": _scatter("6", "3 {0,2,5}", "3", POINTS + ", indices_are_sorted=true, unique_indices=true"),
    "no updates": _scatter("6", "0 {}", "0", POINTS),
    "empty windows": _scatter("5,4", "3 {0,2,9}", "3,0", BANDS),
    "set": _scatter("6", "4 {0,5,2,9}", "4", POINTS, "second"),
    "the last set stays": _scatter("6", "5 {1,1,5,1,5}", "5", POINTS, "second"),
    "the first that is not zero": _scatter("6", "5 {1,1,5,1,5}", "5", POINTS, "first"),
    "in order": _scatter("6", "5 {1,1,5,1,5}", "5", POINTS, "subtract"),
    "kept": _scatter("6", "5 {1,1,5,1,5}", "5", POINTS, "kept"),
}
ORDERED = {
    "maxima": _scatter("6", "5 {1,1,5,1,5}", "5", POINTS, "maximum"),
    "minima of windows": _scatter("6,4", "3,2 {{4,2},{3,1},{3,2}}", "3,2,2", BLOCKS, "minimum"),
    "products": _scatter("6", "5 {1,1,5,1,5}", "5", POINTS, "multiply"),
    "two arrays": f""" p = T[6] parameter(0)
 q = s32[6] parameter(1)
 i = s32[5] constant({{1,1,5,0,-1}})
 u = T[5] parameter(2)
 v = s32[5] parameter(3)
 ROOT r = (T[6], s32[6]) scatter(p, q, i, u, v), {POINTS}, to_apply=both""",
}
KEPT = "kept {\n a = T[] parameter(0)\n b = T[] parameter(1)\n ROOT r = T[] add(a, a)\n}\n"
BEFORE = binary("add") + FIRST + SECOND + KEPT


def scatter_cases() -> list[Case]:
    cases = table("scatter", "f32 bf16 f64 s32 s8 u8 c64", SCATTERS, BEFORE + binary("subtract"), STEPS)
    before = binary("maximum") + binary("minimum") + binary("multiply") + SUM_AND_MAX
    cases += table("scatter", "f32 bf16 s32 u8", ORDERED, before, STEPS)
    logical = {"or": _scatter("6", "5 {1,1,5,1,9}", "5", POINTS, "or"), "set": SCATTERS["set"]}
    cases += table("scatter", "pred", logical, binary("or") + SECOND)
    for t, values in EXTREMES.items():
        bodies = {
            f"extremes of {t}": _scatter("6", f"5 {{{values}}}", "5", POINTS, i=t),
            f"extremes of {t}, rows": _scatter("6,3", f"5 {{{values}}}", "5,2", BANDS, i=t),
        }
        cases += table("scatter", "f32", bodies, binary("add"), STEPS)
    return cases


def test_scatter() -> None:
    expect_agreement(scatter_cases())


def test_reducers_with_loops() -> None:
    """Computations that are no elementwise ops run element by element."""
    x = np.array([-3, 1, 4, 2, 12, 5], np.int32)

    def loop(a: int, b: int) -> int:
        while a < 10 and b > 0:
            a += b
        return a

    def value(body: str, *arrays: np.ndarray) -> list[int]:
        module = parse(program(of_type(body, "s32"), of_type(LOOP, "s32")))
        return evaluate(module, *arrays)[0].tolist()

    pairs = [loop(a, b) for a, b in zip(x[:-1], x[1:], strict=True)]
    window = " p = T[6] parameter(0)\n z = T[] constant(10)\n ROOT r = T[5] reduce-window(p, z), window={size=2}"
    assert value(window + ", to_apply=loop", x) == [10] * 5  # the initial value is enough
    assert value(window.replace("constant(10)", "constant(9)") + ", to_apply=loop", x) == [
        loop(9, pair) for pair in pairs
    ]
    base, updates = np.array([0, 7, -20], np.int32), np.array([3, 4, 5, 6], np.int32)
    want = [loop(loop(0, 3), 5), loop(7, 4), loop(-20, 6)]
    assert value(_scatter("3", "4 {0,1,0,2}", "4", POINTS, "loop"), base, updates) == want


# -- dynamic slices --------------------------------------------------------------------------------------------------
def dynamic_cases() -> list[Case]:
    slices = {
        "slice": """ p = T[5,6] parameter(0)
 i = s32[] constant(4)
 j = s32[] constant(-3)
 ROOT r = T[2,3] dynamic-slice(p, i, j), dynamic_slice_sizes={2,3}""",
        "slice of all": """ p = T[2,3] parameter(0)
 i = s32[] constant(4)
 ROOT r = T[2,3] dynamic-slice(p, i, i), dynamic_slice_sizes={2,3}""",
        "slice of nothing": """ p = T[2,3] parameter(0)
 i = s32[] constant(1)
 ROOT r = T[2,0] dynamic-slice(p, i, i), dynamic_slice_sizes={2,0}""",
        "slice of a scalar": " p = T[] parameter(0)\n ROOT r = T[] dynamic-slice(p), dynamic_slice_sizes={}",
    }
    updates = {
        "update": """ p = T[5,6] parameter(0)
 u = T[2,3] parameter(1)
 i = s32[] constant(4)
 j = s32[] constant(-3)
 ROOT r = T[5,6] dynamic-update-slice(p, u, i, j)""",
        "update of all": """ p = T[2,3] parameter(0)
 u = T[2,3] parameter(1)
 i = s32[] constant(4)
 ROOT r = T[2,3] dynamic-update-slice(p, u, i, i)""",
        "update of nothing": """ p = T[2,3] parameter(0)
 u = T[0,3] parameter(1)
 i = s32[] constant(1)
 ROOT r = T[2,3] dynamic-update-slice(p, u, i, i)""",
    }
    cases = table("dynamic-slice", SOME, slices) + table("dynamic-update-slice", SOME, updates)
    for t, values in EXTREMES.items():
        for n, value in enumerate(values.split(",")):
            body = (
                f" p = f32[6] parameter(0)\n i = {t}[] parameter(1)\n"
                " ROOT r = f32[2] dynamic-slice(p, i), dynamic_slice_sizes={2}"
            )
            x, u, at = np.arange(6, dtype=np.float32), np.full(2, 9, np.float32), np.array(int(value), _dtype(t))
            cases.append(Case("dynamic-slice", "f32", body, [x, at], f"extreme {n} of {t}"))
            body = (
                f" p = f32[6] parameter(0)\n u = f32[2] parameter(1)\n i = {t}[] parameter(2)\n"
                " ROOT r = f32[6] dynamic-update-slice(p, u, i)"
            )
            cases.append(Case("dynamic-update-slice", "f32", body, [x, u, at], f"extreme {n} of {t}"))
    return cases


def _dtype(t: str) -> np.dtype:
    return np.dtype(("int" if t[0] == "s" else "uint") + t[1:])


def test_dynamic_slices() -> None:
    expect_agreement(dynamic_cases())
