"""ask-for-gathers: kernels that look elements up at places made of data, and no others."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.codegen.emit import emit_fusion
from heron.codegen.llvm.jit import host
from heron.codegen.transforms import pipeline
from heron.codegen.transforms.options import TransformOptions
from heron.targets import get
from tests.codegen.run_kernel import root_fusion
from tests.codegen.test_elemental_indexing import source

_GATHER = "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}"
_TABLE = (["f32[100]", "s32[500]"], f"ROOT r = f32[500] gather(p0, p1), {_GATHER}")
_COMPUTED = (
    ["f32[100]", "f32[500]"],
    "s = f32[500] sine(p1)\n k = f32[] constant(50)\n b = f32[500] broadcast(k), dimensions={}\n"
    f" m = f32[500] multiply(s, b)\n i = s32[500] convert(m)\n ROOT r = f32[500] gather(p0, i), {_GATHER}",
)
_STRIDED = (["f32[500,4]"], "t = f32[4,500] transpose(p0), dimensions={1,0}\n ROOT r = f32[4,500] sine(t)")
_SLICED = (
    ["f32[900]", "s32[]"],
    "s = f32[500] dynamic-slice(p0, p1), dynamic_slice_sizes={500}\n ROOT r = f32[500] negate(s)",
)


@pytest.mark.parametrize(
    ("case", "asks"), [(_TABLE, True), (_COMPUTED, True), (_STRIDED, False), (_SLICED, False)],
    ids=["table", "computed", "strided", "sliced"],
)  # fmt: skip
def test_only_look_ups_ask(case: tuple[list[str], str], asks: bool) -> None:
    for gathers in ("+fast-gather", ""):
        kernel = emit_fusion(root_fusion(source(*case)), "k", get("cpu"))
        text = str(pipeline.run(kernel.module, TransformOptions(gathers=gathers)))
        assert ("llvm.attr.target-features" in text) == (asks and bool(gathers))


@pytest.mark.skipif(not host().gathers, reason="LLVM uses the machine's gathers where it should")
def test_look_ups_are_gathers() -> None:
    body = f"p0 = f32[100] parameter(0)\n p1 = s32[500] parameter(1)\n {_TABLE[1]}".replace("500", "500000")
    text = f"HloModule m\nENTRY e {{\n {body}\n}}"
    program = heron.compile(heron.parse(text), "cpu")
    assert "vgatherdps" in str(program.stage("asm"))
    table, places = np.arange(100, dtype=np.float32), np.arange(500000, dtype=np.int32) * 7 % 120 - 10
    np.testing.assert_array_equal(program.run([table, places])[0], table[places.clip(0, 99)])
