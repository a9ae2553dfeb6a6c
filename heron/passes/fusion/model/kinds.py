"""What kinds of ops there are for fusion: what is emitted as kernels, what may go inside, what is a library call."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.passes.fusion.model.hints import stays_alone

#: not computed by a kernel of ours: libraries, control flow, structure, data that is already there
NOT_EMITTED = frozenset({
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "copy", "fusion", "call", "while", "conditional",
    "after-all", "add-dependency", "opt-barrier", "domain", "get-dimension-size",
    "set-dimension-size", "dot", "ragged-dot", "scaled-dot", "convolution", "sort", "topk", "fft", "cholesky",
    "triangular-solve", "custom-call", "rng", "rng-bit-generator", "rng-get-and-update-state", "infeed", "outfeed",
    "send", "send-done", "recv", "recv-done", "async-start", "async-update", "async-done", "copy-start", "copy-done",
    "all-gather", "all-gather-start", "all-gather-done", "all-reduce", "all-reduce-start", "all-reduce-done",
    "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-permute", "collective-permute-start",
    "collective-permute-done", "collective-broadcast", "batch-norm-training", "batch-norm-inference",
    "batch-norm-grad", "select-and-scatter", "scan", "dynamic-reshape",
})  # fmt: skip

#: not elementwise, but element k of the result is some element of an operand (or a number): goes inside fusions
MOVES = frozenset({
    "broadcast", "reshape", "transpose", "slice", "pad", "concatenate", "iota", "reverse", "gather", "dynamic-slice",
    "bitcast",
})  # fmt: skip

#: may be the root of a fusion with producers inside, but not be inside itself
ROOT_ONLY = frozenset({"reduce", "reduce-window", "scatter", "dynamic-update-slice"})


def is_emitted(i: Instruction) -> bool:
    """Whether a kernel of ours computes `i`."""
    return i.opcode not in NOT_EMITTED and not is_view(i)


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
    return i.op.is_elementwise and not i.op.has_side_effect or i.opcode in MOVES


def is_consumer(i: Instruction) -> bool:
    """Whether the kernel of `i` may compute operands of `i` too."""
    if i.control_predecessors or i.control_successors or is_view(i) or i.extras and stays_alone(i):
        return False
    return (is_producer(i) and i.opcode != "constant") or i.opcode in ROOT_ONLY


_VIEWS = frozenset({"reshape", "bitcast", "transpose", "broadcast"})


def _is_row_major(shape: Shape) -> bool:
    return shape.layout is None or shape.layout.is_default


def is_view(i: Instruction) -> bool:
    """Whether the result has the operand's bytes in the operand's order: no kernel is needed."""
    opcode = i.opcode
    if opcode in _VIEWS and not (_is_row_major(i.shape) and _is_row_major(i.operands[0].shape)):
        return opcode == "bitcast"
    if opcode in ("reshape", "bitcast"):
        return True
    if opcode == "transpose":
        dims = i.operands[0].shape.dims
        moved = [d for d in i.attrs["dimensions"] if dims[d] != 1]
        return moved == sorted(moved)
    if opcode == "broadcast":
        dims = i.attrs.get("dimensions") or ()
        return i.shape.num_elements == i.operands[0].shape.num_elements and list(dims) == sorted(dims)
    return False


def accepts(i: Instruction, operand: int) -> bool:
    """Whether the kernel of `i` may compute that operand of `i`: not what it updates in place or reads as a start."""
    opcode, x = i.opcode, i.operands[operand]
    if opcode == "reduce" or opcode == "reduce-window":
        return operand < len(i.operands) // 2 or x.shape.is_scalar
    if opcode == "scatter":
        return operand >= len(i.operands) // 2
    if opcode == "dynamic-update-slice":
        return operand != 0
    return True


def updated(i: Instruction) -> list[Instruction]:
    """The operands whose buffers `i` overwrites."""
    if i.opcode == "dynamic-update-slice":
        return i.operands[:1]
    return i.operands[: len(i.operands) // 2] if i.opcode == "scatter" else []
