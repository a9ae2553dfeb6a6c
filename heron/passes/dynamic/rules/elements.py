"""Elementwise ops, tuples, sizes themselves, calls into libraries: what stands beyond a size may be anything."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import S32
from heron.passes.dynamic.model.edges import PAD, SLICE
from heron.passes.dynamic.model.padded import Padded, refused, remade
from heron.passes.dynamic.rules.table import rule
from heron.passes.rewriting.building import array
from heron.passes.rewriting.expander import home


@rule("add", "map", "all-reduce", "clamp", "select", "tuple", "get-tuple-element", "copy", "opt-barrier",
      "add-dependency", "domain", "iota", "constant", "rng", "rng-bit-generator", "batch-norm-inference")  # fmt: skip
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


@rule("batch-norm-training", "batch-norm-grad")
def _batch_norm(i: Instruction, operands: list[Padded]) -> Instruction:
    raise refused(i, "it divides by how many elements count; batchnorm-expander writes that out")


@rule("topk")
def _top_k(i: Instruction, operands: list[Padded]) -> Instruction:
    (x,) = operands
    if x.dynamic_of([x.x.shape.rank - 1]):
        raise refused(i, "the size of the lines it looks at is dynamic; topk-decomposer makes it a sort")
    return remade(i, [x.x])


@rule("all-gather", "reduce-scatter", "all-to-all")
def _exchanged(i: Instruction, operands: list[Padded]) -> Instruction:
    if i.dimensions and any(o.dynamic_of(i.dimensions) for o in operands):
        raise refused(i, "the dimension along which devices exchange it is dynamic")
    return remade(i, [o.x for o in operands])


@rule("fft")
def _fft(i: Instruction, operands: list[Padded]) -> Instruction:
    (x,) = operands
    if x.dynamic_of(range(i.shape.rank - len(i.fft_length), i.shape.rank)):
        raise refused(i, "the size of what it transforms is dynamic")
    return remade(i, [x.x])


@rule("cholesky")
def _cholesky(i: Instruction, operands: list[Padded]) -> Instruction:
    return remade(i, [_in_identity(operands[0])])


@rule("triangular-solve")
def _triangular_solve(i: Instruction, operands: list[Padded]) -> Instruction:
    a, b = operands
    side = b.x.shape.rank - (2 if i.left_side else 1)
    return remade(i, [_in_identity(a), b.masked([side], 0)])


def _in_identity(a: Padded) -> Instruction:
    """Matrices with ones on the diagonal beyond their size, so that what is inside is solved by itself."""
    c, rank = home(a.x), a.x.shape.rank
    inner = (rank - 2, rank - 1)
    if not a.dynamic_of(inner):
        return a.x
    size = next(s for d in inner if (s := a.size(d)) is not None)
    a = a.also(dict.fromkeys(inner, size))
    where = array(S32, a.x.shape.dims)
    row, column = (c.add("iota", [], where, iota_dimension=d) for d in inner)
    diagonal = c.add("convert", [row.eq(column)], a.x.shape.with_default_layout())
    return c.add("select", [a.inside(inner), a.x, diagonal], a.x.shape)
