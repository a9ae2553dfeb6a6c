"""Work: floating-point operations of instructions, in flops of a machine with multiply and add."""

from __future__ import annotations

from math import prod

from heron.analysis.fusion.prefix_scan import is_long_scan
from heron.hlo.calls import convolution, gemm
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
    if opcode == "custom-call":
        return library_flops(i)
    cost = float(i.op.flops)
    return cost * 4 if i.shape.element_type.is_complex else cost


def library_flops(i: Instruction) -> float:
    """Work for one element of what a library's call computes: products sum over contracted dimensions; else 1."""
    target = i.attrs["custom_call_target"]
    if target in convolution.TARGETS:
        output = i.operands[{convolution.BACKWARD_INPUT: 0, convolution.BACKWARD_FILTER: 1}.get(target, 0)].shape
        output = first_array(i) if target in (convolution.FORWARD, convolution.FUSED) else output
        kernel = first_array(i) if target == convolution.BACKWARD_FILTER else i.operands[1].shape
        taps = kernel.num_elements / max(1, kernel.dims[i.attrs["dim_labels"].kernel_output])
        return 2.0 * taps * output.num_elements / max(1, first_array(i).num_elements)
    if target not in gemm.TARGETS:
        return 1.0
    lhs = i.operands[0].shape.dims
    return 2.0 * prod(lhs[d] for d in gemm.read(i).lhs_contracting)


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
    return element_flops(i) * first_array(i).num_elements


def first_array(i: Instruction) -> Shape:
    """The shape of the first array of the result."""
    return i.shape.tuple_shapes[0] if i.shape.tuple_shapes else i.shape
