"""layout-normalization: everything row-major, with explicit transposes where elements change places."""

from __future__ import annotations

from collections.abc import Callable

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import ShapeIndex
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.layout.model.orders import Rows, has_layouts, is_default, is_plain, laid, order, stored
from heron.passes.layout.model.permuted import Rule, rule_for
from heron.passes.rewriting.expander import home
from heron.passes.rewriting.tuples import arranged, part_of, read_from
from heron.records import dataclass


@register
@dataclass(frozen=True)
class LayoutNormalization(Pass):
    """Makes every op one on row-major arrays: its operands' bytes, with their dimensions in the order they lie in.

    An array in another order is read by a bitcast as the row-major array its bytes are, the op's attributes follow the
    new order of dimensions, and the result goes back by a bitcast. So layouts stay only where values are handed on as
    they lie: in parameters, results, tuples, loops and library calls. A copy between two layouts becomes a transpose,
    and so does whatever an op cannot do in the order its operands come in. Tiles, other memory spaces and computations
    with dynamic dimensions are left alone, and so is what control edges hold in its place.

    n = f32[8,4]{0,1} negate(f32[8,4]{0,1} x)
    c = f32[8,4]{1,0} copy(n)
    ROOT s = f32[8,2]{1,0} slice(c), slice={[0:8], [0:2]}
    ->
    bytes = f32[4,8] bitcast(x)
    n = f32[4,8] negate(bytes)
    t = f32[8,4] transpose(n), dimensions={1,0}
    ROOT s = f32[8,2] slice(t), slice={[0:8], [0:2]}
    """

    name = "layout-normalization"
    constraints = (Constraint("layout-assignment", "layout-normalization", "layouts must be there", needed=True),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        if not has_layouts(module):
            return False
        changed = False
        for c in module.computations_to_rewrite():
            if any(i.shape.dynamic for i in c.instructions):
                continue
            rows = Rows()
            for i in c.post_order():
                if i.parent is c and _is_laid_out(i):
                    changed |= _in_rows(i, rows)
        return changed


def _is_laid_out(i: Instruction) -> bool:
    """Whether layouts are all there is to do about an instruction, and there are some."""
    if is_default(i.shape) and all(is_default(o.shape) for o in i.operands):
        return False
    if not is_plain(i.shape) or not all(is_plain(o.shape) for o in i.operands):
        return False
    return not i.control_predecessors and not i.control_successors


def _in_rows(i: Instruction, rows: Rows) -> bool:
    """Make `i` an op on row-major arrays; whether it was not one of those that hand on values as they lie."""
    rule = rule_for(i)
    if rule is None or (i.opcode == "bitcast" and _is_view(i)):
        return False
    c = home(i)
    if i.shape.is_array:
        made, dims = rule(i, rows)
        is_new = not made.users and made.opcode == i.opcode
        c.replace(i, laid(made, dims, i.shape))
        if is_new:
            made.name = i.name  # questions about it find it
    else:
        read_from(arranged(i.shape, _copied(i, rows) if i.opcode == "copy" else _computed(i, rows, rule)), i)
    if i.parent is c:  # it has effects, which are those of what stands for it now
        c.remove(i)
    return True


def _computed(i: Instruction, rows: Rows, rule: Rule) -> Callable[[ShapeIndex], Instruction]:
    """The parts of an op with several results."""
    made, dims = rule(i, rows)

    def leaf(index: ShapeIndex) -> Instruction:
        part = home(i).add("get-tuple-element", [made], made.shape.at(index), like=i, index=index[0])
        return laid(part, dims, i.shape.at(index))

    return leaf


def _copied(i: Instruction, rows: Rows) -> Callable[[ShapeIndex], Instruction]:
    """The parts of a copied tuple."""

    def leaf(index: ShapeIndex) -> Instruction:
        part, shape = part_of(i.operands[0], index), i.shape.at(index)
        return laid(rows.ordered(part, order(shape)), order(shape), shape) if shape.is_array else part

    return leaf


def _is_view(i: Instruction) -> bool:
    """Whether a bitcast is between an array and the row-major one that has its bytes."""
    x = i.operands[0].shape
    return i.shape is stored(x) or x is stored(i.shape)
