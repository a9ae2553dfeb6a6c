"""topk on the CPU in one pass over the rows: which are selected so, and their values and order against the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from heron import targets
from heron.codegen.emit import emit_fusion
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo import text
from tests.codegen.run_kernel import root_fusion


def program(t: str, rows: int, n: int, k: int, largest: bool = True) -> str:
    result = f"({t}[{rows},{k}], s32[{rows},{k}])"
    order = str(largest).lower()
    return f"HloModule m\n\nENTRY e {{\n x = {t}[{rows},{n}] parameter(0)\n ROOT r = {result} topk(x), k={k}, largest={order}\n}}\n"


def rows_of(t: np.dtype, n: int) -> np.ndarray:
    """Ascending, descending, equal and random rows, and floats that total order alone tells apart."""
    rng = np.random.default_rng(n)
    x = np.stack([np.arange(n), np.arange(n)[::-1], np.full(n, 3), rng.integers(-40, 40, n), rng.integers(0, 9, n)])
    x = (x % 251 if t.kind == "u" else x).astype(t)
    if t.kind == "f":
        x[2] = np.where(np.arange(n) % 3, -0.0, 0.0)
        x[3, n // 2 :] = np.nan
        x[4, : n // 2] = -np.nan
        x[4, n // 2 :] = -np.inf
    return x


@pytest.mark.parametrize("t", ["f32", "s32", "u32", "f16", "s8"])
@pytest.mark.parametrize(
    "n, k, largest", [(4, 1, True), (17, 5, False), (65, 64, True), (70, 3, False), (300, 64, True), (260, 8, True)]
)
def test_selected(t: str, n: int, k: int, largest: bool) -> None:
    module = text.parse(program(t, 5, n, k, largest))
    x = rows_of(module.entry.parameters[0].shape.element_type.dtype, n)
    compiled = compile(module, "cpu")
    assert [kernel.emitter for kernel in compiled.kernels] == ["topk"]
    for ours, expected in zip(compiled(x), evaluate(module, x), strict=True):
        assert np.array_equal(np.asarray(ours).view(np.uint8), np.asarray(expected).view(np.uint8))


@pytest.mark.parametrize("t, n, k", [("f32", 300, 65), ("f32", 11, 3), ("f64", 300, 3)])
def test_others_are_sorted(t: str, n: int, k: int) -> None:
    """Long lists, short rows, and elements that leave no room for a position."""
    compiled = compile(text.parse(program(t, 2, n, k)), "cpu")
    assert "topk" not in [kernel.emitter for kernel in compiled.kernels]


def test_blocks_vectorise() -> None:
    module = text.parse(program("f32", 4, 4096, 8))
    kernel = emit_fusion(root_fusion(str(module)), "k", targets.get("cpu"))
    assert kernel.launch.work_items == 4
    assert "vpmaxud" in str(compile(module, "x86-64-v3").stage("asm"))
