from __future__ import annotations

from heron.analysis.reachability import Reachability
from heron.hlo.text import parse

DIAMOND = """HloModule m

ENTRY main {
  x = f32[4]{0} parameter(0)
  a = f32[4]{0} negate(x)
  b = f32[4]{0} abs(x)
  c = f32[4]{0} add(a, b)
  d = f32[4]{0} sine(x)
  ROOT r = f32[4]{0} add(c, d)
}
"""


def _by_name(text: str):  # noqa: ANN202
    c = parse(text).entry
    return Reachability(c), {i.name: i for i in c.instructions}


def test_paths() -> None:
    reach, at = _by_name(DIAMOND)
    assert reach.reaches(at["x"], at["r"]) and reach.reaches(at["a"], at["c"]) and reach.reaches(at["a"], at["a"])
    assert not reach.reaches(at["c"], at["a"]) and not reach.connected(at["a"], at["b"])
    assert not reach.connected(at["c"], at["d"])


def test_control_edges_count() -> None:
    module = parse(DIAMOND)
    at = {i.name: i for i in module.entry.instructions}
    at["b"].add_control_predecessor(at["a"])
    reach = Reachability(module.entry)
    assert reach.reaches(at["a"], at["b"]) and not reach.reaches(at["b"], at["a"])


def test_add_edge_spreads_to_all_that_follow() -> None:
    reach, at = _by_name(DIAMOND)
    reach.add_edge(at["d"], at["a"])
    assert reach.reaches(at["d"], at["a"]) and reach.reaches(at["d"], at["c"])
    assert not reach.reaches(at["d"], at["b"])


def test_fused_instructions_reach_what_either_reached() -> None:
    reach, at = _by_name(DIAMOND)
    reach.fuse(at["a"], at["d"])
    assert reach.reaches(at["d"], at["c"]) and reach.connected(at["a"], at["d"])
