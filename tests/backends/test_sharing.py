"""Kernels that compute in place, beyond elementwise ones."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.compiling import compile
from heron.options import Options

SUM = """HloModule sum

plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[64,96] parameter(0)
  y = f32[96,64] parameter(1)
  d = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[64,64] exponential(d)
  zero = f32[] constant(0)
  s = f32[64] reduce(e, zero), dimensions=DIMS, to_apply=plus
  w = f32[64,64] broadcast(s), dimensions=KEPT
  q = f32[64,64] divide(e, w)
  ROOT r = f32[64,64] dot(q, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("dims", [(1, 0), (0, 1)], ids=["rows", "columns"])
def test_reduced_array_is_stored_where_it_was(dims: tuple[int, int], target: str) -> None:
    text = SUM.replace("DIMS", f"{dims[0]}").replace("KEPT", f"{dims[1]}")
    text = text.replace("dimensions=1", "dimensions={1}").replace("dimensions=0", "dimensions={0}")
    module = heron.parse(text)
    exe = compile(module, target)
    generator = np.random.default_rng(1)
    x, y = (generator.random(p.shape.dims, np.float32) * 0.1 for p in module.entry.parameters)
    np.testing.assert_allclose(exe(x, y), heron.evaluate(module, x, y)[0], rtol=1e-5)
    # d, e and q are one buffer; without that two arrays of 16 KiB would be alive at once
    assert exe.memory["temp"] < 2 * 64 * 64 * 4, exe.stage("buffers")


ROWS = """HloModule rows

plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[500,8] parameter(0)
  y = f32[8,256] parameter(1)
  d = f32[500,256] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  s = f32[500] reduce(d, zero), dimensions={1}, to_apply=plus
  w = f32[500,256] broadcast(s), dimensions={0}
  q = f32[500,256] divide(OTHER, w)
  ROOT r = f32[500,8] dot(q, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}
"""


@pytest.mark.parametrize(
    ("other", "buffers"),
    [("d", 1), ("m", 2)],
    ids=["in step", "another place of the row"],
)
@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_rows_are_stored_where_they_were_if_read_in_step(other: str, buffers: int, target: str) -> None:
    reversed_ = "m = f32[500,256] reverse(d), dimensions={1}\n  zero"
    text = ROWS.replace("OTHER", other)
    module = heron.parse(text.replace("zero = ", reversed_ + " = ", 1) if other == "m" else text)
    exe = compile(module, target)
    assert "rows" in {k.emitter for k in exe.kernels}, exe.stage("fused")
    generator = np.random.default_rng(1)
    x, y = (generator.random(p.shape.dims, np.float32) for p in module.entry.parameters)
    np.testing.assert_allclose(exe(x, y), heron.evaluate(module, x, y)[0], rtol=1e-5)
    size = 500 * 256 * 4
    assert buffers * size <= exe.memory["temp"] < (buffers + 1) * size, exe.stage("buffers")


PARTS = """HloModule parts, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }

plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

several {
  x = u8[COUNT] parameter(0)
  y = u8[COUNT] parameter(1)
  w = f32[129,COLUMNS] parameter(2)
  zero = f32[] constant(0)
  q = u8[COUNT] divide(x, y)
  t = u8[COUNT] remainder(x, y)
  u = f32[COLUMNS] reduce(w, zero), dimensions={0}, to_apply=plus
  ROOT all = (u8[COUNT], u8[COUNT], f32[COLUMNS]) tuple(q, t, u)
}

ENTRY main {
  x = u8[COUNT] parameter(0)
  y = u8[COUNT] parameter(1)
  w = f32[129,COLUMNS] parameter(2)
  ROOT r = (u8[COUNT], u8[COUNT], f32[COLUMNS]) fusion(x, y, w), kind=kInput, calls=several
}
"""


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize(("count", "columns"), [(129, 3), (7, 7), (300, 20)])
def test_outputs_of_other_parts_of_a_kernel_read_what_is_donated(count: int, columns: int, target: str) -> None:
    """Parts of a kernel with reductions run in any order: none may store where another one still reads."""
    module = heron.parse(PARTS.replace("COUNT", f"{count}").replace("COLUMNS", f"{columns}"))
    generator = np.random.default_rng(1)
    x, y = generator.integers(0, 256, count).astype(np.uint8), generator.integers(1, 9, count).astype(np.uint8)
    w = generator.integers(-4, 5, (129, columns)).astype(np.float32)
    wanted = heron.evaluate(module, x, y, w)
    exe = compile(module, target, options=Options(sim_check="all"))
    for found, right in zip(exe.run([x.copy(), y.copy(), w], donate=True), wanted, strict=True):
        np.testing.assert_array_equal(found, right)
