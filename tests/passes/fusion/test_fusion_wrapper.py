from __future__ import annotations

from heron.analysis.fusion.roles import is_emitted
from heron.hlo.text import parse
from tests.buffers.compiled import assert_survives, run_passes
from tests.passes.fusion.test_instruction_fusion import entry
from tests.support import NAMES, program


def test_views_need_no_kernel() -> None:
    text = entry("""
  x = f32[1,8,4]{2,1,0} parameter(0)
  n = f32[1,8,4]{2,1,0} negate(x)
  t = f32[8,1,4]{2,1,0} transpose(n), dimensions={1,0,2}
  r = f32[32]{0} reshape(t)
  b = f32[32,1]{1,0} broadcast(r), dimensions={0}
  w = f32[1,32]{1,0} transpose(b), dimensions={1,0}
  m = f32[8,4]{1,0} reshape(w)
  ROOT u = f32[4,8]{1,0} transpose(m), dimensions={1,0}""")
    module = parse(text)
    run_passes(module, ["fusion-wrapper"])
    assert [i.opcode for i in module.entry.post_order()].count("fusion") == 2
    assert sum(i.opcode == "bitcast" for i in module.entry.instructions) == 5
    assert_survives(text, ("fusion-wrapper", "copy-insertion", "memory-scheduler"))


def test_nothing_is_left_to_emit() -> None:
    for name in NAMES:
        module = parse(program(name).read_text())
        run_passes(module, ("call-inliner", "fusion-wrapper"))
        left = [i.opcode for c in module.non_fusion_computations() for i in c.instructions if is_emitted(i)]
        assert not left, (name, left)
