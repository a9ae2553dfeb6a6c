"""Memory over time, and what heron mem suggests: followed, a suggestion saves what it says."""

from __future__ import annotations

import numpy as np
import pytest

from heron.analysis.graph.call_graph import CallGraph
from heron.analysis.graph.donation import possible_donations
from heron.analysis.graph.ordering import post_order_schedule
from heron.buffers import assign
from heron.buffers.memory import Memory
from heron.buffers.picture import bars, svg
from heron.buffers.profile import MemoryProfile
from heron.hlo.text import parse

MIB = 1 << 20


def profile(body: str, header: str = "") -> MemoryProfile:
    module = parse(f"HloModule m{header}\n\nENTRY e {{\n{body}\n}}\n")
    module.set_schedule(post_order_schedule(CallGraph(module)))
    return MemoryProfile(assign(module))


DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
#: c is needed again after the peak at d, and is only a sum of arguments
HELD = f"""
  x = f32[512,512]{{1,0}} parameter(0)
  c = f32[512,512]{{1,0}} fusion(x), kind=kLoop, calls=twice
  a = f32[512,512]{{1,0}} dot(c, x), {DOT}
  b = f32[512,512]{{1,0}} dot(a, x), {DOT}
  d = f32[512,512]{{1,0}} dot(b, a), {DOT}
  ROOT e = f32[512,512]{{1,0}} dot(d, c), {DOT}
"""
TWICE = """

twice {
  p = f32[512,512]{1,0} parameter(0)
  ROOT s = f32[512,512]{1,0} add(p, p)
}
"""


def test_the_peak_is_found_with_what_is_held_and_by_whom() -> None:
    p = profile(HELD, TWICE)
    assert (p.peak, p.running.name if p.running else "") == (4 * MIB, "d")
    assert sorted(h.value.name for h in p.at_peak()) == ["a", "b", "c", "d"]
    assert int(p.used.max()) == p.peak and p.used[-1] <= p.peak


def test_arguments_are_paired_with_outputs_of_their_shape_in_order() -> None:
    body = """
  x = f32[8]{0} parameter(0)
  y = (f32[8]{0}, s32[]) parameter(1)
  z = f32[8]{0} get-tuple-element(y), index=0
  n = s32[] get-tuple-element(y), index=1
  a = f32[8]{0} negate(x)
  b = f32[8]{0} negate(z)
  ROOT t = (f32[8]{0}, f32[8]{0}, f32[8]{0}, s32[]) tuple(a, b, a, n)"""
    module = parse(f"HloModule m\n\nENTRY e {{{body}\n}}\n")
    pairs = [(d.output, d.parameter, d.index) for d in possible_donations(module)]
    assert pairs == [((0,), 0, ()), ((1,), 1, (0,)), ((3,), 1, (1,))]
    module.input_output_aliases.set_up((1,), 0)
    assert [(d.output, d.parameter, d.index) for d in possible_donations(module)] == [((0,), 1, (0,)), ((3,), 1, (1,))]


def test_totals_count_what_lies_twice_once_and_are_fields_and_keys() -> None:
    alias = ", input_output_alias={ {}: (0, {}, may-alias) }"
    m = Memory.of(profile("  x = f32[8]{0} parameter(0)\n  ROOT n = f32[8]{0} negate(x)", alias).assignment)
    assert dict(m) == {"arguments": 32, "outputs": 32, "aliased": 32, "constants": 0, "temp": 0, "peak": 32}
    assert m.peak == m["peak"]
    with pytest.raises(KeyError):
        m["tmp"]


def test_pictures() -> None:
    p = profile(HELD, TWICE)
    rows = bars(p.used, width=20, height=4)
    assert len(rows) == 4 and max(map(len, rows)) <= 20 and rows[0].strip("█ ") == ""
    drawn = svg(p)
    assert drawn.count("<rect") >= 5 and "c f32[512,512]{1,0}: 1,048,576 B" in drawn
    import xml.etree.ElementTree as ET

    ET.fromstring(drawn)
    assert bars(np.zeros(5, np.int64)) == []
