"""Plans: what waits for what, what becomes a node, what the host does; and streams without graphs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import heron
from heron.buffers.assignment import Slice
from heron.runtime.cuda import streams
from heron.runtime.cuda.plan import HostCall, HostLoop, Section, counts, effects, plan, text
from heron.runtime.thunks import CopyThunk, HostThunk, KernelThunk, Thunk, WhileThunk
from tests.runtime.cuda.programs import LOOPS, parse
from tests.support import NAMES, program

OUT = {"k": frozenset({1})}


def kernel(reads: int, writes: int) -> KernelThunk:
    return KernelThunk("k", (Slice(0, 4 * reads, 4), Slice(0, 4 * writes, 4)), f"{reads} to {writes}")


def waits(*thunks: Thunk) -> list[tuple[int, ...]]:
    (section,) = plan(thunks, OUT)
    assert isinstance(section, Section)
    return [n.after for n in section.nodes]


def test_dependencies() -> None:
    assert waits(kernel(0, 1), kernel(1, 2)) == [(), (0,)]  # read after write
    assert waits(kernel(0, 1), kernel(2, 0)) == [(), (0,)]  # write after read
    assert waits(kernel(0, 1), kernel(2, 1)) == [(), (0,)]  # write after write
    assert waits(kernel(0, 1), kernel(0, 2)) == [(), ()]  # both only read
    assert waits(kernel(0, 1), kernel(0, 2), CopyThunk(Slice(0, 4, 8), Slice(1, 0, 8), "both")) == [(), (), (0, 1)]
    assert waits(kernel(0, 1), kernel(1, 2), kernel(2, 1)) == [(), (0,), (1,)]  # what 1 waits for is left out


def touches(thunks: list[KernelThunk]) -> list[set[int]]:
    """Pairs that must not change places, found one by one."""
    found: list[set[int]] = []
    for n, t in enumerate(thunks):
        reads, writes = effects(t, OUT)
        found.append(set())
        for m, other in enumerate(thunks[:n]):
            r, w = effects(other, OUT)
            clash = [(a, b) for a in writes for b in (*r, *w)] + [(a, b) for a in reads for b in w]
            if any(a.overlaps(b) for a, b in clash):
                found[n].add(m)
    return found


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=25))
def test_nodes_come_after_all_they_depend_on(pairs: list[tuple[int, int]]) -> None:
    thunks = [kernel(*p) for p in pairs]
    steps = plan(thunks, OUT)
    if not thunks:
        assert steps == ()
        return
    (section,) = steps
    assert isinstance(section, Section)
    behind: list[set[int]] = []
    for node, wanted in zip(section.nodes, touches(thunks), strict=True):
        behind.append(set(node.after).union(*(behind[m] for m in node.after)))
        assert wanted <= behind[-1]
        assert all(not any(m in behind[other] for other in node.after) for m in node.after)  # none to spare


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=25))
def test_streams_keep_the_order(pairs: list[tuple[int, int]]) -> None:
    (section,) = plan([kernel(*p) for p in pairs], OUT)
    assert isinstance(section, Section)
    turns = streams.assign(section)
    assert max(t.stream for t in turns) < streams.MOST
    behind: list[set[int]] = []
    last: dict[int, int] = {}
    for turn in turns:
        before = {*turn.waits} | ({last[turn.stream]} if turn.stream in last else set())
        behind.append(before.union(*(behind[m] for m in before)))
        assert set(section.nodes[turn.node].after) <= behind[-1]
        assert all(turns[m].awaited for m in turn.waits)
        last[turn.stream] = turn.node
    reached = {*streams.ends(turns), *([last[0]] if 0 in last else [])}
    assert reached.union(*(behind[m] for m in reached)) == set(range(len(turns)))


def test_host_steps_cut_a_sequence() -> None:
    host = HostThunk(print, (Slice(0, 0, 4),), (), "fft", "f")
    steps = plan((kernel(0, 1), host, kernel(1, 2)), OUT)
    assert [type(s) for s in steps] == [Section, HostCall, Section]
    loop = WhileThunk((kernel(0, 1),), Slice(0, 4, 1), (host,), "loop")
    (step,) = plan((loop,), OUT)
    assert isinstance(step, HostLoop)


def test_short_counted_loops_are_written_out() -> None:
    loop = WhileThunk((), Slice(0, 0, 1), (kernel(0, 1), kernel(1, 0)), "loop", trips=5)
    assert counts(plan((loop,), OUT)) == {"graphs": 1, "nodes": 10, "stream calls": 0, "host steps": 0}
    long = WhileThunk((), Slice(0, 0, 1), (kernel(0, 1), kernel(1, 0)), "loop", trips=5000)
    (section,) = plan((long,), OUT)
    assert isinstance(section, Section) and section.nodes[0].parts
    assert counts(plan((long,), OUT, conditional_nodes=False)) == {
        "graphs": 1,
        "nodes": 2,
        "stream calls": 0,
        "host steps": 1,
    }


def test_the_text_of_a_plan() -> None:
    shown = heron.compile(parse(LOOPS), target="sm_90").stage("graph")
    assert "while #" in shown and "700 times" in shown and "branch 2" in shown
    program_of_host = plan(heron.compile(parse(LOOPS), target="sm_90").program.thunks, {}, conditional_nodes=False)
    assert "host: loop while #" in text(program_of_host) and "host: branch by #" in text(program_of_host)


@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith("gpt2")])
def test_real_programs_are_one_graph_unless_the_host_has_a_part(name: str) -> None:
    made = heron.compile(heron.parse(program(name, platform="cuda").read_text()), target="sm_90")
    found = counts(made.graph())
    hosts, calls = found["host steps"], found["stream calls"]
    assert found["graphs"] <= 1 + hosts + calls
    assert bool(calls) == (name in ("cholesky_solve", "linalg_lapack"))  # cuSOLVER's calls are not captured
    assert hosts == 0 or name in ("fft", "cholesky_solve", "linalg_lapack")
