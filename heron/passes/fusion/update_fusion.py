"""update-fusion: an update of what must be written anyway computes its whole result in one kernel."""

from __future__ import annotations

from heron.analysis.fusion.in_place import updated_parameter
from heron.analysis.fusion.roles import is_producer
from heron.analysis.fusion.scatter_order import ALL, finds_updates, update_count
from heron.hlo.facts import is_given, updated_operands, updates_operand
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.build import fuse
from heron.passes.fusion.model.traffic_model import MACHINES
from heron.passes.rewriting.building import inline, is_static
from heron.records import dataclass

#: what looking at one update costs a thread, and one step of a bisection, in operations
_LOOK, _STEP = 4.0, 8.0


@register
@dataclass(frozen=True)
class UpdateFusion(Pass):
    """Fuses an update with what computes its operand, or with a copy of an operand that must stay, where that is less.

    A scatter or dynamic-update-slice usually changes its operand's buffer, which a kernel or a copy fills before. One
    kernel fills and updates where each element of the result can find its updates: always those of a slice; those of a
    scatter if they are few or sorted. The operand inside the fusion is no parameter then. Arrays of indices that only a
    scatter reads are computed inside as well. Updates of arrays that may be overwritten stay in place, and so do
    scatters whose elements would look at more updates than filling and one more launch cost.

    add {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    zero = f32[] constant(0)
    x = f32[8] broadcast(zero), dimensions={}
    ROOT r = f32[8] scatter(x, s32[3,1] n, f32[3] u), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
    ->
    add {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    body {
      zero = f32[] constant(0)
      x = f32[8] broadcast(zero), dimensions={}
      n = s32[3,1] parameter(0)
      u = f32[3] parameter(1)
      ROOT r = f32[8] scatter(x, n, u), update_window_dims={}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
    }

    ROOT f = f32[8] fusion(s32[3,1] n, f32[3] u), kind=kInput, calls=body
    """

    name = "update-fusion"
    constraints = (
        Constraint("instruction-fusion", "update-fusion", "what computes updates and indices is inside already"),
        Constraint("priority-fusion", "update-fusion", "what computes updates and indices is inside already"),
        Constraint("update-fusion", "multi-output-fusion", "operands computed inside need no kernel"),
        Constraint("update-fusion", "fusion-wrapper", "wrapped ops are not fused any more"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in list(c.instructions):
                if i.parent is c and (update := _update_of(i)) is not None:
                    changed |= _fuse(c, i, update, ctx)
        return changed


def _update_of(i: Instruction) -> Instruction | None:
    """The scatter or dynamic-update-slice that `i` is, or that it is a fusion of."""
    root = i.fused_root if i.opcode == "fusion" else i
    free = not i.control_predecessors and not i.control_successors
    return root if updates_operand(root) and free and is_static(root) else None


def _fuse(c: Computation, i: Instruction, update: Instruction, ctx: PassContext) -> bool:
    how = finds_updates(update) if update.opcode == "scatter" else "those of a slice"
    if not how:
        return False
    operands = _operands(i, update)
    if operands is None:
        return False
    for o in operands:
        if not _is_filled_for(o, i):
            ctx.decide(False, f"'{o.name}' may be overwritten, or is read elsewhere", subject=i.name)
            return False
    whole, in_place = _costs(update, how, operands)
    ok = whole <= in_place
    why = f"updates of an element: {how}"
    ctx.decide(ok, why, subject=i.name, object=operands[0].name, cost_before=in_place, cost_after=whole)
    if not ok:
        return False
    ctx.trace.became[i.name] = _build(c, i, operands).name
    return True


def _operands(i: Instruction, update: Instruction) -> list[Instruction] | None:
    """The updated arrays outside of the fusion; None if some are computed or read inside it."""
    count = len(updated_operands(update))
    if i is update:
        return i.operands[:count]
    found = [updated_parameter(update, n, alone=True) for n in range(count)]
    if any(p is None or update.operands[n] is not p for n, p in enumerate(found)):
        return None
    return [i.operands[p.attrs["number"]] for p in found if p is not None]


def _is_filled_for(o: Instruction, user: Instruction) -> bool:
    """Whether memory would be filled with `o` just for the update: computed for it alone, or copied."""
    if o.opcode == "constant":
        return True
    if o.opcode == "parameter":
        module = o.parent.module if o.parent is not None else None
        if module is None or not o.parent.is_entry:  # type: ignore[union-attr]
            return False
        donated = any(d.parameter == o.number for d in module.buffer_donors)
        return not donated and all(a.parameter != o.number for a in module.input_output_aliases)
    if o.opcode == "iota" or (o.opcode == "broadcast" and o.operands[0].opcode == "constant"):
        return True  # others have their own
    return all(u is user for u in o.users) and not o.is_root and (is_producer(o) or _is_loop(o))


def _is_loop(i: Instruction) -> bool:
    """Whether `i` is a fusion of one array, each element computed by itself."""
    if i.opcode != "fusion" or not i.shape.is_array or i.control_predecessors or i.control_successors:
        return False
    return all(is_given(o) or is_producer(o) for o in i.calls.instructions)


def _costs(update: Instruction, how: str, operands: list[Instruction]) -> tuple[float, float]:
    """Bytes' worth of computing the whole result, and of filling memory and updating it there, on a GPU."""
    machine = MACHINES["gpu"]
    result = sum(o.shape.byte_size for o in operands)
    filled = result + sum(o.shape.byte_size for o in operands if o.opcode == "parameter")
    return max(_looking(update, how) / machine.flops_per_byte, filled), filled + machine.launch_bytes


def _looking(update: Instruction, how: str) -> float:
    """Operations by which all elements of the result find their updates."""
    if update.opcode != "scatter":
        return 0.0
    shape, count = update.operands[0].shape, update_count(update)
    along_rows = shape.rank and shape.rank - 1 not in update.scatter_dims_to_operand_dims
    threads = shape.num_elements / (4 if along_rows else 1)
    return threads * (count * _LOOK if how == ALL else count.bit_length() * _STEP)


# -- building ----------------------------------------------------------------------------------------------------------


def _build(c: Computation, i: Instruction, operands: list[Instruction]) -> Instruction:
    """The fusion of the update `i` and what computes its operands and indices."""
    members: set[Instruction] = set()
    inputs = [o for o in dict.fromkeys(i.operands) if o not in operands]
    update = _taken_apart(c, i, members)
    for o in inputs:
        if update.opcode == "scatter" and _is_cheap(o, update):
            _taken_apart(c, o, members)
    for n, o in enumerate(operands):
        if o.opcode == "parameter" or (is_given(o) and o.shape.rank):
            copy = c.add("copy", [o], o.shape.with_default_layout())
            update.set_operand(n, copy)
            members.add(copy)
        elif o.parent is c:
            _taken_apart(c, o, members)
    members |= {o for m in members for o in m.operands if o.opcode == "constant" and o.shape.is_scalar}
    return fuse([update], members)


def _taken_apart(c: Computation, i: Instruction, members: set[Instruction]) -> Instruction:
    """`i`, or if it is a fusion the root of its body put in its place; all of it becomes members."""
    if i.opcode != "fusion":
        members.add(i)
        return i
    count = sum(o.opcode != "parameter" for o in i.calls.post_order())
    root = inline(i, i.calls, list(i.operands))
    members.update(c.instructions[-count:])
    return root


def _is_cheap(o: Instruction, scatter: Instruction) -> bool:
    """Whether an array of indices, which only the scatter reads, is as easily computed as read."""
    if not (is_producer(o) or _is_loop(o)) or o.is_root or o.opcode == "constant":
        return False
    if o.shape.num_elements > update_count(scatter) * max(1, len(scatter.scatter_dims_to_operand_dims)):
        return False
    body = o.calls.instructions if o.opcode == "fusion" else [o]
    if any(p.opcode == "gather" or p.has(Trait.TRANSCENDENTAL) for p in body):
        return False
    return o.shape.element_type.is_integer and len(o.users) == 1
