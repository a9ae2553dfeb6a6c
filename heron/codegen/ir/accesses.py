"""The loads and stores of a lowered loop on a CPU: where they are, and how they move with its steps."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith, llvm, scf
from xdsl.ir import Operation, SSAValue

from heron.codegen.ir.editing import ops_within


def address_of(op: llvm.LoadOp | llvm.StoreOp) -> SSAValue:
    """The address that is read or written."""
    return op.operands[isinstance(op, llvm.StoreOp)]


def place_of(op: llvm.LoadOp | llvm.StoreOp) -> tuple[SSAValue, ...]:
    """The address of a load or store, by what it is computed from."""
    made = address_of(op).owner
    return tuple(made.operands) if isinstance(made, llvm.GEPOp) else (address_of(op),)


def array_of(address: SSAValue) -> SSAValue:
    """The array of an address."""
    while isinstance(address.owner, llvm.GEPOp):
        address = address.owner.operands[0]
    return address


def sources_of(op: Operation) -> set[SSAValue]:
    """The values that a number is computed from, such as the steps of loops, and their own sources."""
    found, left = set[SSAValue](), list(op.operands)
    while left:
        v = left.pop()
        if v not in found:
            found.add(v)
            if isinstance(v.owner, Operation):
                left += v.owner.operands
    return found


def is_apart(address: SSAValue, loop: Operation) -> bool:
    """Whether an address moves with each step of a loop, by more than one number."""
    made, own = address.owner, loop.regions[0].blocks[0].args[0]
    return isinstance(made, llvm.GEPOp) and not follows(made.operands[-1], own) and own in sources_of(made)


def follows(place: SSAValue, step: SSAValue) -> bool:
    """Whether a place moves on by one with each step of a loop: it is a sum with the step's number."""
    made = place.owner
    if isinstance(made, arith.IndexCastOp):
        return follows(made.operands[0], step)
    return place is step or isinstance(made, arith.AddiOp) and any(follows(v, step) for v in made.operands)


def goes_back(place: SSAValue, step: SSAValue) -> bool:
    """Whether a place moves back by one with each step of a loop."""
    made = place.owner
    if isinstance(made, arith.IndexCastOp):
        return goes_back(made.operands[0], step)
    if isinstance(made, arith.SubiOp):
        base = made.lhs.owner
        moves = made.lhs is step or isinstance(base, Operation) and step in sources_of(base)
        return follows(made.rhs, step) and not moves
    return isinstance(made, arith.AddiOp) and any(goes_back(v, step) for v in made.operands)


def is_in_place(op: Operation) -> bool:
    """Whether a loop writes an array that it, or the loop around it, reads."""
    around = op.parent_op()
    return reads_what_is_written(ops_within(around if isinstance(around, scf.ForOp) else op), ops_within(op))


def reads_what_is_written(reading: Iterable[Operation], writing: Iterable[Operation]) -> bool:
    """Whether loads among some ops are of arrays that stores among others write."""
    written = {array_of(address_of(o)) for o in writing if isinstance(o, llvm.StoreOp)}
    return any(isinstance(o, llvm.LoadOp) and array_of(address_of(o)) in written for o in reading)


def bits_of(v: SSAValue) -> int:
    """The bits of a number; 64 of a pointer or an index."""
    return getattr(v.type, "bitwidth", 64)
