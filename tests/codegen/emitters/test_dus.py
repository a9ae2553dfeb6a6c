"""In-place dynamic-update-slice: when it is allowed, and that only the update is written."""

from __future__ import annotations

import numpy as np
import pytest

from heron import targets
from heron.analysis.fusion.fusion import as_fusion
from heron.analysis.fusion.in_place import updates
from heron.codegen.emit import emit_fusion
from tests.codegen.run_kernel import check, root_fusion
from tests.codegen.test_elemental_indexing import CASES, array, source

PLAIN = ["f32[1000,8]", "f32[2,8]", "s32[]", "s32[]"]


@pytest.mark.parametrize(
    "name, allowed",
    [
        ("dynamic-update-slice in place", True),
        ("in place same place", True),
        ("in place read elsewhere", False),
        ("dynamic-update-slice", False),
    ],
)
def test_when(name: str, allowed: bool) -> None:
    root = root_fusion(source(*CASES[name]))
    pairs, why_not = updates(as_fusion(root))
    assert pairs == ({0: 0} if allowed else {}) and bool(why_not) is not allowed


def test_only_the_update_is_walked() -> None:
    root = root_fusion(source(PLAIN, "ROOT r = f32[1000,8] dynamic-update-slice(p0, p1, p2, p3)"))
    kernel = emit_fusion(root, "k", targets.get("cpu"))
    assert kernel.emitter == "dus" and kernel.launch.work_items == 16
    assert kernel.args[-1].alias == 0
    assert emit_fusion(root, "k", targets.get("cpu"), in_place=False).emitter == "loop"


@pytest.mark.parametrize("gpu", [False, True])
def test_values(gpu: bool) -> None:
    inputs = [array(s) for s in PLAIN]
    inputs[2:] = [np.array(997, np.int32), np.array(0, np.int32)]
    check(source(PLAIN, "ROOT r = f32[1000,8] dynamic-update-slice(p0, p1, p2, p3)"), inputs, gpu=gpu, parts=3)


def test_bare_instruction_and_two_updates() -> None:
    shapes = ["f32[6,4]", "f32[8]", "f32[2,4]", "f32[3]", "s32[]"]
    body = (
        "a = f32[6,4] dynamic-update-slice(p0, p2, p4, p4)\n b = f32[8] dynamic-update-slice(p1, p3, p4)\n"
        " ROOT r = (f32[6,4], f32[8]) tuple(a, b)"
    )
    root = root_fusion(source(shapes, body))
    assert updates(as_fusion(root))[0] == {0: 0, 1: 1}
    inputs = [array(s) for s in shapes]
    check(source(shapes, body), inputs, parts=2)
    check(source(shapes, body), inputs, gpu=True)
    kernel = emit_fusion(root, "k", targets.get("sm_90"))
    assert kernel.launch.grid == (2, 1, 1) and [a.alias for a in kernel.args] == [None] * 5 + [0, 1]


@pytest.mark.parametrize("kind", ["f32", "s4", "pred", "c64"])
@pytest.mark.parametrize("gpu", [False, True])
def test_views_of_what_is_updated(kind: str, gpu: bool) -> None:
    """The array is updated as seen through a bitcast, and handed on as another."""
    shapes = [f"{kind}[24]", f"{kind}[3,2]", "s32[]"]
    body = (
        f"a = {kind}[6,4] bitcast(p0)\n z = s32[] constant(1)\n"
        f" u = {kind}[6,4] dynamic-update-slice(a, p1, p2, z)\n ROOT r = {kind}[2,12] bitcast(u)"
    )
    text = source(shapes, body)
    assert updates(as_fusion(root_fusion(text)))[0] == {0: 0}
    dtype = root_fusion(text).operands[0].shape.element_type.dtype
    values = [(np.arange(24) % 2).astype(dtype), np.ones((3, 2), dtype), np.array(2, np.int32)]
    check(text, values, parts=2, gpu=gpu)


STACKED = """a = f32[1,20,4] negate(p1)
  i = f32[1,19,4] slice(p2), slice={[0:1],[0:19],[0:4]}
  n = f32[] constant(-1)
  b = f32[1,20,4] pad(i, n), padding=0_0x1_0x0_0
  c = f32[2,20,4] concatenate(a, b), dimensions={0}
  e = f32[2,20,4] exponential(c)
  u = f32[1,2,20,4] reshape(e)
  z = s32[] constant(0)
  ROOT r = f32[7,2,20,4] dynamic-update-slice(p0, u, p3, z, z, z)"""


@pytest.mark.parametrize("start", [0, 3, 9])
def test_operands_of_a_concatenation_have_loops_of_their_own(start: int) -> None:
    shapes = ["f32[7,2,20,4]", "f32[1,20,4]", "f32[1,20,4]", "s32[]"]
    inputs = [*(array(s) for s in shapes[:3]), np.array(start, np.int32)]
    for parts in 1, 3:
        check(source(shapes, STACKED), inputs, parts=parts, rtol=1e-6)
    kernel = emit_fusion(root_fusion(source(shapes, STACKED)), "k", targets.get("cpu"))
    assert kernel.emitter == "dus" and kernel.launch.work_items == 80 + 20
    assert "scf.if" not in str(kernel.module)


def test_short_operands_share_a_loop() -> None:
    shapes = ["f32[7,20,2]", "f32[20,1]", "f32[20,1]", "s32[]"]
    body = """c = f32[20,2] concatenate(p1, p2), dimensions={1}
  u = f32[1,20,2] reshape(c)
  z = s32[] constant(0)
  ROOT r = f32[7,20,2] dynamic-update-slice(p0, u, p3, z, z)"""
    inputs = [*(array(s) for s in shapes[:3]), np.array(2, np.int32)]
    check(source(shapes, body), inputs, parts=3)
    assert emit_fusion(root_fusion(source(shapes, body)), "k", targets.get("cpu")).launch.work_items == 20
