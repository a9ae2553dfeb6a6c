"""Reductions of concatenations, and of arrays larger than the caches, on the CPU against the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from heron import targets
from heron.codegen.emit import emit_fusion
from tests.codegen.run_kernel import check, root_fusion, run_instruction

RNG = np.random.default_rng(5)


def joined(parts: list[str], whole: str, result: str, dimension: int, op: str = "add") -> str:
    """A program that reduces squares of a concatenation along the dimension in which its operands meet."""
    given = [f"p{n} = {shape} parameter({n})" for n, shape in enumerate(parts)]
    names = ", ".join(f"p{n}" for n in range(len(parts)))
    return f"""HloModule m
r {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] {op}(a, b) }}
f {{ {" ".join(given)} z = f32[] constant(-1)
  c = {whole} concatenate({names}), dimensions={{{dimension}}}
  s = {whole} multiply(c, c)
  ROOT q = {result} reduce(s, z), dimensions={{{dimension}}}, to_apply=r }}
ENTRY e {{ {" ".join(given)} ROOT k = {result} fusion({names}), kind=kInput, calls=f }}"""


WINDOWS = joined(["f32[1,6,70]"] * 13, "f32[13,6,70]", "f32[6,70]", 0)
CASES = [
    WINDOWS,
    joined(["f32[2,6,70]"] * 20, "f32[40,6,70]", "f32[6,70]", 0, "maximum"),
    joined(["f32[29,20]", "f32[29,33]", "f32[29,1]"], "f32[29,54]", "f32[29]", 1),
    joined(["f32[9,20,3]", "f32[9,33,3]"], "f32[9,53,3]", "f32[9,3]", 1),
    joined(["f32[30,90]", "f32[0,90]", "f32[7,90]"], "f32[37,90]", "f32[90]", 0),
]


def values(source: str) -> list[np.ndarray]:
    shapes = [i.shape.dims for i in root_fusion(source).operands]
    return [RNG.normal(size=shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("source", CASES)
def test_each_operand_has_a_loop_of_its_own(source: str) -> None:
    """No element of the sum asks which operand it is from."""
    kernel = emit_fusion(root_fusion(source), "k", targets.get("cpu"))
    assert kernel.emitter == "reduce"
    assert "scf.if" not in str(kernel.module)
    check(source, values(source), rtol=1e-5, atol=1e-4, parts=3)


def test_a_long_sum_of_a_concatenation_is_still_cut_for_accuracy() -> None:
    source = joined(["f32[900,70]", "f32[700,70]"], "f32[1600,70]", "f32[70]", 0)
    check(source, values(source), rtol=1e-5, atol=1e-3, parts=2)


def test_few_elements_have_one_loop() -> None:
    source = joined(["f32[9,20]", "f32[9,33]", "f32[9,1]"], "f32[9,54]", "f32[9]", 1)
    assert "scf.if" in str(emit_fusion(root_fusion(source), "k", targets.get("cpu")).module)
    check(source, values(source), rtol=1e-5, atol=1e-4)


def test_too_many_operands_share_a_loop() -> None:
    source = joined(["f32[1,70]"] * 65, "f32[65,70]", "f32[70]", 0)
    assert "scf.if" in str(emit_fusion(root_fusion(source), "k", targets.get("cpu")).module)
    check(source, values(source), rtol=1e-5, atol=1e-4)


LARGE = """HloModule m
r { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
f { p = f32[ROWS,1100] parameter(0) v = f32[1100] parameter(1) z = f32[] constant(2)
  w = f32[ROWS,1100] broadcast(v), dimensions={1}
  s = f32[ROWS,1100] multiply(p, w)
  q = f32[ROWS] reduce(s, z), dimensions={1}, to_apply=r
  ROOT n = f32[ROWS] negate(q) }
ENTRY e { p = f32[ROWS,1100] parameter(0) v = f32[1100] parameter(1)
  ROOT k = f32[ROWS] fusion(p, v), kind=kInput, calls=f }"""


@pytest.mark.parametrize(
    ("rows", "form"),
    [
        (1600, "rows of 1100, 8 at a time"),
        (1590, "rows of 1100, 6 at a time"),
        (1613, "rows of 1100"),
        (64, "rows of 1100"),
    ],
)
def test_rows_of_a_large_array_are_reduced_together(rows: int, form: str) -> None:
    """Their loops wait for memory, and several reads are under way at once. Any thread gives the same bits."""
    source = LARGE.replace("ROWS", str(rows))
    kernel = emit_fusion(root_fusion(source), "k", targets.get("cpu"))
    assert kernel.notes["form"] == form
    given = values(source)
    check(source, given, rtol=1e-5, atol=1e-4)
    (one,), (many,) = (run_instruction(root_fusion(source), given, parts) for parts in (1, 7))
    assert np.array_equal(one, many)
