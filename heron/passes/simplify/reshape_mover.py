"""reshape-mover: reshapes and transposes go behind elementwise ops."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.literal import Literal
from heron.hlo.module import Module
from heron.passes.base import Pass
from heron.passes.building import array, constant, is_static, reshape
from heron.passes.context import PassContext
from heron.passes.dimensions import reshaped_broadcast, squeezed
from heron.passes.registry import register

_MOVES = ("reshape", "transpose")
#: more ops than this never move together
_MOST = 16

@register
@dataclass(frozen=True)
class ReshapeMover(Pass):
    """Moves a reshape or transpose that the operands of elementwise ops share behind them: one for several.

    Repeated values come along where they can be repeated into the other shape just as well. All users of a moved
    operand move with it, and only where there are no more of them than of moved operands, so that the number of
    reshapes never grows.

    p = f32[6] reshape(f32[2,3] x)
    q = f32[6] reshape(f32[2,3] y)
    s = f32[6] add(p, q)
    zs = f32[6] broadcast(f32[] z), dimensions={}
    ROOT r = f32[6] multiply(s, zs)
    ->
    s = f32[2,3] add(x, y)
    zs = f32[2,3] broadcast(z), dimensions={}
    m = f32[2,3] multiply(s, zs)
    ROOT r = f32[6] reshape(m)
    """

    name = "reshape-mover"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations:
            todo = [i for i in c.post_order() if any(o.opcode in _MOVES for o in i.operands)]
            while todo:
                behind: list[Instruction] = []
                for i in todo:
                    for member in _group(i) if i.parent is c else ():
                        behind += _move(c, member).users
                changed |= bool(behind)
                todo = list(dict.fromkeys(behind))
        return changed


def _group(i: Instruction) -> list[Instruction]:
    """What must move together with `i`: all users of its moved operands, and all of theirs. Empty where one cannot."""
    group: dict[Instruction, None] = {i: None}
    moves: set[Instruction] = set()
    todo = [i]
    while todo:
        member = todo.pop()
        if not _may_move(member):
            return []
        for o in member.operands:
            if o.opcode not in _MOVES or o in moves:
                continue
            if o.is_root or len(o.users) > _MOST:
                return []
            moves.add(o)
            todo += [user for user in o.users if user not in group]
            group.update(dict.fromkeys(o.users))
    return list(group) if len(group) <= len(moves) else []


def _may_move(i: Instruction) -> bool:
    if not i.op.is_elementwise or i.has_side_effect or i.opcode in ("copy", "map") or not is_static(i):
        return False
    if i.control_predecessors or i.control_successors or not i.shape.num_elements:
        return False
    move = _move_of(i)
    return move is not None and all(_comes_along(o, move) for o in i.operands)


def _move_of(i: Instruction) -> Instruction | None:
    return next((o for o in i.operands if o.opcode in _MOVES), None)


def _comes_along(o: Instruction, move: Instruction) -> bool:
    """Whether `o` is moved alike, or can be had in the shape from before the move for nothing."""
    if o.opcode in _MOVES:
        return (
            o.opcode == move.opcode
            and o.operands[0].shape.dims == move.operands[0].shape.dims
            and o.attrs.get("dimensions") == move.attrs.get("dimensions")
        )
    if o.shape.dims != move.shape.dims:  # one value for all elements
        return o.shape.rank == 0
    return o.opcode == "constant" or (o.opcode == "broadcast" and _repeated_before(o, move) is not None)


def _repeated_before(o: Instruction, move: Instruction) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The dimensions of what `o` repeats, and where they are in the shape from before the move."""
    kept, dims = o.attrs["dimensions"], o.operands[0].shape.dims
    if list(kept) != sorted(kept):
        return None
    if move.opcode == "transpose":
        before = tuple([move.attrs["dimensions"][d] for d in kept])
        return (dims, before) if list(before) == sorted(before) else None
    found = reshaped_broadcast(kept, move.shape.dims, move.operands[0].shape.dims)
    if found is None or found[0] == dims:
        return found
    # a value along one dimension is small: reshaping it costs nothing
    return found if len(squeezed(dims)) < 2 and squeezed(dims) == squeezed(found[0]) else None


def _move(c: Computation, i: Instruction) -> Instruction:
    """Do `i` before the move of its operands; returns the move that is now behind it."""
    move = _move_of(i)
    assert move is not None
    operands = [_before(c, o, move) for o in i.operands]
    inner = c.add(i.opcode, operands, array(i.shape.element_type, move.operands[0].shape.dims), like=i, **i.attrs)
    behind = c.add(move.opcode, [inner], i.shape, like=move, **move.attrs)
    c.replace(i, behind)
    return behind


def _before(c: Computation, o: Instruction, move: Instruction) -> Instruction:
    """`o` in the shape from before the move."""
    if o.opcode in _MOVES:
        return o.operands[0]
    if o.shape.dims != move.shape.dims:
        return o
    dims = move.operands[0].shape.dims
    if o.opcode == "constant":
        values = o.attrs["literal"].array
        if move.opcode == "transpose":
            order = move.attrs["dimensions"]
            values = values.transpose([order.index(d) for d in range(len(order))])
        return constant(c, Literal(array(o.shape.element_type, dims), values.reshape(dims)), like=o)
    found = _repeated_before(o, move)
    assert found is not None
    x = reshape(o.operands[0], found[0])
    return c.add("broadcast", [x], array(o.shape.element_type, dims), like=o, dimensions=found[1])
