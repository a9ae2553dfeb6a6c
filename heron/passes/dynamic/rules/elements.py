"""Elementwise ops, tuples, sizes themselves, calls into libraries: what stands beyond a size may be anything."""

from __future__ import annotations

from heron.hlo.instruction import Instruction
from heron.passes.building import scalar
from heron.passes.dynamic.edges import PAD, SLICE
from heron.passes.dynamic.padded import Padded, refused, remade
from heron.passes.dynamic.rules.table import rule
from heron.passes.expand.expander import home


@rule("add", "map", "all-reduce", "clamp", "select", "tuple", "get-tuple-element", "copy", "opt-barrier",
      "add-dependency", "domain", "iota", "constant", "rng", "rng-bit-generator", "batch-norm-inference",
      "collective-broadcast", "bitcast")  # fmt: skip
def _as_it_is(i: Instruction, operands: list[Padded]) -> Instruction:
    return remade(i, [o.x for o in operands])


@rule("bitcast-convert")
def _bitcast_convert(i: Instruction, operands: list[Padded]) -> Instruction:
    (x,) = operands
    if x.size(i.shape.rank) is not None:
        raise refused(i, "the dimension that makes one element is dynamic")
    return remade(i, [x.x])


@rule("get-dimension-size")
def _size(i: Instruction, operands: list[Padded]) -> Instruction:
    return operands[0].number(i.dimensions[0])


@rule("set-dimension-size")
def _resized(i: Instruction, operands: list[Padded]) -> Instruction:
    return operands[0].masked(i.dimensions, 0)  # what a larger size brings in


@rule("custom-call")
def _custom_call(i: Instruction, operands: list[Padded]) -> Instruction:
    x = operands[0]
    match i.custom_call_target:
        case target if target == PAD:
            dims = range(x.x.shape.rank)
            return home(i).add("tuple", [x.masked(dims, 0), *(x.number(d) for d in dims)], like=i)
        case target if target == SLICE:
            return x.masked(range(x.x.shape.rank), 0)
        case "TopK" if not x.dynamic_of([x.x.shape.rank - 1]):
            return remade(i, [x.x])
    raise refused(i, f"what '{i.custom_call_target}' does with padding is not known")


@rule("topk")
def _top_k(i: Instruction, operands: list[Padded]) -> Instruction:
    (x,) = operands
    if x.dynamic_of([x.x.shape.rank - 1]):
        raise refused(i, "the size of the lines it looks at is dynamic; topk-decomposer makes it a sort")
    return remade(i, [x.x])


@rule("cholesky", "triangular-solve", "fft")
def _matrices(i: Instruction, operands: list[Padded]) -> Instruction:
    """Only whole matrices may be dynamic in number."""
    inner = len(i.fft_length) if i.opcode == "fft" else 2
    for o in operands:
        rank = o.x.shape.rank
        if o.dynamic_of(range(rank - inner, rank)):
            raise refused(i, "the size of what it transforms is dynamic")
    return remade(i, [o.x for o in operands])


def zero_of(x: Padded) -> Instruction:
    """A zero of the element type."""
    return scalar(home(x.x), x.x.shape.element_type, 0)
