"""The one analysis of a fusion's kernel: kinds with their forms, what asks it, and how long an answer holds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from heron import targets
from heron.analysis.fusion import sharing
from heron.analysis.fusion.analysis import analyse
from heron.analysis.fusion.fusion import fusion_of
from heron.codegen.emit import emit_fusion
from heron.hlo.ir.instruction import Instruction
from tests.codegen.run_kernel import root_fusion
from tests.codegen.test_elemental_indexing import source

TURN = (["f32[64,96]"], "ROOT r = f32[96,64] transpose(p0), dimensions={1,0}")
SHORT = (["f32[8,6]"], "ROOT r = f32[6,8] transpose(p0), dimensions={1,0}")
UPDATE = (["f32[100,8]", "f32[2,8]", "s32[]"], "ROOT r = f32[100,8] dynamic-update-slice(p0, p1, p2, p2)")
JOIN = (["f32[40]", "f32[60]"], "ROOT r = f32[100] concatenate(p0, p1), dimensions={0}")
SLICES = (
    ["f32[40]"],
    "a = f32[10] slice(p0), slice={[0:10]}\n b = f32[30] slice(p0), slice={[10:40]}\n"
    " ROOT r = (f32[10], f32[30]) tuple(a, b)",
)
SUM = (["f32[100,128]"], "z = f32[] constant(0)\n ROOT r = f32[100] reduce(p0, z), dimensions={1}, to_apply=add")
ROWS = (
    ["f32[100,128]"],
    "z = f32[] constant(0)\n s = f32[100] reduce(p0, z), dimensions={1}, to_apply=add\n"
    " b = f32[100,128] broadcast(s), dimensions={0}\n ROOT r = f32[100,128] divide(p0, b)",
)


def fusion(shapes: list[str], body: str) -> Instruction:
    return root_fusion(source(shapes, body))


@pytest.mark.parametrize(
    ("case", "kind", "asked"),
    [
        (TURN, "transpose", ""),
        (SHORT, "loop", "transpose"),
        (UPDATE, "dus", ""),
        (JOIN, "concatenate", ""),
        (SLICES, "slices", ""),
        (SUM, "reduce", ""),
        (ROWS, "rows", ""),
    ],
)
@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_the_kind_is_the_emitter_of_the_kernel(case: tuple[list[str], str], kind: str, asked: str, target: str) -> None:
    i, machine = fusion(*case), targets.get(target)
    analysis = analyse(i, machine)
    assert (analysis.kind, analysis.asked, analysis.wanted) == (kind, asked, asked or kind)
    kernel = emit_fusion(i, "k", machine)
    assert kernel.emitter == kind and kernel.notes["reason"] == analysis.reason
    assert kernel.decision is not None and kernel.decision.ok is not bool(asked)
    assert {n: a.alias for n, a in enumerate(kernel.args[len(i.operands) :]) if a.alias is not None} == analysis.updates


def test_a_fusion_that_no_program_has_is_analysed() -> None:
    assert analyse(fusion_of(fusion(*SUM).calls)).kind == "reduce"


def test_an_update_out_of_place_is_a_loop() -> None:
    assert analyse(fusion(*UPDATE), in_place=False).kind == "loop"


def test_an_answer_holds_while_its_computation_is_unchanged() -> None:
    i, other = fusion(*SUM), fusion(*ROWS)
    first = analyse(i)
    other.calls.root.mark_changed()
    assert analyse(i) is first
    i.calls.root.mark_changed()
    assert analyse(i) is not first


def calls_until(function: Callable[[], object], wanted: Callable[..., object]) -> int:
    """The number of calls of functions of this project from `function` to `wanted`, both included."""
    depths: list[int] = []

    def look(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or frame.f_code is not wanted.__code__:
            return
        depth, at = 0, frame
        while at.f_back is not None and at.f_code is not calls_until.__code__:
            depth += "heron" in at.f_code.co_filename and at.f_code.co_name != "<lambda>"
            at = at.f_back
        depths.append(depth)

    sys.setprofile(look)
    try:
        function()
    finally:
        sys.setprofile(None)
    return min(depths)


def test_the_analysis_is_a_call_away() -> None:
    rows = fusion(*ROWS)
    assert calls_until(lambda: sharing.may_share_buffer(rows, 0, ()), analyse) <= 3
    assert calls_until(lambda: emit_fusion(fusion(*SUM), "k", targets.get("cpu")), analyse) <= 3
