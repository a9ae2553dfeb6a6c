from __future__ import annotations

import pytest

from heron.analysis.graph.call_graph import CallGraph
from heron.analysis.graph.dataflow import Dataflow
from heron.analysis.graph.liveness import Liveness
from heron.analysis.graph.ordering import Timeline, post_order_schedule
from heron.errors import HeronError
from heron.hlo.text import parse
from tests.analysis.test_dataflow import LOOP


def test_a_loop_is_laid_out_as_condition_then_body() -> None:
    module = parse(LOOP)
    graph = CallGraph(module)
    timeline = Timeline(post_order_schedule(graph), graph)
    loop = next(i for i in module.instructions() if i.opcode == "while")
    condition, body = (timeline.span[c] for c in (loop.condition, loop.body))
    assert timeline.start[loop] < condition[0] < condition[1] < body[0] < body[1] < timeline.end[loop]
    assert graph.nodes[loop.body].loop_depth == 1


def test_loop_state_is_held_in_pieces_and_invariants_throughout() -> None:
    module = parse(LOOP)
    graph = CallGraph(module)
    timeline = Timeline(post_order_schedule(graph), graph)
    flow = Dataflow(module, graph)
    live = Liveness(flow, timeline)
    at = {i.name: i for i in module.instructions()}
    loop, state = at["loop"], flow.value(at["loop"], (1,))
    first, moved, after = live.intervals[state]
    assert first[0] == timeline.start[loop] + 1 and first[1] == timeline.start[at["y"]]
    assert moved[0] == moved[1] == timeline.span[loop.body][1] + 1
    assert after == (timeline.end[loop], timeline.length)
    new = live.intervals[flow.value(at["y"])]
    assert new == [(timeline.start[at["y"]], timeline.span[loop.body][1])]
    assert live.intervals[flow.value(at["b"])] == [(-1, timeline.length + 1)], "the caller's, for good"


def test_bad_schedules() -> None:
    module = parse(LOOP)
    graph = CallGraph(module)
    good = post_order_schedule(graph)
    backwards = {**good, module.entry: good[module.entry][::-1]}
    short = {**good, module.entry: good[module.entry][:-1]}
    for schedule, word in ((backwards, "before"), (short, "out of date"), ({}, "no order")):
        with pytest.raises(HeronError) as error:
            Timeline(schedule, graph)
        assert error.value.code == "BUF003" and word in error.value.what
