"""ragged-all-to-all-decomposer: pieces of differing length are exchanged in blocks of one length."""

from __future__ import annotations

from typing import Any

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import row_major, scalar
from heron.hlo.ir.types import PRED
from heron.passes.collectives.model.places import group_size
from heron.passes.collectives.model.reductions import is_free
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape, splat
from heron.passes.rewriting.building import scalar as constant
from heron.records import dataclass


@register
@dataclass(frozen=True)
class RaggedAllToAllDecomposer(Pass):
    """Replaces ragged-all-to-alls, for machines without one, by an all-to-all of blocks as long as the whole operand.

    Each piece begins a block; where it goes and how long it is are exchanged too. The receiver writes so many rows of
    each block into the output, one piece after the other.

    HloModule example, replica_count=2

    at = s32[2] constant({0, 1})
    n = s32[2] constant({1, 2})
    to = s32[2] constant({0, 2})
    ROOT r = f32[4] ragged-all-to-all(f32[4] x, f32[4] y, at, n, to, n), replica_groups={{0,1}}
    ->
    ...
    """

    name = "ragged-all-to-all-decomposer"
    constraints = (
        Constraint(
            "ragged-all-to-all-canonicalizer", "ragged-all-to-all-decomposer", "none is left for that behind this"
        ),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode != "ragged-all-to-all" or not is_free(i):
                    continue
                count, size = i.operands[2].shape, group_size(i, module)
                if size is None or count.rank != 1 or not count.dims[0] or count.dims[0] % size:
                    continue
                c.replace(i, _written(i, *_exchanged(i)))
                ctx.decide(True, "pieces are exchanged in blocks of one length", subject=i.name)
                changed = True
        return changed


def _exchanged(i: Instruction) -> tuple[Instruction, Instruction, Instruction]:
    """The blocks that this device receives, where each belongs, and how many of its rows count."""
    c, (x, _, starts, sizes, targets, _) = i.parent, i.operands
    assert c is not None
    rows, rest, element = x.shape.dims[0], x.shape.dims[1:], x.shape.element_type
    longer = _longer(x, rows)
    blocks = [reshape(_rows(longer, _entry(starts, k), rows), (1, rows, *rest)) for k in range(starts.shape.dims[0])]
    dense = blocks[0]
    if blocks[1:]:
        shape = array(element, (len(blocks), rows, *rest))
        dense = c.add("concatenate", blocks, shape, like=i, dimensions=(0,))
    attrs: dict[str, Any] = {**i.attrs, "dimensions": (0,)}
    received, to, count = (c.add("all-to-all", [v], v.shape, like=i, **attrs) for v in (dense, targets, sizes))
    return received, to, count


def _written(i: Instruction, received: Instruction, targets: Instruction, sizes: Instruction) -> Instruction:
    """The output with the rows that count of each block."""
    c, (x, output, *_) = i.parent, i.operands
    assert c is not None
    rows, rest = x.shape.dims[0], x.shape.dims[1:]
    result = _longer(output, rows)
    of = sizes.shape.element_type
    place = c.add("iota", [], row_major(of, rows, *rest), iota_dimension=0)
    for k in range(sizes.shape.dims[0]):
        bounds = ((k, k + 1, 1), *((0, n, 1) for n in (rows, *rest)))
        block = reshape(
            c.add("slice", [received], array(x.shape.element_type, (1, rows, *rest)), slice=bounds), x.shape.dims
        )
        size = c.add("broadcast", [_entry(sizes, k)], place.shape, dimensions=())
        counts = c.add("compare", [place, size], place.shape.with_type(PRED), direction="LT")
        at = _entry(targets, k)
        kept = c.add("select", [counts, block, _rows(result, at, rows)], block.shape)
        result = c.add("dynamic-update-slice", [result, kept, *_starts(at, len(rest))], result.shape, like=i)
    bounds = tuple((0, n, 1) for n in output.shape.dims)
    return c.add("slice", [result], i.shape, like=i, slice=bounds)


def _longer(x: Instruction, rows: int) -> Instruction:
    """`x` with so many rows more, so that a block can begin at any of its own."""
    assert x.parent is not None
    more = splat(x.parent, array(x.shape.element_type, (rows, *x.shape.dims[1:])), 0)
    shape = array(x.shape.element_type, (x.shape.dims[0] + rows, *x.shape.dims[1:]))
    return x.parent.add("concatenate", [x, more], shape, like=x, dimensions=(0,))


def _entry(vector: Instruction, k: int) -> Instruction:
    """Entry `k` of a vector, as a scalar."""
    c, of = vector.parent, vector.shape.element_type
    assert c is not None
    one = c.add("slice", [vector], row_major(of, 1), slice=((k, k + 1, 1),))
    return c.add("reshape", [one], scalar(of))


def _starts(at: Instruction, others: int) -> list[Instruction]:
    assert at.parent is not None
    return [at, *[constant(at.parent, at.shape.element_type, 0)] * others]


def _rows(x: Instruction, at: Instruction, rows: int) -> Instruction:
    """So many rows of `x` from `at` on."""
    assert x.parent is not None
    dims = (rows, *x.shape.dims[1:])
    shape, starts = array(x.shape.element_type, dims), _starts(at, len(dims) - 1)
    return x.parent.add("dynamic-slice", [x, *starts], shape, dynamic_slice_sizes=dims)
