"""Decides which values share a buffer without a copy: the core of copy-insertion.

Every flow of `Dataflow` (into loop state, branch results, in-place updates, outputs) is at first a copy that would be
needed. Flows are then tried from the most costly copy to the cheapest: where the live intervals of the two sides do not
overlap, in an order of execution that lets old values be read before new ones are written, the copy is not needed.
This is the coalescing of phis, as compilers do it for registers.
"""

from __future__ import annotations

from heron.analysis.graph.alias import AliasSets, Clash
from heron.analysis.graph.call_graph import CallGraph
from heron.analysis.graph.dataflow import Dataflow, Flow, Value
from heron.analysis.graph.donation import donated_parameters, output_aliases
from heron.analysis.graph.liveness import Liveness
from heron.analysis.graph.ordering import Timeline, post_order_schedule
from heron.analysis.graph.reachability import Reachability
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.records import dataclass

Edges = dict[Instruction, list[Instruction]]


@dataclass(slots=True)
class Plan:
    """The flows that share (`shared`) or need a copy (`copied`, with the clash), under a tentative timeline."""

    flow: Dataflow
    timeline: Timeline
    sets: AliasSets
    shared: list[Flow]
    copied: list[tuple[Flow, Clash]]


def coalesce(module: Module) -> Plan:
    """Decide every flow of a module with a flat call graph."""
    graph = CallGraph(module)
    flow = Dataflow(module, graph)
    timeline = Timeline(post_order_schedule(graph, _reads_before_writes(flow)), graph)
    sets = AliasSets(Liveness(flow, timeline, donated_parameters(module)))
    join_outputs(module, flow, sets)
    sets.allow_in_step()
    shared: list[Flow] = []
    copied: list[tuple[Flow, Clash]] = []
    for f in sorted(flow.flows, key=lambda f: _cost(f, graph), reverse=True):
        clash = sets.join(f.source, f.target)
        if clash is None:
            shared.append(f)
        else:
            copied.append((f, clash))
    return Plan(flow, timeline, sets, shared, copied)


def join_outputs(module: Module, flow: Dataflow, sets: AliasSets) -> None:
    """Put outputs that alias a donated parameter (input_output_alias) into the parameter's buffer."""
    parameters = {p.attrs["number"]: p for p in module.entry.parameters}
    outputs = {out.index: out for out in flow.outputs}
    for output_index, number, parameter_index in output_aliases(module):
        if output_index in outputs and number in parameters:
            sets.join(flow.value(parameters[number], parameter_index), outputs[output_index])


def _cost(f: Flow, graph: CallGraph) -> tuple[int, int]:
    """The bytes that the copy would move, over all executions."""
    assert f.at.parent is not None
    return graph.nodes[f.at.parent].loop_depth, f.source.size


def _reads_before_writes(flow: Dataflow) -> Edges:
    """Extra edges, free of cycles, that put the readers of a value ahead of what wants to overwrite its buffer."""
    readers = flow.readers()
    tables: dict[Computation, Reachability] = {}
    edges: Edges = {}
    for f in flow.flows:
        if f.kind == "in-place":
            overwritten, writer = f.source, f.at
        elif f.kind == "while-body":
            overwritten, writer = f.target, f.source.instruction
        else:
            continue
        home = writer.parent
        if home is None or (f.kind == "while-body" and home is not f.at.parent):
            continue
        for reader in readers.get(overwritten, ()):
            before = lift(flow.graph, reader, home)
            if before is None or before is writer:
                continue
            table = tables.get(home)
            if table is None:
                table = tables[home] = Reachability(home)
            if table.reaches(writer, before):
                continue
            if not table.reaches(before, writer):
                table.add_edge(before, writer)
            edges.setdefault(writer, []).append(before)
    return edges


def lift(graph: CallGraph, i: Instruction, home: Computation) -> Instruction | None:
    """The instruction of `home` that `i` is or runs inside of; None when it is elsewhere."""
    while i.parent is not home:
        assert i.parent is not None
        caller = graph.caller(i.parent)
        if caller is None:
            return None
        i = caller
    return i


def order_edges(plan: Plan) -> list[tuple[Instruction, Instruction]]:
    """Pairs (reader, writer) that a schedule must keep for the sharing in `plan` to be right.

    In every buffer, whoever reads one value comes before whoever writes the next one.
    """
    graph, live = plan.flow.graph, plan.sets.liveness
    found: dict[tuple[Instruction, Instruction], None] = {}
    for standing, values in plan.sets.sets().items():
        if len(values) == 1:
            continue
        holds = plan.sets.holds(standing)
        for (start, end, before), (tick, _, after) in zip(holds, holds[1:], strict=False):
            if after.kind == "output" or before is after:
                continue
            if tick not in live.writes(after):  # what is read in another branch, too
                continue
            for reader in live.readers(before, start, end):
                pair = _common(graph, reader, after.instruction)
                if pair is not None:
                    found[pair] = None
    return list(found)


def _common(graph: CallGraph, a: Instruction, b: Instruction) -> tuple[Instruction, Instruction] | None:
    """`a` and `b` lifted into the innermost computation that runs both; None when they meet in one instruction."""
    above: dict[Computation, Instruction] = {}
    i: Instruction | None = a
    while i is not None:
        assert i.parent is not None
        above[i.parent] = i
        i = graph.caller(i.parent)
    i = b
    while i is not None:
        assert i.parent is not None
        mine = above.get(i.parent)
        if mine is not None:
            return None if mine is i else (mine, i)
        i = graph.caller(i.parent)
    return None


def last_readers(plan: Plan, v: Value, tick: int, home: Computation) -> list[Instruction]:
    """Instructions of `home` that must be over before something is written into `v`'s buffer at `tick`."""
    previous = None
    for hold in plan.sets.holds(v):
        if hold[0] >= tick:
            break
        previous = hold
    if previous is None:
        return []
    start, end, value = previous
    readers = plan.sets.liveness.readers(value, start, min(end, tick))
    lifted = (lift(plan.flow.graph, i, home) for i in readers)
    return [i for i in lifted if i is not None]
