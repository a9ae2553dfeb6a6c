from __future__ import annotations

import random

import pytest

from heron.analysis.graph.reachability import Reachability
from heron.hlo.ir.instruction import Instruction
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


@pytest.mark.parametrize("seed", range(8))
def test_whenever_asked_the_answer_is_that_of_all_edges(seed: int) -> None:
    """Rows get changes when they are asked for: some here after each change, all at the end."""
    choose = random.Random(seed)
    lines = ["v0 = f32[4] parameter(0)"]
    for n in range(1, 24):
        lines.append(f"v{n} = f32[4] add(v{choose.randrange(n)}, v{choose.randrange(n)})")
    reach, at = _by_name("HloModule m\n\nENTRY main {\n  " + "\n  ".join(lines[:-1]) + f"\n  ROOT {lines[-1]}\n}}\n")
    edges = {(o, i) for i in at.values() for o in i.operands}
    for _ in range(10):
        a, b = choose.sample(list(at.values()), 2)
        if choose.random() < 0.5:
            reach.fuse(a, b)
            edges |= {(a, b), (b, a)}
        elif not reach.reaches(b, a):
            reach.add_edge(a, b)
            edges.add((a, b))
        x, y = choose.choices(list(at.values()), k=2)
        assert reach.reaches(x, y) == (y in _after(x, edges))
    for x in at.values():
        after = _after(x, edges)
        assert [reach.reaches(x, y) for y in at.values()] == [y in after for y in at.values()]


def _after(start: Instruction, edges: set[tuple[Instruction, Instruction]]) -> set[Instruction]:
    found, work = {start}, [start]
    while work:
        at = work.pop()
        fresh = {b for a, b in edges if a is at} - found
        found |= fresh
        work += fresh
    return found
