"""Buffer assignment: from a scheduled module with its copies in place to slices of allocations."""

from __future__ import annotations

from heron.analysis.alias import AliasSets, Clash
from heron.analysis.call_graph import CallGraph
from heron.analysis.dataflow import Dataflow, Flow, Value
from heron.analysis.donation import donated_parameters, output_aliases
from heron.analysis.liveness import Liveness
from heron.analysis.ordering import Timeline
from heron.analysis.sharing import CanShare, reads_in_step
from heron.buffers.assignment import Allocation, BufferAssignment, Slice
from heron.buffers.heap import Block, Shelf, merged, pack, peak_of
from heron.errors import HeronError
from heron.hlo.module import Module


def assign(
    module: Module,
    *,
    alignment: int = 64,
    can_share: CanShare = reads_in_step,
    reuse_outputs: bool = True,
) -> BufferAssignment:
    """Give every value of `module` its place. The module needs a schedule and must have been through copy-insertion.

    Args:
        alignment: offsets in temp are multiples of this.
        can_share: what a kernel may compute in place; by default elementwise reads at the written index.
        reuse_outputs: whether temporaries may lie in an output's memory while the output is not yet there.

    Raises BUF003 (no schedule, or an old one), BUF005 (two values that must share a buffer live at once: the module has
    not been through copy-insertion), BUF006 (an aliased output of another size than its parameter).
    """
    if module.schedule is None:
        raise HeronError("BUF003", "the module has no schedule", hint="run memory-scheduler first")
    graph = CallGraph(module)
    flow = Dataflow(module, graph)
    sets = AliasSets(Liveness(flow, Timeline(module.schedule, graph), donated_parameters(module)))
    _join_aliased_outputs(module, flow, sets)
    in_step = sets.allow_in_step(can_share)
    for f in flow.flows:
        clash = sets.join(f.source, f.target)
        if clash is not None:
            raise _unresolved(f, clash)
    for source, target in in_step:
        sets.join(source, target)
    return _lay_out(module, flow, sets, alignment, reuse_outputs)


def _unresolved(f: Flow, clash: Clash) -> HeronError:
    return HeronError(
        "BUF005",
        f"'{f.source.name}' cannot move into the buffer of '{f.target.name}' without a copy",
        where=str(f.at),
        why=str(clash),
        hint="run copy-insertion before scheduling",
    )


def _join_aliased_outputs(module: Module, flow: Dataflow, sets: AliasSets) -> None:
    outputs = {out.index: out for out in flow.outputs}
    parameters = {p.attrs["number"]: p for p in module.entry.parameters}
    for output_index, number, parameter_index in output_aliases(module):
        out = outputs.get(output_index)
        if out is None or number not in parameters:
            raise HeronError(
                "BUF006", f"input_output_alias names output {output_index} or parameter {number}: none such"
            )
        given = flow.value(parameters[number], parameter_index)
        if given.size != out.size:
            raise HeronError(
                "BUF006",
                f"parameter {number} cannot take output {output_index}",
                why=f"{given.shape} has {given.size} bytes, {out.shape} has {out.size}",
            )
        sets.join(given, out)


def _lay_out(module: Module, flow: Dataflow, sets: AliasSets, alignment: int, reuse_outputs: bool) -> BufferAssignment:
    allocations: list[Allocation] = []
    slices: dict[Value, Slice] = {}
    blocks: list[tuple[Block, list[Value]]] = []
    shelves: list[Shelf] = []
    shelf_allocation: list[int] = []
    numbers = {out: n for n, out in enumerate(flow.outputs)}
    for standing, values in sets.sets().items():
        size = max(v.size for v in values)
        intervals = merged(sets.holds(standing))
        own = _own_allocation(len(allocations), size, values, numbers)
        if own is None:
            rounded = -(-size // alignment) * alignment
            blocks.append((Block(rounded, intervals, size), values))
            continue
        allocations.append(own)
        slices.update((v, Slice(own.number, 0, v.size)) for v in values)
        if own.kind == "output" and reuse_outputs and size:
            shelves.append(Shelf(size, intervals))
            shelf_allocation.append(own.number)
    temp_size = pack([b for b, _ in blocks], shelves)
    temp = Allocation(len(allocations), "temp", temp_size)
    if temp_size:
        allocations.append(temp)
    for block, values in blocks:
        home = allocations[shelf_allocation[block.shelf]] if block.shelf >= 0 else temp
        home.values += values
        slices.update((v, Slice(home.number, block.offset, v.size)) for v in values)
    found = BufferAssignment(
        module, flow, sets, allocations, slices, [slices[out] for out in flow.outputs], alignment=alignment
    )
    found.peak_bytes = peak_of([b for b, _ in blocks if b.shelf < 0])
    return found


def _own_allocation(number: int, size: int, values: list[Value], outputs: dict[Value, int]) -> Allocation | None:
    """The allocation that a set with a parameter, output or constant in it is; None for temporaries."""
    output = next((outputs[v] for v in values if v.kind == "output"), -1)
    for v in values:
        if v.kind == "parameter":
            number_of = v.instruction.attrs["number"]
            return Allocation(number, "parameter", size, number_of, v.index, output, values=values)
        if v.kind == "constant":
            literal = v.instruction.attrs["literal"]
            for n in v.index:
                literal = literal.parts[n]
            return Allocation(number, "constant", size, literal=literal, values=values)
    return Allocation(number, "output", size, output=output, values=values) if output >= 0 else None
