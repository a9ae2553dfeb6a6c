"""copy-insertion: after it, all values that must share a buffer can."""

from __future__ import annotations

from heron.analysis.graph.alias import Clash
from heron.analysis.graph.dataflow import Flow, Value
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import ShapeIndex
from heron.passes.copies.flatten_call_graph import FlattenCallGraph
from heron.passes.copies.model.coalesce import Plan, coalesce, last_readers, order_edges
from heron.passes.copies.model.parallel_moves import Move, sequence
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import own_body
from heron.passes.rewriting.tuples import part_of, with_parts
from heron.records import dataclass


@register
@dataclass(frozen=True)
class CopyInsertion(Pass):
    """Inserts the copies without which buffers could not be shared, and no others.

    Loop state lives in one buffer from its initial value to its result, a branch's result in the conditional's, an
    in-place update in its operand's, an output in the caller's; parameters and constants must not be overwritten. Where
    the lifetimes of two such values overlap, one is copied (or made again, if its kernel has no inputs). Where they do
    not only because readers of the old value run before the writer of the new one, control edges keep it so: any
    schedule that honours them is right. Computations with several callers are cloned first.

    ROOT t = (f32[2], f32[2]) tuple(f32[2] p, f32[2] p)
    ->
    a = f32[2] copy(p)
    b = f32[2] copy(p)
    ROOT t = (f32[2], f32[2]) tuple(a, b)
    """

    name = "copy-insertion"
    constraints = (
        Constraint(
            "copy-insertion",
            "memory-scheduler",
            "copies must be scheduled; their control edges hold only for schedules made after them",
        ),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = FlattenCallGraph().run(module, ctx)
        plan = coalesce(module)
        for flow in plan.shared:
            ctx.decide(
                True,
                f"shared: {_what(flow)}",
                subject=flow.source.name,
                object=flow.target.name,
                cost_before=flow.source.size,
                cost_after=0,
            )
        for flow, clash in plan.copied:
            ctx.decide(
                False,
                f"copied: {_why(flow, clash)}",
                subject=flow.source.name,
                object=flow.target.name,
                cost_before=flow.source.size,
                cost_after=flow.source.size,
            )
        edges = order_edges(plan)
        _insert(module, plan, edges)
        new_edges = [edge for edge in dict.fromkeys(edges) if _is_needed(*edge)]
        for reader, writer in new_edges:
            writer.add_control_predecessor(reader)
        if plan.copied or new_edges:
            module.schedule = None
        return changed or bool(plan.copied) or bool(new_edges)


def _is_needed(reader: Instruction, writer: Instruction) -> bool:
    """Whether a control edge says what is not known already."""
    if reader.parent is not writer.parent or reader is writer:
        return False
    return reader not in writer.operands and reader not in writer.control_predecessors


def _what(f: Flow) -> str:
    return {
        "while-init": "the initial value becomes the loop state",
        "while-body": "the new loop state is written over the old one",
        "branch": "the branch writes the conditional's result",
        "in-place": "updated in place",
        "output": "written straight into the output",
    }[f.kind]


def _why(f: Flow, clash: Clash) -> str:
    for value in (clash.first, clash.second):
        if value.kind == "constant":
            return f"'{value.name}' is a constant"
        if value.kind == "parameter":
            return f"parameter '{value.name}' belongs to the caller"
    if clash.first.kind == "output" and clash.second.kind == "output":
        return f"'{f.source.name}' is an output already"
    return str(clash)


def _insert(module: Module, plan: Plan, edges: list[tuple[Instruction, Instruction]]) -> None:
    """Materialise the copies: those at one place are a parallel move."""
    places: dict[tuple[Instruction, int], list[Flow]] = {}
    for f, _ in plan.copied:
        places.setdefault((f.at, f.operand), []).append(f)
    replaced: list[Instruction] = []
    for (at, operand), flows in places.items():
        if operand < 0:
            replaced.append(_copy_result(plan, at, flows, edges))
        else:
            replaced.append(_copy_operand(plan, at, operand, flows, edges))
    for old in replaced:  # only now: the plan still spoke of them
        if old.opcode == "tuple" and not old.users and old.parent is not None and not old.is_root:
            old.parent.remove(old)
    for flow, _ in plan.copied:
        made = flow.source.instruction
        if made.parent is not None and is_generator(made):
            for part in [u for u in made.users if u.opcode == "get-tuple-element"]:
                made.parent.remove_dead_from(part)
            if made.parent is not None:
                made.parent.remove_dead_from(made)


def _copy_operand(
    plan: Plan, at: Instruction, operand: int, flows: list[Flow], edges: list[tuple[Instruction, Instruction]]
) -> Instruction:
    """Give `at` copies for parts of an operand; the operand as it was."""
    old = at.operands[operand]
    copies = _moves(plan, old, flows, plan.timeline.start[at], edges, at)
    at.set_operand(operand, with_parts(old, copies))
    return old


def _copy_result(
    plan: Plan, root: Instruction, flows: list[Flow], edges: list[tuple[Instruction, Instruction]]
) -> Instruction:
    """Make copies of parts of a computation's root the result; the root as it was."""
    home = root.parent
    assert home is not None
    copies = _moves(plan, root, flows, plan.timeline.span[home][1], edges, root)
    home.root = with_parts(root, copies)
    return root


def _moves(
    plan: Plan,
    old: Instruction,
    flows: list[Flow],
    tick: int,
    edges: list[tuple[Instruction, Instruction]],
    at: Instruction,
) -> dict[ShapeIndex, Instruction]:
    """One copy per flow at `tick`, in an order in which none overwrites what another still reads."""
    home = old.parent
    assert home is not None
    find = plan.sets.find
    sources = {f.index: part_of(old, f.index) for f in flows}
    targets: dict[ShapeIndex, Value] = {f.index: f.target for f in flows}
    moves = [Move(f.index, find(f.source), find(f.target)) for f in flows]
    copies: dict[ShapeIndex, Instruction] = {}
    saved: dict[ShapeIndex, Instruction] = {}
    done: dict[object, list[Instruction]] = {}  # the copies so far, by the place they read
    for move, spill in sequence(moves):
        source = saved.get(move.key, sources[move.key])
        copy = _another(source)
        # readers of what lies in the target buffer (or, for a spill, in the source's own) come first
        if spill:
            saved[move.key] = copy
        else:
            copies[move.key] = copy
            for reader in last_readers(plan, targets[move.key], tick, home):
                if reader is not at:
                    edges.append((reader, copy))
            edges += [(earlier, copy) for earlier in done.get(move.target, ())]
        done.setdefault(move.source, []).append(copy)
    return copies


def _another(source: Instruction) -> Instruction:
    """The value of `source` once more, in a place of its own: copied, or made again where that reads nothing."""
    home = source.parent
    assert home is not None
    if source.opcode == "get-tuple-element" and is_generator(source.operands[0]):
        return _made_again(source.operands[0], source.attrs["index"])
    if source.shape.is_array and is_generator(source):
        return _made_again(source)
    return home.add("copy", [source], source.shape, "copy", like=source)


def _made_again(fill: Instruction, part: int | None = None) -> Instruction:
    """A kernel that reads nothing once more, for one part of what it makes."""
    home = fill.parent
    assert home is not None
    again = home.attach(fill.clone())
    own_body(again)
    if part is not None:
        body, whole = again.calls, again.calls.root
        body.root = whole.operands[part]
        body.remove_dead_from(whole)
        again.shape = fill.shape.at((part,))
    return again


def is_generator(i: Instruction) -> bool:
    """Whether a kernel makes its arrays out of nothing, as one for zeros does."""
    if i.opcode != "fusion" or i.operands or i.has_side_effect:
        return False
    return i.shape.is_array or i.calls.root.opcode == "tuple"
