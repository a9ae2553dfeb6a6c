"""Work: floating-point operations of instructions, in flops of a machine with multiply and add."""

from __future__ import annotations

from math import log2, prod

from heron.analysis.fusion.prefix_scan import is_long_scan
from heron.analysis.values.splat import splat_value
from heron.hlo.calls.declared import declaration
from heron.hlo.facts import updates_operand
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape


def element_flops(i: Instruction) -> float:
    """Work for one element of the result, operands' work not included."""
    opcode = i.opcode
    if opcode == "reduce":
        reduced = i.operands[0].shape.num_elements / max(1, first_array(i).num_elements)
        return reduced * max(1, len(i.attrs["to_apply"]) - 2)
    if opcode == "reduce-window":
        if is_long_scan(i):
            return computation_flops(i.attrs["to_apply"])
        return prod(w.size for w in i.window) * max(1, len(i.attrs["to_apply"]) - 2)
    if opcode == "dot":
        lhs = i.operands[0].shape.dims
        return 2.0 * prod(lhs[d] for d in i.attrs.get("lhs_contracting_dims") or ())
    if opcode == "fft":
        return 5.0 * log2(max(2, prod(i.fft_length)))
    if opcode == "custom-call":
        return library_flops(i)
    if i.op.float_flops and i.shape.element_type.is_float:
        return i.op.float_flops
    if i.op.integer_flops and i.shape.element_type.is_integer:
        return i.op.integer_flops[splat_value(i.operands[-1]) is not None][i.shape.element_type.bits > 32]
    cost = float(i.op.flops)
    return cost * 4 if i.shape.element_type.is_complex else cost


def library_flops(i: Instruction) -> float:
    """Work for one element of the first result of a library's call, as its declaration counts it; else 1."""
    call = declaration(i.attrs["custom_call_target"])
    return 1.0 if call is None or call.flops is None else call.flops(i)


def computation_flops(c: Computation) -> float:
    """Work of a scalar computation, a reducer's for one."""
    return sum(element_flops(i) for i in c.instructions)


def flops(i: Instruction) -> float:
    """Work for the whole result. A fusion's is the sum over its computation; a convolution's counts kernel taps."""
    if i.opcode == "fusion":
        return sum(flops(inner) for inner in i.attrs["calls"].instructions)
    if i.opcode == "convolution":
        labels, kernel = i.attrs["dim_labels"], i.operands[1].shape
        outputs = max(1, kernel.dims[labels.kernel_output])
        return 2.0 * i.shape.num_elements * kernel.num_elements / outputs
    return element_flops(i) * computed_elements(i)


def computed_elements(i: Instruction) -> int:
    """The elements that an instruction computes: of an array that is updated, those that are replaced."""
    if not updates_operand(i):
        return first_array(i).num_elements
    return i.operands[1 if i.opcode == "dynamic-update-slice" else -1].shape.num_elements


def computed_part(i: Instruction) -> float:
    """The part of the result's elements that an instruction computes: see `computed_elements`."""
    return computed_elements(i) / max(1, first_array(i).num_elements) if updates_operand(i) else 1.0


def first_array(i: Instruction) -> Shape:
    """The shape of the first array of the result."""
    return i.shape.tuple_shapes[0] if i.shape.tuple_shapes else i.shape
