"""operand-upcaster: matrix products and convolutions in a type the library has."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.hlo.types import F32, ElementType, by_name
from heron.passes.base import Pass
from heron.passes.context import PassContext
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class OperandUpcaster(Pass):
    """Multiplies in f32 where the matrix library lacks the operands' type, and rounds once at the end.

    Products of small floats are exact in f32 and sums are kept in f32, so nothing is lost. `supported` names the types
    the library multiplies itself; integer products are left alone.

    ROOT r = bf16[4,2] dot(bf16[4,8] x, bf16[8,2] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    a = f32[4,8] convert(x)
    b = f32[8,2] convert(y)
    wide = f32[4,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = bf16[4,2] convert(wide)
    """

    name = "operand-upcaster"

    supported: tuple[str, ...] = ("f32", "f64", "c64", "c128")

    def run(self, module: Module, ctx: PassContext) -> bool:
        supported = {by_name(n) for n in self.supported}
        changed = False
        for c in module.computations:
            for i in c.instructions:
                if i.opcode in ("dot", "convolution") and self._wants(i, supported):
                    self._widen(i)
                    changed = True
        return changed

    def _wants(self, dot: Instruction, supported: set[ElementType]) -> bool:
        types = {o.shape.element_type for o in dot.operands[:2]} | {dot.shape.element_type}
        if not all(t.is_float for t in types):
            return False
        return len(types) > 1 or not types <= supported

    def _widen(self, dot: Instruction) -> None:
        c = dot.parent
        assert c is not None
        types = {o.shape.element_type for o in dot.operands[:2]} | {dot.shape.element_type}
        wide = max(types, key=lambda t: t.bits) if any(t.bits == 64 for t in types) else F32
        operands = [
            o if o.shape.element_type is wide else c.add("convert", [o], o.shape.with_type(wide), like=dot)
            for o in dot.operands[:2]
        ]
        product = c.attach(dot.clone([*operands, *dot.operands[2:]], dot.shape.with_type(wide)))
        if dot.shape.element_type is wide:
            c.replace(dot, product)
        else:
            c.replace_with(dot, "convert", [product], dot.shape)
