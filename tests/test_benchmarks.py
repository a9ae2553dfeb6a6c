"""The benchmarks of the language and of the passes run, and sections of the page of figures are written one by one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from click.testing import CliRunner

import heron
from benchmarks import counts, language, loops, passes, programs, sections
from benchmarks.__main__ import commands, main


def test_every_step_runs() -> None:
    rows = language.measure("softmax", repeats=1)
    assert [r.step for r in rows] == ["parse", "print", "verify", "clone", "hash", "compare", "proto out", "proto in"]
    assert all(r.heron > 0 for r in rows)
    assert "proto in" in language.section("softmax", rows, 1)


def test_passes_are_measured_one_by_one() -> None:
    module = heron.parse(programs.path("softmax", small=True).read_text())
    rows = [passes.measure("softmax", module, target, rounds=1) for target in passes.TARGETS]
    for row in rows:
        assert row.passes["dce"].runs > 0 and row.passes["dce"].looked > 0
        assert "dce" in passes.passes_table(row, least_ms=0)
    assert "run_pass" in passes.profile(module, "cpu", lines=200)
    page = passes.section(rows, rows, {"softmax": "profile"}, 1)
    assert "softmax" in page and "profile" in page


def test_a_block_is_chained() -> None:
    one, three = (passes.chained("softmax", n) for n in (1, 3))
    assert "call" not in {i.opcode for i in three.entry.instructions}
    assert sum(i.opcode == "exponential" for i in three.entry.instructions) == 3
    assert len(three.entry) > 2 * len(one.entry)


def test_sections_are_kept_apart(tmp_path: Path) -> None:
    page = tmp_path / "figures.md"
    sections.put("One", "first\n", page)
    sections.put("Two", "second", page)
    assert page.read_text() == "# Figures\n\n## One\n\nfirst\n\n## Two\n\nsecond\n"
    sections.put("One", "other", page)
    assert page.read_text() == "# Figures\n\n## One\n\nother\n\n## Two\n\nsecond\n"


CALLS_TWICE = """HloModule m
f { ROOT p = f32[] parameter(0) }
idle { ROOT q = f32[] parameter(0) }
ENTRY main {
  x = f32[] parameter(0)
  a = f32[] call(x), to_apply=f
  b = f32[] call(a), to_apply=f
  ROOT s = f32[] add(a, b)
}
"""


def test_a_computation_called_twice_is_counted_once() -> None:
    found = counts.count(heron.parse(CALLS_TWICE))
    assert found == {"parameter": 2, "call": 2, "add": 1}


def test_what_differs_most_comes_first() -> None:
    row = counts.Row("m", 9, Counter(add=4, slice=1, call=2), Counter(add=1, slice=2, call=2))
    assert row.ratio == 7 / 5
    assert row.differences() == "add +3, slice -1"
    assert row.differences(most=1) == "add +3 …"


def test_loops_over_data_are_counted_by_their_runs() -> None:
    text = """HloModule m
body {
  p = (s32[], f32[8], f32[8,8]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  w = f32[8,8] get-tuple-element(p), index=2
  one = s32[] constant(1)
  m = s32[] add(n, one)
  y = f32[8] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  z = f32[8] tanh(y)
  ROOT r = (s32[], f32[8], f32[8,8]) tuple(m, z, w)
}
condition {
  p = (s32[], f32[8], f32[8,8]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  k = s32[] constant(5)
  ROOT l = pred[] compare(n, k), direction=LT
}
ENTRY e {
  z = s32[] constant(0)
  x = f32[8] parameter(0)
  w = f32[8,8] parameter(1)
  c = f32[8] copy(x)
  t = (s32[], f32[8], f32[8,8]) tuple(z, c, w)
  l = (s32[], f32[8], f32[8,8]) while(t), condition=condition, body=body
  ROOT s = f32[8] get-tuple-element(l), index=1
}"""
    assert loops.count(heron.parse(text)) == {"kernels": 5, "libraries": 5, "copies": 1}


def test_every_benchmark_is_listed_and_explained() -> None:
    found = commands()
    assert {"benchmarks.compare", "benchmarks.performance", "benchmarks.pool"} <= found.keys()
    assert "benchmarks.worker" not in found
    readme = (Path(__file__).parents[1] / "benchmarks" / "README.md").read_text()
    for module, line in found.items():
        assert line.endswith("."), module
        assert f"`python -m {module}" in readme, module
    shown = CliRunner().invoke(main)
    assert shown.exit_code == 0 and all(line in shown.output for line in found.values())
