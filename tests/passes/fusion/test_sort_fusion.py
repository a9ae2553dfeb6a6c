"""Sorts with what they compute and what they store inside, compiled and run on the simulated GPU."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.analysis.fusion import sort_tiles
from heron.evaluator import Evaluator
from heron.hlo.text import parse
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext

ORDER = """HloModule m

before {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  m = s32[] parameter(2)
  n = s32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=GT
}

"""
LARGEST = """ENTRY main {
  x = f32[3,75] parameter(0)
  y = f32[3,75] negate(x)
  it = s32[3,75] iota(), iota_dimension=1
  s = (f32[3,75], s32[3,75]) sort(y, it), dimensions={1}, is_stable=true, to_apply=before
  v = f32[3,75] get-tuple-element(s), index=0
  p = s32[3,75] get-tuple-element(s), index=1
  first = f32[3,4] slice(v), slice={[0:3], [0:4]}
  last = f32[3,2] slice(v), slice={[0:3], [73:75]}
  places = s32[3,4] slice(p), slice={[0:3], [0:4]}
  ROOT t = (f32[3,4], f32[3,2], s32[3,4]) tuple(first, last, places)
}
"""
WHOLE = """ENTRY main {
  x = f32[75,3] parameter(0)
  y = f32[75,3] negate(x)
  it = s32[75,3] iota(), iota_dimension=0
  s = (f32[75,3], s32[75,3]) sort(y, it), dimensions={0}, is_stable=true, to_apply=before
  v = f32[75,3] get-tuple-element(s), index=0
  ROOT w = f32[75,3] add(v, y)
}
"""


@pytest.mark.parametrize("body", [LARGEST, WHOLE])
@pytest.mark.parametrize("tile", [8, 4096])
def test_values_and_launches(body: str, tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sort_tiles, "MAX_TILE", tile)
    module = parse(ORDER + body)
    x = np.random.default_rng(1).integers(0, 30, module.entry.parameters[0].shape.dims).astype(np.float32)
    wanted = Evaluator(parse(ORDER + body)).run(x)
    compiled = heron.compile(module, "sim:sm_90")
    found = compiled(x)
    if not isinstance(wanted, tuple):
        wanted, found = (wanted,), (found,)
    for f, w in zip(found, wanted, strict=True):
        assert f.tobytes() == w.tobytes()
    launches = sum(len(k.instructions) for k in compiled.kernels)
    if tile == 4096:
        assert launches == (1 if body is LARGEST else 2)
    assert not [t for t in compiled.trace.thunks if "copy" in t]


def test_a_sort_that_nobody_reads_stays() -> None:
    body = """ENTRY main {
  x = f32[8] parameter(0)
  it = s32[8] iota(), iota_dimension=0
  s = (f32[8], s32[8]) sort(x, it), dimensions={0}, to_apply=before
  ROOT r = f32[8] negate(x)
}
"""
    module = parse(ORDER + body)
    PassContext().run_pass(registry.get("sort-fusion"), module)
    assert Evaluator(module).run(np.ones(8, np.float32)).tolist() == [-1.0] * 8


def test_an_operand_that_is_part_of_a_tuple_stays_outside() -> None:
    """The state of a loop, whose parts a sort and an iota beside it read."""
    text = """ENTRY main {
  t = (f32[3,75], s32[]) parameter(0)
  x = f32[3,75] get-tuple-element(t), index=0
  it = s32[3,75] iota(), iota_dimension=1
  ROOT s = (f32[3,75], s32[3,75]) sort(x, it), dimensions={1}, is_stable=true, to_apply=before
}
"""
    module = parse(ORDER + text)
    assert registry.get("sort-fusion").run(module, PassContext())
    fusion = module.entry.root
    assert fusion.opcode == "fusion" and [o.opcode for o in fusion.operands] == ["get-tuple-element"]
    x = np.random.default_rng(0).standard_normal((3, 75)).astype(np.float32)
    (values, places) = heron.compile(parse(ORDER + text), "sim:sm_90")(x, np.int32(0))
    np.testing.assert_array_equal(values, -np.sort(-x))
    np.testing.assert_array_equal(places, np.argsort(-x, kind="stable"))
