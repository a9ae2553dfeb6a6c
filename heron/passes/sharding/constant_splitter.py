"""Pass constant-splitter."""

from __future__ import annotations

from heron.hlo.facts import is_generated, is_leaf, reindexes
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ConstantSplitter(Pass):
    """Gives every use of a constant array a constant of its own, so that no sharding passes from one use to another.

    That goes for iotas too, for broadcasts of scalars, and for all that is computed of these elementwise or by moving
    elements; such an expression is copied as a whole. Scalars are not split along any axis and stay shared. After
    partitioning, equal constants of equal shards become one again.

    HloModule m, num_partitions=2
    i = s32[8] iota(), iota_dimension=0
    a = s32[8] add(s32[8] x, i)
    b = s32[8] add(s32[8] y, i)
    ROOT r = (s32[8], s32[8]) tuple(a, b)
    ->
    HloModule m, num_partitions=2
    i = s32[8] iota(), iota_dimension=0
    a = s32[8] add(s32[8] x, i)
    i.1 = s32[8] iota(), iota_dimension=0
    b = s32[8] add(s32[8] y, i.1)
    ROOT r = (s32[8], s32[8]) tuple(a, b)
    """

    name = "constant-splitter"
    constraints = (
        Constraint("sharding-importer", "constant-splitter", "bodies of calls share constants with their callers"),
        Constraint("constant-splitter", "sharding-propagation", "shardings would pass from use to use of a constant"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        if module.num_partitions == 1:
            return False
        return any([_split(c) for c in module.non_fusion_computations()])


def _split(c: Computation) -> bool:
    """Split the constants of one computation; whether any had two uses."""
    order = c.post_order()
    constants: set[Instruction] = set()  # not scalar, and made of constants
    known: set[Instruction] = set()
    for i in order:
        if _is_made_of(i, known):
            known.add(i)
        if not i.shape.is_array or not i.shape.rank or not i.shape.num_elements:
            continue
        if i in known or is_generated(i) and i.operands and i.operands[0].shape.is_scalar:
            constants.add(i)
    claimed = set(_parts(c.root, constants)) if c.root in constants else set[Instruction]()
    changed = False
    for user in order:
        if user in constants:
            continue
        for n, value in enumerate(user.operands):
            if value not in constants:
                continue
            parts = _parts(value, constants)
            if claimed.isdisjoint(parts):
                claimed.update(parts)
                continue
            user.set_operand(n, _copy(c, parts))
            changed = True
    return changed


def _is_made_of(i: Instruction, constants: set[Instruction]) -> bool:
    """Whether an instruction is a constant, an iota, or computed of `constants` alone, element by element."""
    if is_leaf(i):
        return i.opcode == "constant" or is_generated(i)
    if i.has_side_effect or i.has(Trait.RANDOM) or i.control_predecessors:
        return False
    return (i.op.is_elementwise or reindexes(i)) and constants.issuperset(i.operands)


def _parts(value: Instruction, constants: set[Instruction]) -> list[Instruction]:
    """The constants that a constant is made of, operands first, itself last."""
    found: dict[Instruction, None] = {}
    stack = [value]
    while stack:
        i = stack[-1]
        rest = [o for o in i.operands if o in constants and o not in found]
        if rest and i not in found:
            stack += rest
            continue
        found[i] = None
        stack.pop()
    return list(found)


def _copy(c: Computation, parts: list[Instruction]) -> Instruction:
    """Copies of constants; that of the last is returned."""
    copies: dict[Instruction, Instruction] = {}
    for i in parts:
        copies[i] = c.attach(i.clone([copies.get(o, o) for o in i.operands]))
    return copies[parts[-1]]
