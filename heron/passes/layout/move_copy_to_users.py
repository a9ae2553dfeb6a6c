"""move-copy-to-users: copies between layouts behind ops that make less of what they copy."""

from __future__ import annotations

from heron.hlo.facts import having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.layout.model.orders import Order, in_order, is_plain, order, same_place
from heron.passes.rewriting.expander import home
from heron.records import dataclass

#: ops that work in any one order of dimensions that their arrays share; updates are done in place, in their own order
_ANY_ORDER = having(Trait.ANY_ORDER, Trait.REDUCES) - having(Trait.UPDATES_OPERAND, Trait.FORWARDS)


@register
@dataclass(frozen=True)
class MoveCopyToUsers(Pass):
    """Lets ops read what was copied, in the layout it was in, and copies what they give.

    An elementwise op, a slice, a pad, a concatenation or a reduction works in any order of dimensions. Where all its
    arrays are copies from one layout, they are done without, and one copy comes behind: if that moves fewer bytes than
    the copies that go, or as many of one that nobody else reads. So copies of siblings join, and copies of much become
    copies of a little.

    a = f32[64,8]{0,1} copy(f32[64,8]{1,0} x)
    b = f32[64,8]{0,1} copy(f32[64,8]{1,0} y)
    s = f32[64,8]{0,1} add(a, b)
    ROOT p = f32[2,8]{0,1} slice(s), slice={[0:2], [0:8]}
    ->
    s = f32[64,8] add(x, y)
    p = f32[2,8] slice(s), slice={[0:2], [0:8]}
    ROOT c = f32[2,8]{0,1} copy(p)
    """

    name = "move-copy-to-users"
    looks_for = frozenset({"copy"})
    constraints = (
        Constraint("layout-assignment", "move-copy-to-users", "copies between layouts come from there", needed=True),
        Constraint("move-copy-to-users", "layout-normalization", "copies are transposes behind it", all_runs=True),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            copies = [i for i in c.instructions if _moves(i)]
            if not copies or any(i.shape.dynamic for i in c.instructions):
                continue
            for user in c.post_order():
                if user.parent is c and any(o.opcode == "copy" for o in user.operands):
                    changed |= _behind(user, ctx)
        return changed


def _moves(i: Instruction) -> bool:
    """Whether it is a copy between two orders of dimensions, and nothing more."""
    if i.opcode != "copy" or not i.shape.is_array or i.control_predecessors or i.control_successors:
        return False
    x = i.operands[0].shape
    if not is_plain(x) or not is_plain(i.shape) or x.layout is None or i.shape.layout is None:
        return False
    return x.layout is not i.shape.layout


def _behind(user: Instruction, ctx: PassContext) -> bool:
    """Move the copies `user` reads behind it, if that is right and pays."""
    copies = _read_copies(user)
    if copies is None:
        return False
    before = order(copies[0].operands[0].shape)
    shape = _result(user, before)
    saved = sum(_moved(x.operands[0].shape, x.shape) for x in copies if all(u is user for u in x.users))
    moved = _moved(shape, user.shape)
    pays = moved < saved or (moved == saved > 0 and len(copies) == 1)
    why = "what comes of it is moved instead" if pays else "no fewer bytes would be moved behind it"
    ctx.decide(pays, why, subject=copies[0].name, object=user.name, cost_before=float(saved), cost_after=float(moved))
    if not pays:
        return False
    c = home(user)
    operands = [o.operands[0] if o in copies else _as_before(o, before, user) for o in user.operands]
    made = c.attach(user.clone(operands, shape))
    if shape is not user.shape:
        opcode = "copy" if moved else "bitcast"
        c.replace(user, c.add(opcode, [made], user.shape, like=user))
    else:
        c.replace(user, made)
    return True


def _moved(a: Shape, b: Shape) -> int:
    """The bytes that a copy between the two orders moves: 0 where elements keep their places."""
    return 0 if same_place(a, order(a), order(b)) else a.byte_size


def _read_copies(user: Instruction) -> list[Instruction] | None:
    """The copies that are all the arrays `user` reads, from one order; None where it is no such op."""
    if user.control_predecessors or user.control_successors or not user.shape.is_array or not is_plain(user.shape):
        return None
    ranks = [o.shape.rank for o in user.operands]
    if not (user.op.is_elementwise or user.opcode in _ANY_ORDER) or user.shape.layout is None:
        return None
    arrays = [o for o, rank in zip(user.operands, ranks, strict=True) if rank > 1 and not _is_splat(o)]
    copies = [o for o in arrays if _moves(o)]
    if not copies or len(copies) < len(arrays):
        return None
    if any(o.operands[0].shape.layout is not copies[0].operands[0].shape.layout for o in copies):
        return None
    return copies


def _is_splat(i: Instruction) -> bool:
    """Whether it repeats one element, in whatever order."""
    return i.opcode == "broadcast" and i.operands[0].shape.rank == 0


def _as_before(o: Instruction, before: Order, user: Instruction) -> Instruction:
    """An operand that is no copy: a repeated element in that order, or what has no order."""
    if o.shape.rank < 2:
        return o
    return home(user).attach(o.clone(shape=in_order(o.shape, before)))


def _result(user: Instruction, before: Order) -> Shape:
    """The result of `user` on arrays in that order."""
    if user.opcode == "reduce":
        kept = [d for d in before if d not in user.attrs["dimensions"]]
        left = sorted(kept)
        before = tuple([left.index(d) for d in kept])
    return in_order(user.shape, before)
