"""Computing one instruction in a wider type."""

from __future__ import annotations

from heron.hlo.facts import having, plain_products
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.ir.types import ElementType
from heron.passes.rewriting.building import convert
from heron.passes.rewriting.expander import home

#: ops that compute new floats from floats, beside the elementwise ones
_PRODUCTS = plain_products() | {"cholesky", "triangular-solve"}
#: elementwise ops that are about the type itself, or only choose
_KEPT = having(Trait.CONVERTS) | {"select", "copy"}


def computes(i: Instruction) -> bool:
    """Whether an instruction does arithmetic, and not only moves values."""
    return (i.op.is_elementwise and i.opcode not in _KEPT and not i.called) or i.opcode in _PRODUCTS


def involves(i: Instruction, t: ElementType) -> bool:
    """Whether an operand or the result is of that type."""
    return i.shape.element_type is t or any(o.shape.element_type is t for o in i.operands)


def in_wider(i: Instruction, low: ElementType, high: ElementType) -> Instruction:
    """`i` with everything of type `low` as `high`, converted back at the end."""
    operands = [back(o, retyped(o.shape, low, high)) for o in i.operands]
    made = home(i).attach(i.clone(operands, retyped(i.shape, low, high)))
    return back(made, i.shape)


def back(made: Instruction, to: Shape) -> Instruction:
    """`made` as the types `to` has, part by part; `made` itself when it has them."""
    if made.shape.bare is to.bare:
        return made
    if to.tuple_shapes is None:
        return convert(made, to.element_type) if to.is_array else made
    c = home(made)
    parts: list[Instruction] = []
    for n, part in enumerate(to.tuple_shapes):
        piece = c.add("get-tuple-element", [made], made.shape.at((n,)), index=n)
        parts.append(back(piece, part))
    return c.add("tuple", parts)


def retyped(s: Shape, low: ElementType, high: ElementType) -> Shape:
    """The shape with one element type in place of another."""
    if s.tuple_shapes is not None:
        return tuple_(tuple(retyped(p, low, high) for p in s.tuple_shapes))
    return s.with_type(high) if s.element_type is low else s
