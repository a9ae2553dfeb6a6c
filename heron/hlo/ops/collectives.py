"""Ops in which several devices take part."""

from __future__ import annotations

from heron.hlo.op import Attr, AttrKind, Op, Trait, op

CHANNEL = {"channel_id": Attr(AttrKind.INT)}
GROUPS = {
    **CHANNEL,
    "replica_groups": Attr(AttrKind.REPLICA_GROUPS, "{}", shown=True),
    "constrain_layout": Attr(AttrKind.BOOL, False),
}
GLOBAL_IDS = {"use_global_device_ids": Attr(AttrKind.BOOL, False)}
DIMENSIONS = {"dimensions": Attr(AttrKind.INTS, required=True)}
TO_APPLY = {"to_apply": Attr(AttrKind.COMPUTATION, required=True)}
PAIRS = {**CHANNEL, "source_target_pairs": Attr(AttrKind.PAIRS, required=True), "slice_sizes": Attr(AttrKind.INT_LISTS)}
COLLECTIVE = {Trait.COLLECTIVE}


@op("all-gather")
class AllGather(Op):
    operands = ("operands*",)
    attributes = {**GROUPS, **DIMENSIONS, **GLOBAL_IDS}
    traits = COLLECTIVE


@op("all-gather-start")
class AllGatherStart(Op):
    operands = ("operands*",)
    attributes = AllGather.attributes
    traits = COLLECTIVE


@op("all-gather-done")
class AllGatherDone(Op):
    operands = ("started",)
    traits = COLLECTIVE


@op("all-reduce")
class AllReduce(Op):
    operands = ("operands*",)
    attributes = {**GROUPS, **GLOBAL_IDS, **TO_APPLY}
    traits = COLLECTIVE


@op("all-reduce-start")
class AllReduceStart(Op):
    operands = ("operands*",)
    attributes = AllReduce.attributes
    traits = COLLECTIVE


@op("all-reduce-done")
class AllReduceDone(Op):
    operands = ("started",)
    traits = COLLECTIVE


@op("reduce-scatter")
class ReduceScatter(Op):
    operands = ("operands*",)
    attributes = {**GROUPS, **GLOBAL_IDS, **DIMENSIONS, **TO_APPLY}
    traits = COLLECTIVE


@op("all-to-all")
class AllToAll(Op):
    operands = ("operands*",)
    attributes = {**GROUPS, "dimensions": Attr(AttrKind.INTS)}
    traits = COLLECTIVE


@op("ragged-all-to-all")
class RaggedAllToAll(Op):
    operands = ("operand", "output", "input_offsets", "send_sizes", "output_offsets", "receive_sizes")
    attributes = GROUPS
    traits = COLLECTIVE


@op("collective-broadcast")
class CollectiveBroadcast(Op):
    operands = ("operands*",)
    attributes = GROUPS
    traits = COLLECTIVE


@op("collective-permute")
class CollectivePermute(Op):
    operands = ("operands*",)
    attributes = PAIRS
    traits = COLLECTIVE


@op("collective-permute-start")
class CollectivePermuteStart(Op):
    operands = ("operands*",)
    attributes = PAIRS
    traits = COLLECTIVE


@op("collective-permute-done")
class CollectivePermuteDone(Op):
    operands = ("started",)
    attributes = CHANNEL
    traits = COLLECTIVE


@op("partition-id")
class PartitionId(Op):
    pass


@op("replica-id")
class ReplicaId(Op):
    pass
