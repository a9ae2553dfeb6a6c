"""Pictures of programs: everything is drawn once, nothing overlaps, operands are above what reads them."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings

from heron.errors import HeronError
from heron.hlo.text import parse
from heron.trace.graph import boxes
from heron.trace.graph.boxes import Box, Graph, around, graph_of
from heron.trace.graph.drawing import html, svg
from heron.trace.graph.layers import place
from heron.trace.graph.outline import outline
from tests.hlo.generate import Program, programs
from tests.support import program

LOOP = """
HloModule m

body {
  p = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8]{0} get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[8]{0} tanh(x)
  ROOT t = (s32[], f32[8]{0}) tuple(next, y)
}

condition {
  p = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY main {
  init = (s32[], f32[8]{0}) parameter(0)
  loop = (s32[], f32[8]{0}) while(init), condition=condition, body=body
  ROOT out = f32[8]{0} get-tuple-element(loop), index=1, metadata={op_name="jit(f)/a<b" source_file="f.py" source_line=7}
}
"""


def flat(graph: Graph) -> list[Box]:
    return [b for box in graph.boxes for b in (box, *(x for g in box.inside for x in flat(g)))]


def check(graph: Graph) -> None:
    for n, a in enumerate(graph.boxes):
        assert 0 <= a.x and a.x + a.width <= graph.width + 0.01 and a.y + a.height <= graph.height + 0.01
        for b in graph.boxes[n + 1 :]:
            apart = a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y
            assert apart, (a.name, b.name)
        for inner in a.inside:
            check(inner)
            assert inner.width <= a.width and inner.height < a.height
    assert all(a.y + a.height < b.y for a, b in graph.edges)


def test_a_loop_has_its_computations_inside_and_constants_in_their_users() -> None:
    graph = graph_of(parse(LOOP).entry)
    assert [b.name for b in graph.boxes] == ["init", "loop", "out"]
    assert [g.title for g in graph.boxes[1].inside] == ["condition", "body"]
    labels = {b.name: b.lines for b in flat(graph)}
    assert labels["next"][0] == "next = add (1)" and labels["out"][-1] == "f.py:7 a<b"
    place(graph)
    check(graph)
    shut = graph_of(parse(LOOP).entry, closed=True)
    assert shut.count() == 3


@given(programs())
@settings(max_examples=25)
def test_nothing_overlaps_and_operands_are_above(made: Program) -> None:
    graph = graph_of(made.module.entry)
    place(graph)
    check(graph)


def test_svg_and_html_are_well_formed_and_mark_what_was_asked_for() -> None:
    drawn = svg(graph_of(parse(LOOP).entry), "next")
    root = ET.fromstring(drawn)
    names = [g.get("data-name") for g in root.iter("{http://www.w3.org/2000/svg}g")]
    assert {"init", "loop", "next", "y", "c"} <= set(names) and len(names) == len(set(names))
    assert drawn.count('class="chosen"') == 1 and "a&lt;b" in drawn
    page = html(graph_of(parse(LOOP).entry))
    assert page.count("<svg") == 1 and "PICTURE" not in page


def test_neighbours_as_text() -> None:
    module = parse(program("softmax").read_text())
    centre = next(i for i in module.instructions() if i.opcode == "exponential")
    near = around(module.entry, centre, 1)
    assert centre in near and {i.opcode for i in near} == {"subtract", "exponential", "reduce", "divide"}
    lines = outline(centre, 1)
    assert lines[0] == "computed from:" and any(line.startswith("%exp") for line in lines)


def test_a_picture_nobody_can_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "MOST", 5)
    with pytest.raises(HeronError, match="CLI053.*12 boxes") as error:
        graph_of(parse(LOOP).entry)
    assert "--around" in str(error.value)
