"""Operations in which several devices take part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heron.frontends.stablehlo.attributes import Attributes
from heron.frontends.stablehlo.block import Block, rule
from heron.frontends.stablehlo.lexer import Source
from heron.frontends.stablehlo.lower.reductions import combiner, promoted
from heron.frontends.stablehlo.sizes import sized
from heron.frontends.stablehlo.syntax import Operation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, tuple_


def _groups(op: Operation) -> str:
    """``{{0,1},{2,3}}``; -1 fills up short groups."""
    return _listed(op.table("replica_groups") if op.find("replica_groups") is not None else [])


def _listed(rows: Sequence[Sequence[int]]) -> str:
    return "{" + ",".join("{" + ",".join(str(n) for n in row if n >= 0) + "}" for row in rows) + "}"


def _channel(op: Operation) -> dict[str, Any]:
    handle = op.fields("channel_handle").get("handle", 0)
    return {"channel_id": handle} if isinstance(handle, int) and handle > 0 else {}


def _common(op: Operation) -> dict[str, Any]:
    attrs: dict[str, Any] = {**_channel(op), "replica_groups": _groups(op)}
    if op.flag("use_global_device_ids"):
        attrs["use_global_device_ids"] = True
    return attrs


@rule("all_reduce")
def _all_reduce(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    i = b.add("all-reduce", promoted(b, op, operands), to_apply=combiner(b, op, 0), **_common(op))
    return b.unpacked(i, len(operands))


@rule("cross-replica-sum")
def _cross_replica_sum(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    body = b.importer.reducer("add", operands[0].shape.element_type)
    return b.add("all-reduce", operands, to_apply=body, replica_groups=_groups(op))


@rule("all_gather")
def _all_gather(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    dim = op.integer("all_gather_dim")
    types = [_resized(b, op, x, t, dim, grows=True) for x, t in zip(operands, op.types, strict=True)]
    to = types[0] if len(types) == 1 else tuple_(types)
    i = b.checked("all-gather", operands, to, dimensions=(dim,), **_common(op))
    return b.unpacked(i, len(operands))


def _resized(b: Block, op: Operation, x: Instruction, stated: Shape, dim: int, *, grows: bool) -> Shape:
    """A result's type, with a dimension as many times larger or smaller as a group has members where sizes are open."""
    if not stated.is_unbounded or not 0 <= dim < x.shape.rank:
        return stated
    rows = op.table("replica_groups") if op.find("replica_groups") is not None else []
    replicas, partitions = (_count(b, f"mhlo.num_{name}") for name in ("replicas", "partitions"))
    members = max((sum(n >= 0 for n in row) for row in rows), default=0)
    if not op.flag("use_global_device_ids"):
        members = (members or replicas) * (partitions if _channel(op) else 1)
    sizes = list(x.shape.dims)
    members = members or replicas * partitions
    if not grows and sizes[dim] % members:
        op.fail("SHLO004", f"{op.name} cuts dimension {dim} into {members} parts", why=f"the operand is {x.shape.bare}")
    sizes[dim] = sizes[dim] * members if grows else sizes[dim] // members
    return sized(op, stated, sizes)


def _count(b: Block, name: str) -> int:
    found = b.importer.program.attrs.get(name)
    return found if isinstance(found, int) and found > 0 else 1


@rule("reduce_scatter")
def _reduce_scatter(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    dim, body, operands = op.integer("scatter_dimension"), combiner(b, op, 0), promoted(b, op, operands)
    to = _resized(b, op, operands[0], op.types[0], dim, grows=False)
    return b.checked("reduce-scatter", operands, to, dimensions=(dim,), to_apply=body, **_common(op))


@rule("all_to_all")
def _all_to_all(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """Split one dimension, exchange, join along another.

    HLO's op splits and joins along one dimension, so others are moved: split into (count, rest), exchange along count,
    bring count before the joined dimension, and merge the two.
    """
    split, concat = op.integer("split_dimension"), op.integer("concat_dimension")
    count, attrs = op.integer("split_count"), _common(op)
    attrs.pop("use_global_device_ids", None)
    return [_exchanged(b, op, x, to, split, concat, count, attrs) for x, to in zip(operands, op.types, strict=True)]


def _exchanged(
    b: Block, op: Operation, x: Instruction, to: Shape, split: int, concat: int, count: int, attrs: dict[str, Any]
) -> Instruction:
    """One operand of an all_to_all."""
    dims = list(x.shape.dims)
    if count < 1 or not 0 <= split < len(dims) or not 0 <= concat < len(dims) or dims[split] % count:
        op.fail("SHLO006", f"dimension {split} does not split into {count}", why=f"the operand is {x.shape.bare}")
    if split == concat:
        return b.add("all-to-all", (x,), dimensions=(split,), **attrs)
    apart = [*dims[:split], count, dims[split] // count, *dims[split + 1 :]]
    x = b.add("reshape", (x,), x.shape.with_dims(tuple(apart)))
    x = b.add("all-to-all", (x,), dimensions=(split,), **attrs)
    order = [d for d in range(len(apart)) if d != split]
    order.insert(concat, split)
    x = b.add("transpose", (x,), dimensions=tuple(order))
    dims = [n * count if d == concat else n // count if d == split else n for d, n in enumerate(dims)]
    return b.checked("reshape", (x,), sized(op, to, dims) if to.is_unbounded else to)


#: the custom call by which JAX exchanges pieces of differing length
RAGGED = "ragged_all_to_all"


def ragged_all_to_all(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """The custom call of this name, whose groups and channel stand in its configuration."""
    config = op.find("mhlo.backend_config", "backend_config")
    if isinstance(config, str):  # carried as it is written
        config = Attributes(Source(config, "backend_config")).dictionary() if config.startswith("{") else {}
    given = config if isinstance(config, dict) else {}
    groups, channel = np.asarray(given.get("replica_groups", ())), given.get("channel_id", 0)
    if groups.dtype.kind != "i" or groups.ndim != 2 or not isinstance(channel, int):
        op.wrong("backend_config", "a table of integers replica_groups and a number channel_id")
    attrs: dict[str, Any] = {"replica_groups": _listed(groups.tolist())}
    if channel > 0:
        attrs["channel_id"] = channel
    return [b.checked("ragged-all-to-all", operands, op.types[0], **attrs)]


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
