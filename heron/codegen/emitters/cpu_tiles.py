"""Tiles of partial results, and where the source is read: what the CPU forms of a reduction share."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.ir import SSAValue

from heron.analysis.fusion.reduction import Axis, Reduction
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.emitters.base import Entry


def source_index(reduction: Reduction, axes: Sequence[Axis], variables: Sequence[Expr]) -> list[Expr]:
    """The index into the source when each axis stands at its variable."""
    index: list[Expr] = [Const(0)] * len(reduction.sizes)
    for axis, variable in zip(axes, variables, strict=True):
        parts = delinearize(variable, [reduction.sizes[d] for d in axis.dims])
        for d, part in zip(axis.dims, parts, strict=True):
            index[d] = part
    return index


def get(frame: Entry, source: SSAValue, index: Index) -> SSAValue:
    """An element of a tile, as it is stored."""
    e = frame.e
    element = source.type.element_type  # type: ignore[attr-defined]
    return e.b.op(tensor.ExtractOp, source, *e.index_values(e.simplify(index)), type=element)


def put(frame: Entry, value: SSAValue, target: SSAValue, index: Index) -> SSAValue:
    """The tile with `value` at `index`."""
    e = frame.e
    return e.b.op(tensor.InsertOp, value, target, *e.index_values(e.simplify(index)), type=target.type)
