"""Operations in which several devices take part."""

from __future__ import annotations

from typing import Any

from heron.frontends.stablehlo.block import Block, rule
from heron.frontends.stablehlo.lower.reductions import combiner
from heron.frontends.stablehlo.syntax import Operation
from heron.hlo.instruction import Instruction
from heron.hlo.shape import Shape, tuple_


def _groups(op: Operation) -> str:
    """``{{0,1},{2,3}}``; -1 fills up short groups."""
    rows = op.table("replica_groups") if op.find("replica_groups") is not None else []
    return "{" + ",".join("{" + ",".join(str(n) for n in row if n >= 0) + "}" for row in rows) + "}"


def _channel(op: Operation) -> dict[str, Any]:
    handle = op.fields("channel_handle").get("handle", 0)
    return {"channel_id": handle} if isinstance(handle, int) and handle > 0 else {}


def _common(op: Operation) -> dict[str, Any]:
    attrs: dict[str, Any] = {**_channel(op), "replica_groups": _groups(op)}
    if op.flag("use_global_device_ids"):
        attrs["use_global_device_ids"] = True
    return attrs


def _stated(op: Operation) -> Shape:
    return op.types[0] if len(op.types) == 1 else tuple_(op.types)


@rule("all_reduce")
def _all_reduce(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    i = b.add("all-reduce", operands, to_apply=combiner(b, op, 0), **_common(op))
    return b.unpacked(i, len(operands))


@rule("cross-replica-sum")
def _cross_replica_sum(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    body = b.importer.reducer("add", operands[0].shape.element_type)
    return b.add("all-reduce", operands, to_apply=body, replica_groups=_groups(op))


@rule("all_gather")
def _all_gather(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    dims = (op.integer("all_gather_dim"),)
    i = b.checked("all-gather", operands, _stated(op), dimensions=dims, **_common(op))
    return b.unpacked(i, len(operands))


@rule("reduce_scatter")
def _reduce_scatter(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    dims, body = (op.integer("scatter_dimension"),), combiner(b, op, 0)
    return b.checked("reduce-scatter", operands, op.types[0], dimensions=dims, to_apply=body, **_common(op))


@rule("all_to_all")
def _all_to_all(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """Split one dimension, exchange, join along another.

    HLO's op splits and joins along one dimension, so others are moved: split into (count, rest), exchange along count,
    bring count before the joined dimension, and merge the two.
    """
    split, concat = op.integer("split_dimension"), op.integer("concat_dimension")
    count, attrs = op.integer("split_count"), _common(op)
    attrs.pop("use_global_device_ids", None)
    if len(operands) > 1:
        op.fail("SHLO005", "all_to_all of several operands is not supported", hint="write one for each")
    (x,) = operands
    dims = list(x.shape.dims)
    if count < 1 or not 0 <= split < len(dims) or not 0 <= concat < len(dims) or dims[split] % count:
        op.fail("SHLO006", f"dimension {split} does not split into {count}", why=f"the operand is {x.shape.bare}")
    if split == concat:
        return [b.add("all-to-all", operands, dimensions=(split,), **attrs)]
    apart = [*dims[:split], count, dims[split] // count, *dims[split + 1 :]]
    x = b.add("reshape", (x,), x.shape.with_dims(tuple(apart)))
    x = b.add("all-to-all", (x,), dimensions=(split,), **attrs)
    order = [d for d in range(len(apart)) if d != split]
    order.insert(concat, split)
    x = b.add("transpose", (x,), dimensions=tuple(order))
    return [b.checked("reshape", (x,), op.types[0])]


@rule("collective_permute")
def _collective_permute(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    rows = op.table("source_target_pairs")
    if any(len(row) != 2 for row in rows):
        op.wrong("source_target_pairs", "pairs of devices")
    pairs = tuple((row[0], row[1]) for row in rows)
    i = b.add("collective-permute", operands, source_target_pairs=pairs, **_channel(op))
    return b.unpacked(i, len(operands))


@rule("collective_broadcast")
def _collective_broadcast(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.add("collective-broadcast", operands, replica_groups=_groups(op), **_channel(op))


@rule("partition_id")
def _partition_id(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.add("partition-id", ())


@rule("replica_id")
def _replica_id(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.add("replica-id", ())
