"""Copies in kernels: of copies beside each other, and of arrays that an update overwrites."""

from __future__ import annotations

import numpy as np
import pytest

from heron.analysis.fusion.in_place import in_place_pairs
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.passes.copies.copy_fusion import CopyFusion
from tests.buffers.compiled import assert_survives, copies, run_passes

WRAPPED = ("fusion-wrapper", "copy-insertion", "copy-fusion", "memory-scheduler")
FUSED = ("instruction-fusion", *WRAPPED)


def kernels(module: Module) -> list[str]:
    """The opcodes inside each kernel of the entry, without parameters and constants."""
    return [
        " ".join(x.opcode for x in i.calls.instructions if x.opcode not in ("parameter", "constant"))
        for i in module.schedule[module.entry]  # type: ignore[index]
        if i.opcode == "fusion"
    ]


UPDATE = """HloModule m

ENTRY main {
  x = f32[8]{0} parameter(0)
  s = s32[] parameter(1)
  u = f32[SIZE]{0} slice(x), slice={[0:SIZE]}
  n = f32[SIZE]{0} negate(u)
  ROOT d = f32[8]{0} dynamic-update-slice(x, n, s)
}
"""


@pytest.mark.parametrize(("size", "whole"), [(1, False), (3, False), (4, True), (7, True)])
def test_an_update_of_most_of_an_array_writes_all_of_it(size: int, whole: bool) -> None:
    inputs = [np.arange(8, dtype=np.float32), np.asarray(1, np.int32)]
    module, _, _ = assert_survives(UPDATE.replace("SIZE", str(size)), FUSED, inputs)
    assert copies(module) == (0 if whole else 1) + sum("copy" in k for k in kernels(module))
    assert any("copy" in k for k in kernels(module)) == whole
    update = next(i for i in module.entry.instructions if i.opcode == "fusion" and i.is_root)
    assert bool(in_place_pairs(update)) != whole


def test_what_computes_the_update_goes_along() -> None:
    """A stencil reads its neighbours, which an update in place would have overwritten."""
    text = """HloModule m

ENTRY main {
  x = f32[8]{0} parameter(0)
  a = f32[6]{0} slice(x), slice={[0:6]}
  b = f32[6]{0} slice(x), slice={[2:8]}
  n = f32[6]{0} add(a, b)
  one = s32[] constant(1)
  ROOT d = f32[8]{0} dynamic-update-slice(x, n, one)
}
"""
    module, assignment, _ = assert_survives(text, FUSED)
    assert kernels(module) == ["copy slice slice add dynamic-update-slice"] and assignment.temp_bytes == 0


def test_copies_and_fills_beside_each_other_are_one_kernel() -> None:
    text = """HloModule m

ENTRY main {
  x = f32[8]{0} parameter(0)
  y = s32[3]{0} parameter(1)
  zero = f32[] constant(0)
  z = f32[8]{0} broadcast(zero), dimensions={}
  ROOT t = (f32[8]{0}, s32[3]{0}, f32[8]{0}, f32[8]{0}, f32[]) tuple(x, y, z, z, zero)
}
"""
    module, assignment, ctx = assert_survives(text, WRAPPED)
    assert sum(i.opcode == "copy" for i in module.entry.instructions) == 0 and len(kernels(module)) == 1
    assert kernels(module)[0].split().count("copy") == 3 and kernels(module)[0].split().count("broadcast") == 2
    assert any(d.rule == "copy-fusion" and d.ok and d.reason.startswith("5 copies") for d in ctx.trace.decisions)


def test_copies_that_need_an_order_stay_apart() -> None:
    """A swap in a loop: each copy reads what another overwrites."""
    text = """HloModule m

body {
  p = (s32[], f32[4]{0}, f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  a = f32[4]{0} get-tuple-element(p), index=1
  b = f32[4]{0} get-tuple-element(p), index=2
  ROOT t = (s32[], f32[4]{0}, f32[4]{0}) tuple(j, b, a)
}

cond {
  cp = (s32[], f32[4]{0}, f32[4]{0}) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  cn = s32[] constant(3)
  ROOT lt = pred[] compare(ci, cn), direction=LT
}

ENTRY main {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[4]{0}, f32[4]{0}) tuple(zero, x, y)
  ROOT w = (s32[], f32[4]{0}, f32[4]{0}) while(init), condition=cond, body=body
}
"""
    module, _, _ = assert_survives(text, WRAPPED)
    body = next(i for i in module.entry.instructions if i.opcode == "while").body
    assert sum(i.opcode == "copy" for i in body.instructions) == 3
    assert kernels(module) == ["copy copy copy tuple"], "what the loop starts from needs no order"


def test_limits() -> None:
    outs = ", ".join(["f32[4]{0}"] * 7)
    text = f"HloModule m\n\nENTRY main {{\n  x = f32[4]{{0}} parameter(0)\n  ROOT t = ({outs}) tuple({', '.join('x' * 7)})\n}}\n"
    module = parse(text)
    ctx = run_passes(module, ("copy-insertion",))
    assert CopyFusion(max_outputs=3).run(module, ctx)
    made = [len(i.shape.tuple_shapes or ()) for i in module.entry.instructions if i.opcode == "fusion"]
    assert sorted(made) == [3, 3] and sum(i.opcode == "copy" for i in module.entry.instructions) == 1
