"""reshape-mover: reshapes and transposes go behind elementwise ops."""

from __future__ import annotations

from dataclasses import field

from heron.hlo.facts import reshapings
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, constant, is_static, reshape
from heron.passes.rewriting.dimensions import reshaped_broadcast, squeezed
from heron.records import dataclass

_MOVES = reshapings()


@register
@dataclass(frozen=True)
class ReshapeMover(Pass):
    """Moves reshapes and transposes behind the elementwise ops that work on their results: one for several.

    Ops that hang together by equal moves, or by each other, move as one region, and only where that leaves no more
    moves than there were. Constants and repeated values come along where they are as easily had in the other shape.

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
        for c in module.computations_to_rewrite():
            for region in _regions(c):
                if region.is_worth_it():
                    if not ctx.may_fire("move", "reshape_mover.py", next(iter(region.members))):
                        return changed
                    ctx.fired("move", "reshape_mover.py")
                    region.move(c)
                    changed = True
        return changed


@dataclass(eq=False, slots=True)
class _Region:
    """Elementwise ops, operands first, that can be done before the moves of their operands, all like ``like``."""

    like: Instruction
    moves: dict[Instruction, None] = field(default_factory=dict)
    members: dict[Instruction, None] = field(default_factory=dict)

    def is_worth_it(self) -> bool:
        """Whether as many moves go as have to come behind members."""
        gone = sum(not m.is_root and all(user in self.members for user in m.users) for m in self.moves)
        return sum(map(self._has_to_be_moved_back, self.members)) <= gone

    def _is_needed_outside(self, i: Instruction) -> bool:
        return i.is_root or any(user not in self.members for user in i.users)

    def _has_to_be_moved_back(self, i: Instruction) -> bool:
        return i.is_root or any(user not in self.members and not self._is_absorbed(user) for user in i.users)

    def _is_absorbed(self, user: Instruction) -> bool:
        """Whether a move before `user` goes away again by the algebraic simplifier's rules."""
        like = self.like
        if user.opcode == "reduce":
            return like.opcode == "transpose" or squeezed(like.shape.dims) == squeezed(like.operands[0].shape.dims)
        return user.opcode == like.opcode

    def move(self, c: Computation) -> None:
        """Do the members before the moves, and move what others need."""
        dims = self.like.operands[0].shape.dims
        inner: dict[Instruction, Instruction] = {}
        for i in self.members:
            operands = [inner[o] if o in inner else _before(c, o, self.like) for o in i.operands]
            inner[i] = c.add(i.opcode, operands, array(i.shape.element_type, dims), like=i, **i.attrs)
        for i in [i for i in self.members if self._is_needed_outside(i)]:
            c.replace(i, c.add(self.like.opcode, [inner[i]], i.shape, like=i, **self.like.attrs))
        for dead in (*self.members, *inner.values()):  # members nobody used
            c.remove_dead_from(dead)


def _regions(c: Computation) -> list[_Region]:
    """The regions behind the moves of `c`, grown from user to user."""
    of: dict[Instruction, _Region] = {}
    work = [user for i in c.instructions if i.opcode in _MOVES for user in i.users]
    for i in work:  # grows: what could not come along is looked at again once an operand of its does
        if i in of or not _may_move(i):
            continue
        heads = [o for o in i.operands if o in of or o.opcode in _MOVES]
        like = of[heads[0]].like if heads[0] in of else heads[0]
        if not all(_comes_along(o, like, of) for o in i.operands):
            continue
        region = of.setdefault(heads[0], _Region(like, moves={heads[0]: None}))
        for o in heads[1:]:
            joined = of.setdefault(o, _Region(like, moves={o: None}))
            if joined is not region:
                joined, region = sorted((joined, region), key=lambda r: len(r.members) + len(r.moves))
                of.update(dict.fromkeys((*joined.moves, *joined.members), region))
                region.moves |= joined.moves
                region.members |= joined.members
        of[i] = region
        region.members[i] = None
        work += i.users
    return list(dict.fromkeys(of.values()))


def _may_move(i: Instruction) -> bool:
    if not i.op.is_elementwise or i.has_side_effect or i.opcode == "copy" or not is_static(i):
        return False
    return not i.control_predecessors and not i.control_successors and i.shape.num_elements > 0


def _comes_along(o: Instruction, like: Instruction, of: dict[Instruction, _Region]) -> bool:
    """Whether `o` is moved as `like` is, or as easily had in the shape from before."""
    if o in of or o.opcode in _MOVES:
        move = of[o].like if o in of else o
        return (
            move.opcode == like.opcode
            and move.shape.dims == like.shape.dims
            and move.operands[0].shape.dims == like.operands[0].shape.dims
            and move.attrs.get("dimensions") == like.attrs.get("dimensions")
        )
    if o.shape.dims != like.shape.dims:  # one value for all elements
        return o.shape.rank == 0
    if o.opcode == "constant":
        return len(o.users) == 1
    return o.opcode == "broadcast" and _repeated_before(o, like) is not None


def _repeated_before(o: Instruction, like: Instruction) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The dimensions of what `o` repeats, and where they are in the shape from before the move."""
    kept, dims = o.attrs["dimensions"], o.operands[0].shape.dims
    if list(kept) != sorted(kept):
        return None
    if like.opcode == "transpose":
        before = tuple([like.attrs["dimensions"][d] for d in kept])
        return (dims, before) if list(before) == sorted(before) else None
    found = reshaped_broadcast(kept, like.shape.dims, like.operands[0].shape.dims)
    if found is None or found[0] == dims:
        return found
    # a value along one dimension is small: reshaping it costs nothing
    return found if len(squeezed(dims)) < 2 and squeezed(dims) == squeezed(found[0]) else None


def _before(c: Computation, o: Instruction, like: Instruction) -> Instruction:
    """An operand that is no member in the shape from before the move."""
    if o.opcode in _MOVES:
        return o.operands[0]
    if o.shape.dims != like.shape.dims:
        return o
    dims = like.operands[0].shape.dims
    if o.opcode == "constant":
        values = o.attrs["literal"].array
        if like.opcode == "transpose":
            order = like.attrs["dimensions"]
            values = values.transpose([order.index(d) for d in range(len(order))])
        return constant(c, Literal(array(o.shape.element_type, dims), values.reshape(dims)), like=o)
    found = _repeated_before(o, like)
    assert found is not None
    x = reshape(o.operands[0], found[0])
    return c.add("broadcast", [x], array(o.shape.element_type, dims), like=o, dimensions=found[1])
