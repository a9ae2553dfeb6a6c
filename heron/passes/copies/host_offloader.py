"""host-offloader: arrays that a program sends to the host's memory live there until it takes them back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from heron.analysis.fusion.in_place import in_place_pairs
from heron.analysis.graph.dataflow import Dataflow, Flow, Tree, Value, leaves
from heron.hlo.calls.markers import TO_DEVICE, TO_HOST, is_identity
from heron.hlo.facts import having, is_view, reads_part, updates_operand
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.layout import HOST_SPACE
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape, ShapeIndex, tuple_
from heron.passes.copies.copy_insertion import is_generator
from heron.passes.copies.flatten_call_graph import FlattenCallGraph
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.tuples import part_of, with_parts
from heron.records import dataclass

#: these hand values on; copies are there for reading them
_HANDS_ON = having(Trait.CONTROL_FLOW) | having(Trait.TUPLE) | {"copy"}


@register
@dataclass(frozen=True)
class HostOffloader(Pass):
    """Moves arrays to the host's memory and back by copies, and gives what lies there the memory space 5.

    The state of a loop that holds such an array is there too, so are the results of branches, and arrays that are
    updated with it. A kernel that takes slices of such an array, or writes into it, reaches it
    where it is; for every other reader it is copied to the device first, and so are results of the program.

    h = f32[8] custom-call(f32[8] x), custom_call_target="MoveToHost"
    d = f32[8] custom-call(h), custom_call_target="MoveToDevice"
    ROOT n = f32[8] negate(d)
    ->
    h = f32[8]{0:S(5)} copy(x)
    d = f32[8]{0} copy(h)
    ROOT n = f32[8] negate(d)
    """

    name = "host-offloader"
    looks_for = frozenset({"custom-call"})
    constraints = (
        Constraint("host-offloader", "copy-insertion", "values of two memories never share a buffer", needed=False),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        moves = {i: i.custom_call_target for i in module.instructions() if _is_move(i)}
        if not moves:
            return False
        FlattenCallGraph().run(module, ctx)
        flow = Dataflow(module)
        written = [pair for c in flow.graph.sequential() for i in c.instructions for pair in _written(flow, i)]
        sent = {flow.value(i): i for i, target in moves.items() if target == TO_HOST}
        direct = _only_written(flow, sent, written)
        kept = _kept(flow, sent, written) - direct
        _copy_for_readers(flow, kept)
        _copy_for_flows(flow, kept)
        _place(flow, kept)
        for i, target in moves.items():
            _copy(i, target, i in {sent[v] for v in direct}, ctx)
        module.schedule = None
        return True


@dataclass(frozen=True, slots=True)
class Written:
    """An instruction that makes ``source`` a slice of ``target``."""

    source: Value
    target: Value
    by: Instruction


def _is_move(i: Instruction) -> bool:
    """Whether it moves one array; a call of that name with other operands is refused when code is made."""
    return i.opcode == "custom-call" and i.custom_call_target in (TO_HOST, TO_DEVICE) and is_identity(i)


# -- what lies in the host's memory ------------------------------------------------------------------------------------
def _kept(flow: Dataflow, sent: Iterable[Value], written: Sequence[Written]) -> set[Value]:
    """The values in the host's memory: those sent there, and what they are handed on to."""
    kept = set(sent)
    flows = [f for f in flow.flows if f.kind != "output"]
    count = 0
    while len(kept) > count:
        count = len(kept)
        kept.update(w.target for w in written if w.source in kept)
        for f in flows:
            if f.source in kept:
                kept.add(f.target)
            elif f.target in kept and _may_lie_there(f.source, flows):
                kept.add(f.source)
    return kept


def _may_lie_there(v: Value, flows: Iterable[Flow]) -> bool:
    """Whether whoever makes a value may as well write it into the host's memory: fills, updates, and what only hands
    values on."""
    if v.is_given:
        return False
    return v.kind == "phi" or is_generator(v.instruction) or any(f.target is v and f.kind == "in-place" for f in flows)


def _only_written(flow: Dataflow, sent: Mapping[Value, Instruction], written: Sequence[Written]) -> set[Value]:
    """The values sent to the host that only become slices of arrays there: kernels write them where they go."""
    readers, handed_on = flow.readers(), {f.source for f in flow.flows}
    by = {(w.source, w.by) for w in written}
    return {v for v in sent if v not in handed_on and readers[v] and all((v, r) in by for r in readers[v])}


def _written(flow: Dataflow, i: Instruction) -> Iterable[Written]:
    """The value that `i` makes a slice of an array, if it does that and no more."""
    root = i.fused_root if i.opcode == "fusion" else i
    if root.opcode != "dynamic-update-slice" or not i.shape.is_array:
        return
    update = root.operands[1]
    while i.opcode == "fusion" and is_view(update):
        update = update.operands[0]
    if i.opcode == "fusion" and update.opcode != "parameter":
        return
    source = i.operands[update.attrs["number"]] if i.opcode == "fusion" else update
    if isinstance(flow.at[source], Value):
        yield Written(flow.value(source), flow.value(i), i)


# -- copies ------------------------------------------------------------------------------------------------------------
def _copy_for_readers(flow: Dataflow, kept: set[Value]) -> None:
    """Have those that compute with an array of the host read a copy on the device."""
    for c in flow.graph.sequential():
        for i in list(c.instructions):
            if i.opcode in _HANDS_ON or _is_move(i):
                continue
            for n, o in enumerate(i.operands):
                v = flow.at.get(o)
                if isinstance(v, Value) and v in kept and not _reaches(i, n) and not _hands_on(flow, i, v):
                    i.set_operand(n, c.add("copy", [o], o.shape.in_memory(0), "copy", like=o))


def _hands_on(flow: Dataflow, i: Instruction, v: Value) -> bool:
    return flow.at.get(i) is v


def _reaches(i: Instruction, operand: int) -> bool:
    """Whether a kernel reads a few elements of an operand, or updates it, or makes it a slice of what it updates."""
    if any(pair.operand == operand for pair in in_place_pairs(i)):
        return True
    if i.opcode != "fusion":
        return reads_part(i) and operand == 0 or i.opcode == "dynamic-update-slice" and operand == 1
    readers = list(i.calls.parameters[operand].users)
    while readers:
        u = readers.pop()
        if is_view(u):
            readers += u.users
        elif not reads_part(u) and not updates_operand(u):
            return False
    return True


def _copy_for_flows(flow: Dataflow, kept: set[Value]) -> None:
    """Copy what moves into a buffer of the other memory."""
    places: dict[tuple[Instruction, int], dict[ShapeIndex, int]] = {}
    for f in flow.flows:
        there = HOST_SPACE if f.target in kept else 0
        if (f.source in kept) != (f.target in kept):
            places.setdefault((f.at, f.operand), {})[f.index] = there
    for (at, operand), spaces in places.items():
        old = at if operand < 0 else at.operands[operand]
        home = old.parent
        assert home is not None
        copies = {}
        for index, space in spaces.items():
            part = part_of(old, index)
            copies[index] = home.add("copy", [part], part.shape.in_memory(space), "copy", like=part)
        new = with_parts(old, copies)
        if operand >= 0:
            at.set_operand(operand, new)
        else:
            home.root = new
        if not old.users and old is not home.root:
            home.remove_dead_from(old)


def _place(flow: Dataflow, kept: set[Value]) -> None:
    """Write the memory of each value into the shapes of what gives it and hands it on."""
    for i, tree in flow.at.items():
        if i.parent is not None and any(v in kept for _, v in leaves(tree)):
            i.shape = _placed(i.shape, tree, kept)
    for c in flow.graph.sequential():
        for i in c.post_order():  # those made anew for copies too
            if i.opcode == "tuple":
                i.shape = tuple_(tuple(o.shape for o in i.operands))
            elif i.opcode == "get-tuple-element":
                i.shape = i.operands[0].shape.at((i.attrs["index"],))


def _placed(shape: Shape, tree: Tree, kept: set[Value]) -> Shape:
    if isinstance(tree, tuple):
        return tuple_(tuple(_placed(s, t, kept) for s, t in zip(shape.tuple_shapes or (), tree, strict=True)))
    return shape.in_memory(HOST_SPACE) if tree in kept else shape


def _copy(i: Instruction, target: str, is_written: bool, ctx: PassContext) -> None:
    """Make a move a copy; nothing, where the array is in that memory already, or a kernel writes it there."""
    home, (x,) = i.parent, i.operands
    assert home is not None
    space = HOST_SPACE if target == TO_HOST else 0
    if is_written or x.shape.is_on_host == (target == TO_HOST):
        why = "a kernel writes it where it goes" if is_written else "the array is there already"
        ctx.decide(False, why, subject=i.name, object=x.name)
        home.replace(i, x)
        return
    ctx.decide(True, "copied to the other memory", subject=i.name, object=x.name, cost_after=i.shape.byte_size)
    home.replace(i, home.add("copy", [x], i.shape.in_memory(space), like=i))
