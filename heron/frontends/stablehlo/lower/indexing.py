"""Gather and scatter."""

from __future__ import annotations

from typing import Any

from heron.frontends.stablehlo.block import Block, rule
from heron.frontends.stablehlo.lower.reductions import combiner, promoted
from heron.frontends.stablehlo.syntax import Operation
from heron.hlo.ir.instruction import Instruction


def _numbers(op: Operation, names: dict[str, str], attribute: str) -> dict[str, Any]:
    """Dimension numbers under HLO's names; batching dimensions only where there are any."""
    given = op.fields(attribute)
    if op.find(attribute) is None:  # an empty one is a scalar's
        op.wrong(attribute, "dimension numbers")
    found: dict[str, Any] = {}
    for ours, theirs in names.items():
        value = given.get(theirs, ())
        if not isinstance(value, tuple):
            op.wrong(attribute, f"a list of integers for {theirs}")
        if value or "batching" not in ours:
            found[ours] = value
    index = given.get("index_vector_dim", 0)
    if not isinstance(index, int):
        op.wrong(attribute, "an integer for index_vector_dim")
    return {**found, "index_vector_dim": index}


_GATHER = {
    name: name
    for name in (
        "offset_dims",
        "collapsed_slice_dims",
        "start_index_map",
        "operand_batching_dims",
        "start_indices_batching_dims",
    )
}


@rule("gather")
def _gather(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return gather(b, op, operands, op.ints("slice_sizes"))


def gather(b: Block, op: Operation, operands: list[Instruction], sizes: tuple[int, ...]) -> Instruction:
    """A gather of slices of these sizes."""
    attrs = _numbers(op, _GATHER, "dimension_numbers")
    if op.flag("indices_are_sorted"):
        attrs["indices_are_sorted"] = True
    return b.add("gather", operands, slice_sizes=sizes, **attrs)


@rule("torch_index_select")
def _torch_index_select(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """Slices of one dimension, an index each; leading batch dimensions go together."""
    x, index = (o.shape for o in operands)
    dim, batch = op.integer("dim"), op.integer("batch_dims", default=0)
    if not 0 <= batch <= min(dim, index.rank) or dim >= x.rank:
        op.fail("SHLO006", f"{op.name} has no dimension {dim} behind {batch} batch dimensions", why=str(x.bare))
    inner = index.rank - batch
    together = tuple(range(batch))
    attrs: dict[str, Any] = {
        "offset_dims": (*range(batch, dim), *range(dim + inner, x.rank + inner - 1)),
        "collapsed_slice_dims": (dim,),
        "start_index_map": (dim,),
        "index_vector_dim": index.rank,
    }
    if batch:
        attrs |= {"operand_batching_dims": together, "start_indices_batching_dims": together}
    sizes = tuple(1 if d == dim or d < batch else n for d, n in enumerate(x.dims))
    return b.add("gather", operands, slice_sizes=sizes, **attrs)


_SCATTER = {
    "update_window_dims": "update_window_dims",
    "inserted_window_dims": "inserted_window_dims",
    "scatter_dims_to_operand_dims": "scatter_dims_to_operand_dims",
    "input_batching_dims": "input_batching_dims",
    "scatter_indices_batching_dims": "scatter_indices_batching_dims",
}


@rule("scatter")
def _scatter(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    attrs = _numbers(op, _SCATTER, "scatter_dimension_numbers")
    for name in ("indices_are_sorted", "unique_indices"):
        if op.flag(name):
            attrs[name] = True
    body, count = combiner(b, op, 0), len(operands) // 2
    combined = promoted(b, op, operands[:count] + operands[count + 1 :])
    operands = [*combined[:count], operands[count], *combined[count:]]
    return b.unpacked(b.add("scatter", operands, to_apply=body, **attrs), count)
