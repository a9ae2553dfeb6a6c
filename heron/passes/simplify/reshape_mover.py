"""reshape-mover: reshapes and transposes go behind elementwise ops."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.passes.base import Pass
from heron.passes.building import array, is_static
from heron.passes.context import PassContext
from heron.passes.registry import register

_MOVES = ("reshape", "transpose")


@register
@dataclass(frozen=True)
class ReshapeMover(Pass):
    """Moves a reshape or transpose that all operands of an elementwise op share behind it: one for several.

    Repeated scalars fit any shape. A move is made only where nobody else needs the moved operands, so that the number
    of reshapes never grows.

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
            for i in c.post_order():
                if i.parent is c and _may_move(i):
                    _move(c, i)
                    changed = True
        return changed


def _may_move(i: Instruction) -> bool:
    if not i.op.is_elementwise or i.has_side_effect or i.opcode in ("copy", "map") or not is_static(i):
        return False
    if any(o.shape.dims != i.shape.dims for o in i.operands):
        return False
    moved = [o for o in i.operands if o.opcode in _MOVES]
    if not moved or any(o.opcode not in _MOVES and not _is_repeated(o) for o in i.operands):
        return False
    first = moved[0]
    if first.shape.num_elements == 0 or len(first.operands[0].shape.dims) > 8:
        return False
    same = all(
        o.opcode == first.opcode
        and o.operands[0].shape.dims == first.operands[0].shape.dims
        and o.attrs.get("dimensions") == first.attrs.get("dimensions")
        for o in moved
    )
    return same and all(user is i for o in moved for user in o.users) and not any(o.is_root for o in moved)


def _is_repeated(i: Instruction) -> bool:
    return i.opcode == "broadcast" and not i.operands[0].shape.rank


def _move(c: Computation, i: Instruction) -> None:
    first = next(o for o in i.operands if o.opcode in _MOVES)
    dims = first.operands[0].shape.dims
    operands = []
    for o in i.operands:
        if o.opcode in _MOVES:
            operands.append(o.operands[0])
        else:
            value = o.operands[0]
            operands.append(c.add("broadcast", [value], array(value.shape.element_type, dims), like=o, dimensions=()))
    inner = c.add(i.opcode, operands, array(i.shape.element_type, dims), like=i, **i.attrs)
    c.replace(i, c.add(first.opcode, [inner], i.shape, like=first, **first.attrs))
