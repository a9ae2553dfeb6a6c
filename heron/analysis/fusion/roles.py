"""The part an op can play in a fusion: computed by a kernel of its own, inside its readers' kernel, or by a library."""

from __future__ import annotations

from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape

#: may be the root of a fusion with producers inside, but not be inside itself
ROOT_ONLY = facts.having(Trait.UPDATES_OPERAND, Trait.REDUCES)

#: ops that kernels are emitted for; others are for libraries, control flow, structure, or are there already
EMITTED = (
    ROOT_ONLY | {"map"} | facts.having(Trait.ELEMENTWISE, Trait.MOVES_ELEMENTS) - facts.having(Trait.FREE) - {"copy"}
)


def is_emitted(i: Instruction) -> bool:
    """Whether `i`, outside of fusions, is computed by an emitted kernel."""
    return i.opcode in EMITTED and not is_view(i)


def stays_alone(i: Instruction) -> bool:
    """Whether the program asks for a kernel of its own for an instruction, by ``nofuse="true"``."""
    return bool(i.extras) and i.extras.get("frontend_attributes", {}).get("nofuse") == "true"


def is_producer(i: Instruction) -> bool:
    """Whether `i` may be computed inside the kernel of its user."""
    if i.opcode == "constant":
        return i.shape.is_scalar
    if i.control_predecessors or i.control_successors or not i.shape.is_array or i.opcode == "copy":
        return False
    if i.extras and stays_alone(i):
        return False
    if i.opcode == "bitcast" and not (_is_row_major(i.shape) and _is_row_major(i.operands[0].shape)):
        return False  # at the edge of the program, between what callers see and what kernels work on
    return i.op.is_elementwise and not i.op.has_side_effect or facts.moves_elements(i)


def is_consumer(i: Instruction) -> bool:
    """Whether the kernel of `i` may compute operands of `i` too."""
    if i.control_predecessors or i.control_successors or is_view(i) or i.extras and stays_alone(i):
        return False
    return (is_producer(i) and i.opcode != "constant") or i.opcode in ROOT_ONLY


def _is_row_major(shape: Shape) -> bool:
    return shape.layout is None or shape.layout.is_default


def is_view(i: Instruction) -> bool:
    """Whether the result has the operand's bytes in the operand's order: no kernel is needed."""
    if not facts.reindexes(i):
        return False
    if not (_is_row_major(i.shape) and _is_row_major(i.operands[0].shape)):
        return i.opcode == "bitcast"
    if facts.is_view(i):
        return True
    if i.opcode == "transpose":
        dims = i.operands[0].shape.dims
        moved = [d for d in i.attrs["dimensions"] if dims[d] != 1]
        return moved == sorted(moved)
    if i.opcode == "broadcast":
        dims = i.attrs.get("dimensions") or ()
        return i.shape.num_elements == i.operands[0].shape.num_elements and list(dims) == sorted(dims)
    return False


def accepts(i: Instruction, operand: int) -> bool:
    """Whether the kernel of `i` may compute that operand of `i`: neither one updated in place nor a start value."""
    if facts.is_reduction(i):
        return operand < len(i.operands) // 2 or i.operands[operand].shape.is_scalar
    return operand >= len(facts.updated_operands(i))
