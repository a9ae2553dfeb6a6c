"""Calls of handlers of XLA's FFI, which the user registered by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.calls.host import call, memory_order
from heron.errors import HeronError
from heron.hlo.calls.ffi_attributes import read_attributes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.runtime.host import ffi
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def lower(lowering: Lowering, i: Instruction, address: int) -> list[Thunk]:
    """A handler gets the addresses of arrays, which must lie in the layouts the call asks for. Raises GEN018 where one
    does not."""
    constraints: tuple[Shape, ...] = i.attrs.get("operand_layout_constraints") or ()
    for n, (o, stated) in enumerate(zip(i.operands, constraints, strict=False)):
        for index, leaf in stated.leaves():
            lies = o.shape.at(index)
            if leaf.is_array and _places(lies) != _places(leaf):
                why = f"operand {n} is {lies}, and the call wants {leaf}"
                raise HeronError("GEN018", f"'{i.name}' cannot read '{o.name}' in its layout", where=str(i), why=why)
    leaves = [s for o in (*i.operands, i) for _, s in o.shape.leaves() if s.is_array]
    operands = sum(1 for o in i.operands for _, s in o.shape.leaves() if s.is_array)
    attributes = read_attributes(str(i.extras.get("backend_config", "")))
    numbers = [s.element_type.proto_id for s in leaves]
    return call(lowering, i, ffi.Handler(i.custom_call_target, address, numbers, operands, attributes), "ffi")


def _places(shape: Shape) -> list[int]:
    """The dimensions of more than one element, slowest first."""
    return [d for d in memory_order(shape) if shape.dims[d] != 1]
