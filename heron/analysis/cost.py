"""A first cost of an instruction: floating-point work and bytes moved. Units: flops and bytes."""

from __future__ import annotations

from math import prod

from heron.analysis.prefix_scan import is_long_scan
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction

#: what one element of an op costs, in flops of a machine with multiply and add; 1 where not listed
OP_FLOPS: dict[str, float] = {
    "divide": 4, "remainder": 12, "sqrt": 4, "rsqrt": 5, "cbrt": 25, "exponential": 12, "exponential-minus-one": 18,
    "log": 14, "log-plus-one": 18, "logistic": 18, "tanh": 18, "tan": 30, "sine": 22, "cosine": 22, "sinh": 25,
    "cosh": 25, "asin": 25, "acos": 25, "atan": 20, "asinh": 30, "acosh": 30, "atanh": 30, "atan2": 30, "power": 40,
    "erf": 20,
    "broadcast": 0, "reshape": 0, "bitcast": 0, "transpose": 0, "slice": 0, "reverse": 0, "iota": 0.5, "constant": 0,
    "parameter": 0, "copy": 0, "concatenate": 1, "pad": 1, "gather": 3, "dynamic-slice": 1, "tuple": 0,
    "get-tuple-element": 0,
}  # fmt: skip

#: ops that read no more of operand 0 than they give out
_PARTIAL = frozenset({"slice", "dynamic-slice", "gather"})


def element_flops(i: Instruction) -> float:
    """Work for one element of the result, operands' work not included."""
    opcode = i.opcode
    if opcode == "reduce":
        reduced = i.operands[0].shape.num_elements / max(1, _first(i).num_elements)
        return reduced * max(1, len(i.attrs["to_apply"]) - 2)
    if opcode == "reduce-window":
        if is_long_scan(i):
            return computation_flops(i.attrs["to_apply"])
        return prod(w.size for w in i.attrs["window"]) * max(1, len(i.attrs["to_apply"]) - 2)
    if opcode == "dot":
        lhs = i.operands[0].shape.dims
        return 2.0 * prod(lhs[d] for d in i.attrs.get("lhs_contracting_dims") or ())
    cost = OP_FLOPS.get(opcode, 1.0)
    return cost * 4 if i.shape.element_type.is_complex else cost


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
    return element_flops(i) * _first(i).num_elements


def bytes_read(i: Instruction) -> int:
    """Bytes of operands read when `i` runs as one kernel: each distinct operand once, of slices only what is used."""
    if i.opcode == "fusion":
        return sum(_parameter_bytes(p) for p in i.attrs["calls"].parameters)
    total = sum(_size(o) for o in dict.fromkeys(i.operands))
    if i.opcode in _PARTIAL:
        total += min(0, _size(i) - _size(i.operands[0]))
    elif i.opcode in ("dynamic-update-slice", "scatter"):
        total -= sum(_size(o) for o in i.operands[: max(1, len(i.operands) // 2) if i.opcode == "scatter" else 1])
    return total


def bytes_written(i: Instruction) -> int:
    """Bytes of the result written; of an in-place update only the update's."""
    root = i.attrs["calls"].root if i.opcode == "fusion" else i
    parts = root.operands if root.opcode == "tuple" else [root]
    total = 0
    for part in parts:
        if part.opcode == "dynamic-update-slice":
            total += _size(part.operands[1])
        elif part.opcode == "scatter":
            total += sum(_size(o) for o in part.operands[len(part.operands) // 2 + 1 :])
        else:
            total += _size(part)
    return total


def _parameter_bytes(p: Instruction) -> int:
    """Of a fusion's parameter: all of it, or what its users pick out when all of them pick."""
    if p.users and all(u.opcode in _PARTIAL and u.operands[0] is p for u in p.users):
        return min(_size(p), sum(_size(u) for u in p.users))
    if all(u.opcode in ("dynamic-update-slice", "scatter") and u.operands[0] is p for u in p.users):
        return 0
    return _size(p)


def _first(i: Instruction):
    return i.shape.tuple_shapes[0] if i.shape.tuple_shapes else i.shape


def _size(i: Instruction) -> int:
    return sum(s.byte_size for _, s in i.shape.leaves())
