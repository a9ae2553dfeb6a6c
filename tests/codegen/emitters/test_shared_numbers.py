"""Numbers that several parts of a GPU's kernel need are computed once, ahead of what tells the parts apart."""

from __future__ import annotations

import pytest

from heron import targets
from heron.codegen.emit import emit_fusion
from tests.codegen.run_gpu_kernel import ptx
from tests.codegen.run_kernel import root_fusion
from tests.codegen.test_elemental_indexing import source

ROOT = "t = f32[] sqrt(p0)\n"
SCALED = "{name}b = {shape} broadcast(t), dimensions={{}}\n {name} = {shape} multiply({of}, {name}b)\n"
#: reducing, transposing, updating in place, looping: kernels whose parts have separate blocks
KERNELS = {
    "reduce": (
        ["f32[]", "f32[1024,256]", "f32[64,64]"],
        "z = f32[] constant(0)\n s = f32[256] reduce(p1, z), dimensions={0}, to_apply=add\n "
        + SCALED.format(name="a", shape="f32[256]", of="s")
        + SCALED.format(name="b", shape="f32[64,64]", of="p2")
        + "ROOT r = (f32[256], f32[64,64]) tuple(a, b)",
    ),
    "loop": (
        ["f32[]", "f32[1000]", "f32[64,64]"],
        SCALED.format(name="a", shape="f32[1000]", of="p1")
        + SCALED.format(name="b", shape="f32[64,64]", of="p2")
        + "ROOT r = (f32[1000], f32[64,64]) tuple(a, b)",
    ),
    "transpose": (
        ["f32[]", "f32[64,64]", "f32[1000]"],
        "q = f32[64,64] transpose(p1), dimensions={1,0}\n "
        + SCALED.format(name="a", shape="f32[64,64]", of="q")
        + SCALED.format(name="b", shape="f32[1000]", of="p2")
        + "ROOT r = (f32[64,64], f32[1000]) tuple(a, b)",
    ),
}


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_a_number_of_several_parts_is_computed_once(name: str) -> None:
    shapes, body = KERNELS[name]
    program = source(shapes, ROOT + body)
    assert emit_fusion(root_fusion(program), "k", targets.get("sm_90")).emitter == name
    assert ptx(program).count("sqrt.rn.f32") == 1
