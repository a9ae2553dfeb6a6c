"""while-loop-fusible-sinking: what a loop only reads slices of is computed for those slices."""

from __future__ import annotations

from heron.analysis.cost.program import trips_of
from heron.hlo.facts import is_expensive, is_slice
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.control_flow.model.loop_state import invariant_elements, is_plain, reads
from heron.passes.control_flow.model.ownership import own_computations
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import is_movable
from heron.records import dataclass

#: elements of a slice that a machine computes at once
_VECTOR = 16


@register
@dataclass(frozen=True)
class WhileLoopFusibleSinking(Pass):
    """Computes elementwise what a loop reads of an array, slice by slice, in the loop instead of for the whole before.

    The array is then never stored: the loop reads what it was computed from, and its kernels do the rest. Sunk is an op
    on one array of the same type (others are constants, broadcast) whose result only this loop takes, never changes,
    and reads by slices that are no more than the whole in all rounds together. Divisions, roots and transcendental
    functions are sunk only into slices that fill a vector.

    body {
      s = (s32[], f32[8], f32[]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      v = f32[8] get-tuple-element(s), index=1
      a = f32[] get-tuple-element(s), index=2
      one = s32[] constant(1)
      next = s32[] add(n, one)
      d = f32[1] dynamic-slice(v, n), dynamic_slice_sizes={1}
      r = f32[] reshape(d)
      b = f32[] add(a, r)
      ROOT t = (s32[], f32[8], f32[]) tuple(next, v, b)
    }

    condition {
      s = (s32[], f32[8], f32[]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      eight = s32[] constant(8)
      ROOT c = pred[] compare(n, eight), direction=LT
    }

    zero = s32[] constant(0)
    y = f32[8] negate(f32[8] x)
    init = (s32[], f32[8], f32[]) tuple(zero, y, f32[] z)
    loop = (s32[], f32[8], f32[]) while(init), condition=condition, body=body
    ROOT r = f32[] get-tuple-element(loop), index=2
    ->
    body {
      s = (s32[], f32[8], f32[]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      next = s32[] add(n, one)
      v = f32[8] get-tuple-element(s), index=1
      a = f32[] get-tuple-element(s), index=2
      d = f32[1] dynamic-slice(v, n), dynamic_slice_sizes={1}
      e = f32[1] negate(d)
      r = f32[] reshape(e)
      b = f32[] add(a, r)
      ROOT t = (s32[], f32[8], f32[]) tuple(next, v, b)
    }

    init = (s32[], f32[8], f32[]) tuple(zero, x, z)
    loop = (s32[], f32[8], f32[]) while(init), condition=condition, body=body
    ROOT r = f32[] get-tuple-element(loop), index=2
    """

    name = "while-loop-fusible-sinking"
    looks_for = frozenset({"while"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            for i in c.instructions:
                if i.opcode == "while" and i.operands[0].opcode == "tuple" and is_plain(i):
                    changed |= _sink(i, ctx)
        return changed


def _sink(loop: Instruction, ctx: PassContext) -> bool:
    init, trips, outside = loop.operands[0], trips_of(loop), reads(loop)
    if len(init.users) > 1 or trips is None or outside is None:
        return False
    changed = False
    for n in invariant_elements(loop):
        while n not in outside and (array := _array_of(init.operands[n], loop)) is not None:
            whole = init.operands[n]
            pieces = _pieces(loop, n)
            if pieces is None or trips * sum(p.shape.num_elements for p in pieces) > whole.shape.num_elements:
                break
            if is_expensive(whole) and any(p.shape.num_elements < _VECTOR for p in pieces):
                break
            if not changed:
                own_computations(loop)
                pieces, changed = _pieces(loop, n) or [], True
            for piece in pieces:
                _compute_after(piece, whole, array)
            init.set_operand(n, array)
            assert loop.parent is not None
            size = whole.shape.byte_size
            loop.parent.remove_dead_from(whole)
            why = f"{len(pieces)} slices of it are computed in the loop"
            ctx.decide(True, why, subject=whole.name, object=loop.name, cost_before=size, cost_after=0)
    return changed


def _array_of(whole: Instruction, loop: Instruction) -> Instruction | None:
    """The array that `whole` is computed from, element by element, for this loop alone; None where it is not."""
    if not whole.op.is_elementwise or len(whole.users) > 1 or not is_movable(whole) or whole.shape.is_scalar:
        return None
    if loop.operands[0].operands.count(whole) > 1:
        return None
    arrays = [o for o in whole.operands if not _is_splat(o)]
    return arrays[0] if len(arrays) == 1 and arrays[0].shape is whole.shape else None


def _is_splat(i: Instruction) -> bool:
    return i.opcode == "broadcast" and i.operands[0].opcode == "constant" and i.operands[0].shape.is_scalar


def _pieces(loop: Instruction, n: int) -> list[Instruction] | None:
    """The slices a round reads of element `n`; None where it is read otherwise."""
    root = loop.body.root
    if n in (reads(loop.condition.parameters[0]) or {}):
        return None
    found: list[Instruction] = []
    for read in (reads(loop.body.parameters[0]) or {}).get(n, []):
        if read in root.operands and root.operands.count(read) > 1:
            return None
        found += [user for user in read.users if user is not root]
    return found if all(is_slice(i) and not i.is_root for i in found) else None


def _compute_after(piece: Instruction, whole: Instruction, array: Instruction) -> None:
    """Let all who read a slice read what `whole` is for it."""
    body = piece.parent
    assert body is not None
    users = list(piece.users)
    operands = [piece if o is array else _splat(body, o, piece) for o in whole.operands]
    made = body.attach(whole.clone(operands, shape=piece.shape))
    piece.replace_uses_with(made, only=users)


def _splat(c: Computation, like: Instruction, piece: Instruction) -> Instruction:
    """The same scalar everywhere, in the shape of a slice."""
    value = c.attach(like.operands[0].clone())
    return c.attach(like.clone([value], shape=piece.shape.with_type(like.shape.element_type)))
