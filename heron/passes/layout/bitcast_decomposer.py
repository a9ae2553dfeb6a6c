"""bitcast-decomposer: bitcasts between layouts as what they do to elements."""

from __future__ import annotations

from collections.abc import Iterable

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.layout.model.orders import has_layouts, inverse, is_default, order
from heron.passes.rewriting.building import reshape, transpose
from heron.passes.rewriting.expander import home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class BitcastDecomposer(Pass):
    """Writes the bitcasts of a program with layouts as the transposes and reshapes they stand for.

    The value of a bitcast depends on its operand's layout, and so on everything the operand comes from, through tuples,
    loops and branches. Passes that know no layouts may only run when there is no such bitcast. Programs in which
    everything is row-major, as all are that no other compiler has worked on, are left as they are.

    n = f32[8,4]{0,1} negate(f32[8,4]{0,1} x)
    ROOT b = f32[4,8]{1,0} bitcast(n)
    ->
    n = f32[8,4]{0,1} negate(f32[8,4]{0,1} x)
    ROOT t = f32[4,8]{1,0} transpose(n), dimensions={1,0}
    """

    name = "bitcast-decomposer"
    looks_for = frozenset({"bitcast"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        seen = tuple(module.parameter_shapes), module.result_shape
        if not has_layouts(module):
            return False
        if not decompose([i for i in module.instructions() if i.opcode == "bitcast" and _keeps_width(i)]):
            return False
        module.entry_layout = module.entry_layout or seen  # callers see the layouts they saw
        return True


def decompose(bitcasts: Iterable[Instruction]) -> bool:
    """Rewrite those bitcasts; whether there were any."""
    # what a bitcast reads may be one itself: its layout is looked at before that goes
    known = [(i, i.operands[0].shape) for i in bitcasts]
    for i, laid in known:
        c, x = home(i), i.operands[0]
        stored = reshape(transpose(x, order(laid)), [i.shape.dims[d] for d in order(i.shape)])
        if i.shape.element_type is not x.shape.element_type:
            stored = c.add("bitcast-convert", [stored], stored.shape.with_type(i.shape.element_type), like=i)
        c.replace(i, transpose(stored, inverse(order(i.shape))))
    return bool(known)


def moves_elements(i: Instruction) -> bool:
    """Whether a bitcast is between arrays of which one is not row-major."""
    return _keeps_width(i) and not (is_default(i.operands[0].shape) and is_default(i.shape))


def _keeps_width(i: Instruction) -> bool:
    return i.operands[0].shape.element_type.bits == i.shape.element_type.bits
