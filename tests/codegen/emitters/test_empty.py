"""CPU kernels whose results have no elements have no work items: one would write beside memory that nobody has."""

from __future__ import annotations

import pytest

from heron import targets
from heron.codegen.emit import emit_fusion
from tests.codegen.run_kernel import root_fusion

HEAD = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
total { a = f32[] parameter(0) b = f32[] parameter(1) ROOT p = pred[] compare(a, b), direction=LT, type=TOTALORDER }
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT p = pred[] compare(a, b), direction=LT }
"""
#: the parameters and the op, by the kernel's form
EMPTY = {
    "radix sort": ("p0 = f32[0,9000]", "f32[0,9000] sort(p0), dimensions={1}, is_stable=true, to_apply=total"),
    "radix sort of columns": ("p0 = f32[9000,0]", "f32[9000,0] sort(p0), dimensions={0}, is_stable=true, to_apply=total"),
    "radix sort, NaNs apart": ("p0 = f32[0,9000]", "f32[0,9000] sort(p0), dimensions={1}, is_stable=true, to_apply=less"),
    "merge sort": ("p0 = f32[0,7]", "f32[0,7] sort(p0), dimensions={1}, is_stable=true, to_apply=less"),
    "transpose": ("p0 = f32[0,64,64]", "f32[64,64,0] transpose(p0), dimensions={2,1,0}"),
    "reduce": ("p0 = f32[0,64] p1 = f32[]", "f32[0] reduce(p0, p1), dimensions={1}, to_apply=add"),
    "concatenate": ("p0 = f32[0,64] p1 = f32[0,3]", "f32[0,67] concatenate(p0, p1), dimensions={1}"),
    "scan": ("p0 = f32[0,64] p1 = f32[]", "f32[0,64] reduce-window(p0, p1), window={size=1x64 pad=0_0x63_0}, to_apply=add"),
    "update": (
        "p0 = f32[0,64] p1 = f32[0,3] p2 = s32[] p3 = s32[]",
        "f32[0,64] dynamic-update-slice(p0, p1, p2, p3)",
    ),
    "loop": ("p0 = f32[0,64]", "f32[0,64] negate(p0)"),
}  # fmt: skip


@pytest.mark.parametrize("form", EMPTY)
def test_nothing_is_no_work(form: str) -> None:
    given, op = EMPTY[form]
    shapes = [word for word in given.split() if "[" in word]
    parameters = "\n".join(f"p{n} = {shape} parameter({n})" for n, shape in enumerate(shapes))
    args = ", ".join(f"p{n}" for n in range(len(shapes)))
    fused = f"f {{\n{parameters}\nROOT r = {op}\n}}\n"
    entry = f"ENTRY e {{\n{parameters}\nROOT r = {op.split()[0]} fusion({args}), kind=kLoop, calls=f\n}}\n"
    kernel = emit_fusion(root_fusion(HEAD + fused + entry), "k", targets.get("cpu"))
    assert kernel.launch.work_items == 0, kernel.notes
