"""Buffer assignment: from a scheduled module with its copies in place to slices of allocations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from heron.analysis.graph.alias import AliasSets, Clash
from heron.analysis.graph.call_graph import CallGraph
from heron.analysis.graph.dataflow import Dataflow, Flow, Value
from heron.analysis.graph.donation import donated_parameters, output_aliases
from heron.analysis.graph.liveness import Liveness
from heron.analysis.graph.ordering import Timeline
from heron.buffers.assignment import Allocation, BufferAssignment, Slice
from heron.buffers.asynchronous import Asynchronous
from heron.buffers.heap import Block, Shelf, merged, pack, peak_of
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.records import dataclass

#: bytes between which buffers begin, by kind of target: a cache line
ALIGNMENT = {"cpu": 64, "gpu": 128}
#: bytes an instruction needs while it runs, and the operand that they may lie over where nothing else needs that
ScratchBytes = Callable[[Instruction], int]
ScratchOver = Callable[[Instruction], Instruction | None]


def assign(
    module: Module,
    *,
    alignment: int = 64,
    reuse_outputs: bool = True,
    scratch_bytes: ScratchBytes = lambda _: 0,
    scratch_over: ScratchOver = lambda _: None,
) -> BufferAssignment:
    """Give every value of `module` its place. The module needs a schedule and must have been through copy-insertion.

    Args:
        alignment: offsets in temp are multiples of this, but those of small values (see `heap.unit_of`).
        reuse_outputs: whether temporaries may lie in an output's memory while the output is not yet there.
        scratch_bytes: memory an instruction needs while it runs, beside its operands and its result.
        scratch_over: an operand that may be overwritten by that, if it is not needed any more.

    Raises BUF003 (no schedule, or an old one), BUF005 (two values that must share a buffer live at once: the module has
    not been through copy-insertion), BUF006 (aliases of arrays that are not there, differ in size, or are
    aliased already), BUF009 (a value that moves into a buffer where its elements would lie in another order).
    """
    if module.schedule is None:
        raise HeronError("BUF003", "the module has no schedule", hint="run memory-scheduler first")
    graph = CallGraph(module)
    flow = Dataflow(module, graph)
    sets = AliasSets(Liveness(flow, Timeline(module.schedule, graph), donated_parameters(module)))
    _join_aliased_outputs(module, flow, sets)
    in_step = sets.allow_in_step()
    for f in flow.flows:
        _need_one_order(f)
        clash = sets.join(f.source, f.target)
        if clash is not None:
            raise _unresolved(f, clash)
    for source, target in in_step:
        sets.join(source, target)
    return _lay_out(module, flow, sets, alignment, reuse_outputs, scratch_bytes, scratch_over)


def _unresolved(f: Flow, clash: Clash) -> HeronError:
    return HeronError(
        "BUF005",
        f"'{f.source.name}' cannot move into the buffer of '{f.target.name}' without a copy",
        where=str(f.at),
        why=str(clash),
        hint="run copy-insertion before scheduling",
    )


def _need_one_order(f: Flow) -> None:
    """Raise BUF009 if a value moves into a buffer (of an update, a call, a loop, the caller) of another layout."""
    given = (f.at if f.operand < 0 else f.at.operands[f.operand]).shape.at(f.index)
    wanted = f.target.shape
    if given is wanted or given.dims != wanted.dims or _order(given) == _order(wanted):
        return
    raise HeronError(
        "BUF009",
        f"'{f.source.name}' moves into the buffer of '{f.target.name}' but has another layout",
        where=str(f.at),
        why=f"{given} becomes {wanted}, and nothing moves the elements",
        hint="an operand and the result that overwrites it need one layout: put a copy before the operand",
    )


def _order(shape: Shape) -> list[int]:
    """The dimensions of more than one element as they lie in memory, the slowest first."""
    dims = range(shape.rank) if shape.layout is None else shape.layout.minor_to_major[::-1]
    return [d for d in dims if shape.dims[d] != 1]


def _join_aliased_outputs(module: Module, flow: Dataflow, sets: AliasSets) -> None:
    """Put outputs into the parameters they are aliased with. The verifier's faults are found here once more, for
    programs that come without it."""
    outputs = {out.index: out for out in flow.outputs}
    parameters = {p.attrs["number"]: p for p in module.entry.parameters}
    taken: dict[tuple[int, ShapeIndex] | ShapeIndex, str] = {}
    for output_index, number, index in output_aliases(module):
        out = outputs.get(output_index)
        names = f"output {_braced(output_index)}", f"parameter {number}{_braced(index) if index else ''}"
        if out is None:
            raise _bad_alias(names, "the result has no such array", str(module.entry.root.shape))
        if number not in parameters or not _has_array(parameters[number].shape, index):
            shapes = ", ".join(str(p.shape) for p in module.entry.parameters) or "nothing"
            raise _bad_alias(names, "the entry takes no such array", shapes)
        for key, name, other in ((output_index, *names), ((number, index), *names[::-1])):
            if key in taken:
                raise _bad_alias(names, f"{name} is aliased already", f"with {taken[key]}")
            taken[key] = other
        given = flow.value(parameters[number], index)
        if given.size != out.size:
            raise _bad_alias(
                names, "they differ in size", f"{given.shape} has {given.size} bytes, {out.shape} has {out.size}"
            )
        clash = sets.join(given, out)
        if clash is not None:
            raise _bad_alias(names, "both are needed at once", str(clash))


def _bad_alias(names: tuple[str, str], what: str, why: str) -> HeronError:
    return HeronError(
        "BUF006",
        f"{names[0]} cannot lie in {names[1]}: {what}",
        where="input_output_alias",
        why=why,
        hint="an alias pairs one output with one parameter of its size: change it, or leave it out",
    )


def _has_array(shape: Shape, index: ShapeIndex) -> bool:
    return any(i == index and s.is_array for i, s in shape.leaves())


def _braced(index: ShapeIndex) -> str:
    return "{" + ",".join(map(str, index)) + "}"


def _lay_out(
    module: Module,
    flow: Dataflow,
    sets: AliasSets,
    alignment: int,
    reuse_outputs: bool,
    scratch_bytes: ScratchBytes,
    scratch_over: ScratchOver,
) -> BufferAssignment:
    found = BufferAssignment(module, flow, sets, [], {}, [], alignment=alignment)
    spaces: dict[int, _Space] = {}
    numbers = {out: n for n, out in enumerate(flow.outputs)}
    beside = Asynchronous(sets.liveness.timeline)
    members = sets.sets()
    for standing, values in members.items():
        size = max(v.size for v in values)
        holds = sets.holds(standing)
        starts = beside.starts(values)
        windows = [(*beside.windows[s], standing) for s in starts]
        intervals = merged(sorted([*holds, *windows], key=_first_tick) if windows else holds)
        space = spaces.setdefault(standing.memory_space, _Space())
        own = _own_allocation(len(found.allocations), size, values, numbers)
        if own is None:
            inside = len(starts) == 1 and intervals == [windows[0][:2]]
            if inside:  # nothing outside has it: the order within what is started says what may lie where
                space.started.setdefault(starts.pop(), []).append((Block.of(size, merged(holds), alignment), values))
            else:
                space.blocks.append((Block.of(size, intervals, alignment), values))
            continue
        found.allocations.append(own)
        found.slices.update((v, Slice(own.number, 0, v.size)) for v in values)
        if own.kind == "output" and reuse_outputs and size:
            space.shelves.append((Shelf(size, intervals), own))
    timeline = sets.liveness.timeline
    over: dict[Instruction, tuple[Value, int]] = {}
    for i in timeline.order:
        size = scratch_bytes(i)
        if size:
            window = beside.window(i)
            operand = scratch_over(i) if window is None else None
            given = flow.at[operand] if operand is not None else None
            if isinstance(given, Value) and given.size >= size and _is_free_after(given, i, sets, members):
                over[i] = given, size
                continue
            block = Block.of(size, [window or (timeline.start[i], timeline.end[i])], alignment)
            spaces.setdefault(0, _Space()).scratch.append((block, i))
    for number in sorted(spaces):
        _lay_out_temporaries(found, number, spaces[number], beside)
    for i, (given, size) in over.items():
        place = found.slices[given]
        found.scratch[i] = Slice(place.allocation, place.offset, size)
    found.outputs += [found.slices[out] for out in flow.outputs]
    return found


def _is_free_after(v: Value, i: Instruction, sets: AliasSets, members: Mapping[Value, list[Value]]) -> bool:
    """Whether nothing needs the buffer of `v` when `i` has run, until another value lies there."""
    timeline = sets.liveness.timeline
    start, end = timeline.start[i], timeline.end[i]
    standing = sets.find(v)
    if any(x.is_given or x.memory_space for x in members[standing]):
        return False
    return all(last <= end for first, last, _ in sets.holds(standing) if first <= end and start <= last)


def _first_tick(hold: tuple[int, int, Value]) -> int:
    return hold[0]


@dataclass(slots=True)
class _Space:
    """The contents of one memory space: temporaries to place, those of computations that async-starts call (together
    for each start), outputs with spare room before they are live, and scratch memory of instructions."""

    blocks: list[tuple[Block, list[Value]]] = field(default_factory=list)
    started: dict[Instruction, list[tuple[Block, list[Value]]]] = field(default_factory=dict)
    shelves: list[tuple[Shelf, Allocation]] = field(default_factory=list)
    scratch: list[tuple[Block, Instruction]] = field(default_factory=list)


def _lay_out_temporaries(found: BufferAssignment, number: int, space: _Space, beside: Asynchronous) -> None:
    """Give the temporaries of a memory space their places, in outputs or in its scratch allocation."""
    whole = {
        s: Block.of(pack([b for b, _ in of]), [beside.windows[s]], found.alignment) for s, of in space.started.items()
    }
    needed = [b for b, _ in space.scratch]
    blocks = [*(b for b, _ in space.blocks), *whole.values(), *needed]
    pack(blocks, [s for s, _ in space.shelves])
    size = max((b.offset + b.bytes for b in blocks if b.shelf < 0), default=0)
    for start, block in whole.items():
        for inner, values in space.started[start]:
            inner.shelf, inner.offset = block.shelf, block.offset + inner.offset
            space.blocks.append((inner, values))
    temp = Allocation(len(found.allocations), "temp", size, memory_space=number)
    if size or any(b.shelf < 0 for b, _ in space.blocks):  # values without bytes too lie in what there is
        found.allocations.append(temp)

    def home_of(block: Block) -> Allocation:
        return space.shelves[block.shelf][1] if block.shelf >= 0 else temp

    for block, values in space.blocks:
        home = home_of(block)
        home.values += values
        found.slices.update((v, Slice(home.number, block.offset, v.size)) for v in values)
    found.scratch.update((i, Slice(home_of(b).number, b.offset, b.bytes)) for b, i in space.scratch)
    peak = peak_of([b for b in (*(b for b, _ in space.blocks), *needed) if b.shelf < 0])
    found.peak_bytes += 0 if temp.is_on_host else min(size, peak)


def _own_allocation(number: int, size: int, values: list[Value], outputs: dict[Value, int]) -> Allocation | None:
    """The allocation that a set with a parameter, output or constant in it is; None for temporaries."""
    output = next((outputs[v] for v in values if v.kind == "output"), -1)
    for v in values:
        if v.kind == "parameter":
            number_of = v.instruction.attrs["number"]
            return Allocation(number, "parameter", size, number_of, v.index, output, None, values, v.memory_space)
        if v.kind == "constant":
            literal = v.instruction.attrs["literal"]
            for n in v.index:
                literal = literal.parts[n]
            return Allocation(number, "constant", size, literal=literal, values=values, memory_space=v.memory_space)
    if output < 0:
        return None
    return Allocation(number, "output", size, output=output, values=values, memory_space=values[0].memory_space)
