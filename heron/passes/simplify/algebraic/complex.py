"""Complex numbers and their parts."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.rules import Builder, rule

LAYOUTS = "kept"


@rule("real", "imag", operand="complex")
def part_of_complex(i: Instruction, b: Builder) -> Instruction | None:
    """real(complex(x, y)) == x, imag(complex(x, y)) == y

    c = c64[] complex(f32[] x, f32[] y)
    ROOT r = f32[] imag(c)
    ->
    ROOT y
    """
    match i.operands:
        case [Instruction(opcode="complex", operands=[x, y])]:
            return x if i.opcode == "real" else y
    return None


@rule("complex", operand="real")
def complex_of_parts(i: Instruction, b: Builder) -> Instruction | None:
    """complex(real(z), imag(z)) == z

    x = f32[] real(c64[] z)
    y = f32[] imag(z)
    ROOT r = c64[] complex(x, y)
    ->
    ROOT z
    """
    match i.operands:
        case [Instruction(opcode="real", operands=[z]), Instruction(opcode="imag", operands=[w])] if z is w:
            return z if z.shape.element_type.is_complex else None
    return None


@rule("real", "imag")
def part_of_real(i: Instruction, b: Builder) -> Instruction | None:
    """real(x) == x, imag(x) == 0 for x that is not complex

    ROOT r = f32[] real(f32[] x)
    ->
    ROOT x
    """
    x = i.operands[0]
    if x.shape.element_type.is_complex:
        return None
    return x if i.opcode == "real" else b.splat(i.shape, 0)
