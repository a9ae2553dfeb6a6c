"""Concatenations whose operands lie beside each other in memory, a few elements of each: one loop on the CPU."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron import targets
from heron.codegen.emit import emit_fusion
from heron.codegen.llvm.jit import host
from heron.compiling import compile
from heron.hlo import text
from tests.codegen.run_kernel import check, root_fusion
from tests.codegen.test_elemental_indexing import array, source

STACK = (
    ["f32[50,20]", "f32[50,20]"],
    "a = f32[50,20] multiply(p0, p1)\n b = f32[50,20] add(p0, p1)\n u = f32[50,20,1] reshape(a)\n"
    " v = f32[50,20,1] reshape(b)\n w = f32[50,20,1] reshape(p0)\n"
    " ROOT r = f32[50,20,3] concatenate(u, v, w), dimensions={2}",
)
TABLE = (
    "c = u8[90,4] concatenate(p0, p1), dimensions={1}\n n = s32[90,4] convert(c)\n i = s32[360,1] reshape(n)\n"
    " ROOT r = u8[360,1] gather(p2, i), offset_dims={1}, collapsed_slice_dims={}, start_index_map={0}, "
    "index_vector_dim=1, slice_sizes={1}"
)
CASES = [
    STACK,
    # a point of coordinates and a constant, several elements of one operand, two outputs
    (["f32[100,2]"], "z = f32[] constant(1)\n ROOT r = f32[100,3] pad(p0, z), padding=0_0x0_1"),
    (
        ["f32[70,3]", "f32[70,2]", "f32[70,5]"],
        "n = f32[70,3] negate(p0)\n c = f32[70,5] concatenate(n, p1), dimensions={1}\n m = f32[70,5] multiply(c, p2)\n"
        " ROOT r = (f32[70,5], f32[70,5]) tuple(c, m)",
    ),
    # the innermost dimension in memory is the first
    (["f32[1,60]{0,1}", "f32[2,60]{0,1}"], "ROOT r = f32[3,60]{0,1} concatenate(p0, p1), dimensions={0}"),
    # by turns: behind a reshape, as indices of a table
    (
        ["s32[64,1]", "s32[64,1]"],
        "n = s32[64,1] negate(p1)\n c = s32[64,2] concatenate(p0, n), dimensions={1}\n"
        " d = s32[128] reshape(c)\n ROOT r = s32[128] abs(d)",
    ),
    (["u8[90,1]", "u8[90,3]", "u8[30]"], TABLE),
    # and by every second element of a pad
    (
        ["f32[40]", "f32[40]"],
        "z = f32[] constant(0)\n a = f32[80] pad(p0, z), padding=0_1_1\n b = f32[80] pad(p1, z), padding=1_0_1\n"
        " ROOT r = f32[80] add(a, b)",
    ),
]


def values(shape: str) -> np.ndarray:
    given = array(shape.replace("u8", "s32"))
    return np.abs(given).astype(np.uint8) if shape[0] == "u" else given


@pytest.mark.parametrize("shapes, body", CASES)
def test_one_loop_stores_an_element_of_each(shapes: list[str], body: str) -> None:
    kernel = emit_fusion(root_fusion(source(shapes, body)), "k", targets.get("cpu"))
    ir = str(kernel.module)
    assert (kernel.emitter, "+" in kernel.notes["loops"]) == ("concatenate", False)
    assert "scf.if" not in ir and ir.count("scf.for") == 1
    check(source(shapes, body), [values(s) for s in shapes], parts=3)


@pytest.mark.parametrize("shapes, body", CASES)
def test_on_gpus_each_operand_has_its_blocks(shapes: list[str], body: str) -> None:
    check(source(shapes, body), [values(s) for s in shapes], gpu=True)


def test_whole_vectors_are_stored() -> None:
    """Elements of the three operands are brought together in registers."""
    module = text.parse(source(["f32[4096]"] * 3, _stacked(4096, 3)))
    code = str(compile(module, "x86-64-v4").stage("asm"))
    brought = {512: r"vpermt2ps.*zmm", 256: r"vblendps.*ymm"}.get(host().width, "")
    assert re.search(brought, code) and "vscatter" not in code


def _stacked(n: int, count: int) -> str:
    views = [f"v{k} = f32[{n},1] reshape(p{k})" for k in range(count)]
    names = ", ".join(f"v{k}" for k in range(count))
    return "\n".join([*views, f" ROOT r = f32[{n},{count}] concatenate({names}), dimensions={{1}}"])


@pytest.mark.parametrize("count", [9, 40, 64])
def test_many_operands_share_a_loop(count: int) -> None:
    shapes, body = [f"f32[{count + 3}]"] * count, _stacked(count + 3, count)
    kernel = emit_fusion(root_fusion(source(shapes, body)), "k", targets.get("cpu"))
    assert "+" not in kernel.notes["loops"] and str(kernel.module).count("scf.for") == 1
    check(source(shapes, body), [array(s) for s in shapes], parts=3)


def test_rows_of_two_pieces_are_one_loop_if_they_are_short() -> None:
    """Long ones have a loop for each piece."""
    shapes = ["f32[40,33]", "f32[40,33]"]
    kernel = emit_fusion(
        root_fusion(source(shapes, "ROOT r = f32[40,66] concatenate(p0, p1), dimensions={1}")), "k", targets.get("cpu")
    )
    assert str(kernel.module).count("tensor.insert") == 1
    wide = [f"f32[20,{n}]" for n in (100, 60)]
    body = "ROOT r = f32[20,160] concatenate(p0, p1), dimensions={1}"
    kernel = emit_fusion(root_fusion(source(wide, body)), "k", targets.get("cpu"))
    assert kernel.notes["loops"].count("+") == 1
    check(source(wide, body), [array(s) for s in wide], parts=3)


@settings(max_examples=10, derandomize=True)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=4), st.integers(1, 40), st.booleans())
def test_any_sizes(parts: list[int], rows: int, flat: bool) -> None:
    if not sum(parts):
        return
    shapes = [f"s32[{rows},{n}]" for n in parts]
    names, whole = ", ".join(f"p{k}" for k in range(len(parts))), f"s32[{rows},{sum(parts)}]"
    end = f"s32[{rows * sum(parts)}]" if flat else whole
    body = f"c = {whole} concatenate({names}), dimensions={{1}}\n d = {end} reshape(c)\n ROOT r = {end} negate(d)"
    check(source(shapes, body), [array(s) for s in shapes], parts=2)
