"""How often a kernel computes its instructions: what does not change along the innermost loop once, unless guarded."""

from __future__ import annotations

import pytest

from heron.analysis.cost.reuse import evaluations
from heron.hlo import text

ROWS = """HloModule m
ENTRY e {{
  x = f32[5] parameter(0)
  y = f32[5,200] parameter(1)
  z = f32[200,200] parameter(2)
  zero = f32[] constant(0)
  c = f32[5] cosine(x)
  b = f32[5,200] broadcast(c), dimensions={{0}}
  m = f32[5,200] multiply(b, y)
{rest}
}}
"""
BEHIND = {
    "nothing": ("  ROOT r = f32[5,200] negate(m)", 5),
    "a pad": ("  p = f32[200,200] pad(m, zero), padding=0_195x0_0\n  ROOT r = f32[200,200] add(p, z)", 1000),
    "a concatenation": ("  ROOT r = f32[205,200] concatenate(m, z), dimensions={0}", 1000),
    "a pad, and used beside it": (
        "  p = f32[200,200] pad(m, zero), padding=0_195x0_0\n  n = f32[5,200] negate(b)\n"
        "  ROOT r = (f32[200,200], f32[5,200]) tuple(p, n)",
        5,
    ),
}


@pytest.mark.parametrize("name", BEHIND)
def test_what_a_condition_guards_is_computed_for_every_element(name: str) -> None:
    rest, wanted = BEHIND[name]
    entry = text.parse(ROWS.format(rest=rest)).entry
    counts = evaluations(entry)
    (cosine,) = (i for i in entry.instructions if i.opcode == "cosine")
    assert counts[cosine] == pytest.approx(wanted, rel=1.0)
