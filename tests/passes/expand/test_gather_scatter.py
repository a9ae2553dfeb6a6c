"""Gathers and scatters as loops, against the evaluator: every form of dimension numbers, indices that lie outside."""

from __future__ import annotations

import numpy as np
import pytest

from heron.hlo.ir.module import Module
from heron.hlo.ir.types import by_name
from tests.passes.expand.test_expanders import assert_same_values, module_of, run_pass

GATHERS = [
    ("s32[5,4]", "s32[3,1]", "s32[3,4]", "{1}", "{0}", "{0}", 1, "{1,4}", ""),
    ("s32[5,4]", "s8[3]", "s32[2,3,4]", "{0,2}", "{}", "{0}", 1, "{2,4}", ""),
    ("s32[5,4]", "u32[2,2,3]", "s32[2,3,2]", "{2}", "{1}", "{1,0}", 1, "{2,1}", ""),
    ("s32[5,4]", "s64[2]", "s32[]", "{}", "{0,1}", "{0,1}", 0, "{1,1}", ""),
    ("s32[5,4]", "s32[2]", "s32[3,2]", "{0,1}", "{}", "{1,0}", 0, "{3,2}", ""),
    ("s32[]", "s32[0]", "s32[]", "{}", "{}", "{}", 0, "{}", ""),
    ("s32[5,4]", "s32[3,0]", "s32[3,2,4]", "{1,2}", "{}", "{}", 1, "{2,4}", ""),
    ("s32[3,5,4]", "s8[3,2,1]", "s32[3,2,4]", "{2}", "{1}", "{1}", 2, "{1,1,4}",
     ", operand_batching_dims={0}, start_indices_batching_dims={0}"),
    ("s32[5,3,4,2]", "s32[1,2,3]", "s32[2,4,3]", "{1}", "{0}", "{0}", 0, "{1,1,4,1}",
     ", operand_batching_dims={1,3}, start_indices_batching_dims={2,1}"),
]  # fmt: skip


def wild(module: Module, number: int, seed: int) -> list[np.ndarray]:
    """Inputs whose indices, parameter `number`, lie inside, at the edges and outside."""
    rng = np.random.default_rng(seed)
    found: list[np.ndarray] = []
    for p in module.entry.parameters:
        t = p.shape.element_type
        low, high = (-3 if t.is_signed else 0, 8) if p.attrs["number"] == number else (-50, 50)
        found.append(rng.integers(low, high, p.shape.dims).astype(t.dtype))
    return found


@pytest.mark.parametrize("case", GATHERS)
def test_gather(case: tuple) -> None:
    x, starts, result, offset, collapsed, index_map, vector, sizes, batching = case
    module = module_of(
        f"x = {x} parameter(0); i = {starts} parameter(1); ROOT r = {result} gather(x, i), offset_dims={offset}, "
        f"collapsed_slice_dims={collapsed}, start_index_map={index_map}, index_vector_dim={vector}, "
        f"slice_sizes={sizes}{batching}"
    )
    simple = run_pass("gather-expander", module.clone(), mode="simple")
    for seed in range(3):
        made = module.clone()
        assert_same_values("gather-expander", made, wild(module, 1, seed), exact=True)
        assert simple == (not any(i.opcode == "while" for i in made.instructions()))


ADD = "f { a = T[] parameter(0) b = T[] parameter(1) ROOT c = T[] add(a, b) }"
LAST = "f { a = T[] parameter(0) ROOT b = T[] parameter(1) }"
ODD = "f { a = T[] parameter(0) b = T[] parameter(1) n = T[] negate(a) ROOT c = T[] subtract(n, b) }"
SCATTERS = [
    ("s32[5,4]", "s32[6,1]", "s32[6,4]", "{1}", "{0}", "{0}", 1, ""),
    ("s32[5,4]", "u8[6]", "s32[2,6,3]", "{0,2}", "{}", "{0}", 1, ""),
    ("s32[5,4]", "u32[2,6]", "s32[6]", "{}", "{0,1}", "{1,0}", 0, ""),
    ("s32[5,4]", "s64[2]", "s32[2,3]", "{0,1}", "{}", "{0,1}", 0, ""),
    ("s32[]", "s32[3,0]", "s32[3]", "{}", "{}", "{}", 1, ""),
    ("s32[3,5,4]", "s8[3,6,1]", "s32[3,6,4]", "{2}", "{1}", "{1}", 2,
     ", input_batching_dims={0}, scatter_indices_batching_dims={0}"),
]  # fmt: skip


@pytest.mark.parametrize("case", SCATTERS)
@pytest.mark.parametrize("combiner", [ADD, LAST, ODD])
def test_scatter(case: tuple, combiner: str) -> None:
    x, starts, updates, window, inserted, index_map, vector, batching = case
    module = module_of(
        f"x = {x} parameter(0); i = {starts} parameter(1); u = {updates} parameter(2); ROOT r = {x} scatter(x, i, u), "
        f"update_window_dims={window}, inserted_window_dims={inserted}, scatter_dims_to_operand_dims={index_map}, "
        f"index_vector_dim={vector}, to_apply=f{batching}",
        combiner.replace("T[", "s32["),
    )
    for seed in range(3):
        assert_same_values("scatter-expander", module.clone(), wild(module, 1, seed), exact=True)


def test_scatter_of_two() -> None:
    module = module_of(
        "x = f32[5,4] parameter(0); y = s32[5,4] parameter(1); i = s32[6,1] parameter(2); u = f32[6,4] parameter(3); "
        "v = s32[6,4] parameter(4); ROOT r = (f32[5,4], s32[5,4]) scatter(x, y, i, u, v), update_window_dims={1}, "
        "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f",
        "f { a = f32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = s32[] parameter(3) "
        "e = f32[] maximum(a, c) g = s32[] add(b, d) ROOT t = (f32[], s32[]) tuple(e, g) }",
    )
    assert_same_values("scatter-expander", module, wild(module, 2, 1), exact=True)


@pytest.mark.parametrize(
    ("t", "combiner", "extra", "mode", "changed"),
    [
        ("f32", ADD, "", "indeterminate", True),
        ("s32", ADD, "", "indeterminate", False),
        ("f32", ADD, ", unique_indices=true", "indeterminate", False),
        ("s32", LAST, "", "indeterminate", True),
        ("f32", ADD, "", "simple", False),
        ("f32", ADD.replace("add(", "maximum("), "", "indeterminate", False),
    ],
)
def test_modes(t: str, combiner: str, extra: str, mode: str, changed: bool) -> None:
    module = module_of(
        f"x = {t}[5,4] parameter(0); i = s32[6,1] parameter(1); u = {t}[6,4] parameter(2); ROOT r = {t}[5,4] "
        "scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
        f"index_vector_dim=1, to_apply=f{extra}",
        combiner.replace("T[", f"{by_name(t).name}["),
    )
    assert run_pass("scatter-expander", module, mode=mode) == changed
