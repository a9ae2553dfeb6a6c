"""Ops in which several devices take part. The evaluator is a single device: groups of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.errors import HeronError
from heron.hlo.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ops.rules import attr, default, given, need_arrays, need_dim, need_dims
from heron.hlo.shape import Shape, scalar, tuple_
from heron.hlo.types import U32

if TYPE_CHECKING:
    from heron.hlo.evaluator import Evaluator
    from heron.hlo.instruction import Instruction

CHANNEL = {"channel_id": Attr(AttrKind.INT)}
GROUPS_ALONE = {**CHANNEL, "replica_groups": Attr(AttrKind.REPLICA_GROUPS, "{}", shown=True)}
GROUPS = {**GROUPS_ALONE, "constrain_layout": Attr(AttrKind.BOOL, False)}
GLOBAL_IDS = {"use_global_device_ids": Attr(AttrKind.BOOL, False)}
DIMENSIONS = {"dimensions": Attr(AttrKind.INTS, required=True)}
TO_APPLY = {"to_apply": Attr(AttrKind.COMPUTATION, required=True)}
PAIRS = {
    **CHANNEL,
    "source_target_pairs": Attr(AttrKind.PAIRS, required=True),
    "slice_sizes": Attr(AttrKind.INT_LISTS),
}


class Collective(Op):
    """Any number of operands, each exchanged in the same way; several give a tuple."""

    operands = ("operands*",)
    traits = {Trait.COLLECTIVE}

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        if not operands:
            reject(i, "needs at least one operand")
        need_arrays(i, *operands)
        return _one_or_tuple(tuple(map(default, operands)))

    def evaluate(self, ev: Evaluator, i: Instruction, *operands: Any) -> Any:
        alone(i, [o.shape for o in i.operands])
        return operands[0] if len(operands) == 1 else operands


def _one_or_tuple(shapes: tuple[Shape, ...]) -> Shape:
    return shapes[0] if len(shapes) == 1 else tuple_(shapes)


def alone(i: Instruction, wanted: list[Shape]) -> None:
    """Raises EVAL004 unless a device on its own gives results shaped as `wanted` and groups have one member."""
    parts = i.shape.tuple_shapes or (i.shape,)
    groups = i.attrs.get("replica_groups", "{}").replace(" ", "")
    single = groups in ("{}", "{{0}}", "[1,1]<=[1]")
    if not single or any(p.bare is not w.bare for p, w in zip(parts, wanted, strict=False)):
        raise HeronError(
            "EVAL004",
            f"'{i.opcode}' needs several devices",
            why="the evaluator is one device: replica 0 of partition 0",
        )


def need_stated(i: Instruction, operands: tuple[Shape, ...], dim: int, grows: bool) -> Shape:
    """The stated result: the operands with dimension `dim` grown (or shrunk) by a whole factor, the same for all."""
    to = given(i, "the result shape must be given: it depends on the number of devices")
    parts = to.tuple_shapes if to.tuple_shapes is not None else (to,)
    if len(parts) != len(operands):
        reject(i, "needs one result an operand", f"{len(parts)} results for {len(operands)} operands")
    for n, (s, p) in enumerate(zip(operands, parts, strict=True)):
        need_dim(i, "dimension", dim, s.rank)
        small, large = (s, p) if grows else (p, s)
        fits = p.element_type is s.element_type and p.rank == s.rank
        fits = fits and all(a == b for d, (a, b) in enumerate(zip(s.dims, p.dims, strict=True)) if d != dim)
        if not fits or (large.dims[dim] % small.dims[dim] if small.dims[dim] else large.dims[dim]):
            reject(i, f"result {n} must be operand {n} with another multiple in dimension {dim}", f"{s} to {p}")
    return to


def need_one_dimension(i: Instruction, rank: int) -> int:
    """The only entry of `dimensions`."""
    dims = attr(i, "dimensions")
    if len(dims) != 1:
        reject(i, "dimensions must name one dimension", f"{len(dims)} given")
    need_dims(i, "dimensions", dims, rank)
    return dims[0]


@op("all-gather")
class AllGather(Collective):
    """The group's operands one behind the other along a dimension."""

    attributes = {**GROUPS, **DIMENSIONS, **GLOBAL_IDS}

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        super().shape(i, *operands)
        return need_stated(i, operands, need_one_dimension(i, operands[0].rank), grows=True)


@op("all-gather-start")
class AllGatherStart(Collective):
    """Begins an all-gather; the value is (operands, results)."""

    attributes = AllGather.attributes

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        super().shape(i, *operands)
        need_one_dimension(i, operands[0].rank)
        to = given(i, "the result shape must be given: it depends on the number of devices")
        if to.tuple_shapes is None or len(to.tuple_shapes) < 2:
            reject(i, "the result must be (operands, results)", f"it is {to}")
        return to

    def evaluate(self, ev: Evaluator, i: Instruction, *operands: Any) -> Any:
        alone(i, [_one_or_tuple(tuple(o.shape for o in i.operands))] * 2)
        value = operands[0] if len(operands) == 1 else operands
        return value, value


class Done(Op):
    """The results, when the -start op's work is finished."""

    operands = ("started",)
    traits = {Trait.COLLECTIVE}

    def shape(self, i: Instruction, started: Shape) -> Shape:
        parts = started.tuple_shapes
        if parts is None or len(parts) < 2:
            reject(i, "operand 0 must be what the -start op returns", f"it is {started}")
        return parts[1]

    def evaluate(self, ev: Evaluator, i: Instruction, started: Any) -> Any:
        return started[1]


@op("all-gather-done")
class AllGatherDone(Done):
    pass


@op("all-reduce")
class AllReduce(Collective):
    """The group's operands combined elementwise by `to_apply`."""

    attributes = {**GROUPS, **GLOBAL_IDS, **TO_APPLY}

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        attr(i, "to_apply")
        return super().shape(i, *operands)


@op("all-reduce-start")
class AllReduceStart(AllReduce):
    """Begins an all-reduce; the value stands for the results."""


@op("all-reduce-done")
class AllReduceDone(Op):
    operands = ("started",)
    traits = {Trait.COLLECTIVE}

    def shape(self, i: Instruction, started: Shape) -> Shape:
        return started

    def evaluate(self, ev: Evaluator, i: Instruction, started: Any) -> Any:
        return started


@op("reduce-scatter")
class ReduceScatter(Collective):
    """Each device's share, along a dimension, of the group's operands combined."""

    attributes = {**GROUPS, **GLOBAL_IDS, **DIMENSIONS, **TO_APPLY}

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        super().shape(i, *operands)
        attr(i, "to_apply")
        return need_stated(i, operands, need_one_dimension(i, operands[0].rank), grows=False)


@op("all-to-all")
class AllToAll(Collective):
    """Device n gets piece n of everyone: pieces of one operand along `dimensions`, or one operand each."""

    attributes = {**GROUPS, "dimensions": Attr(AttrKind.INTS)}

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        result = super().shape(i, *operands)
        if i.dimensions is not None:
            need_one_dimension(i, operands[0].rank)
            if len(operands) != 1:
                reject(i, "with dimensions, one operand is split", f"{len(operands)} operands given")
        return result if i.shape is None or i.shape.bare is result.bare else _need_tuple(i, operands)


def _need_tuple(i: Instruction, operands: tuple[Shape, ...]) -> Shape:
    """The tuple form with a single operand is stated as a 1-tuple."""
    want = tuple_(tuple(map(default, operands)))
    if i.shape.bare is not want.bare:
        reject(i, "the result must have the operands' shapes", f"it is {i.shape}")
    return want


@op("ragged-all-to-all")
class RaggedAllToAll(Op):
    """All-to-all of pieces of differing length, written into `output` at the offsets the receivers expect."""

    operands = ("operand", "output", "input_offsets", "send_sizes", "output_offsets", "receive_sizes")
    attributes = GROUPS_ALONE
    traits = {Trait.COLLECTIVE}

    def shape(self, i: Instruction, x: Shape, output: Shape, *vectors: Shape) -> Shape:
        need_arrays(i, x, output, *vectors)
        if x.element_type is not output.element_type or not x.rank or x.dims[1:] != output.dims[1:]:
            reject(i, "operands 0 and 1 may differ in dimension 0 only", f"{x} and {output}")
        for n, v in enumerate(vectors, 2):
            if not v.element_type.is_integer or v.dims != vectors[0].dims:
                reject(i, f"operand {n} must be integers, as many as operand 2", f"it is {v}")
        return default(output)

    def evaluate(self, ev: Evaluator, i: Instruction, x: np.ndarray, output: np.ndarray, *vectors: np.ndarray) -> Any:
        if vectors[0].ndim != 1 or vectors[0].size != 1:
            alone(i, [])
            raise HeronError("EVAL004", "'ragged-all-to-all' with several pieces needs several devices")
        alone(i, [i.operands[1].shape])
        start, size, to, _ = (int(v[0]) for v in vectors)
        result = output.copy()
        result[to : to + size] = x[start : start + size]
        return result


@op("collective-broadcast")
class CollectiveBroadcast(Collective):
    """Everyone gets the operand of the group's first device."""

    attributes = GROUPS_ALONE


@op("collective-permute")
class CollectivePermute(Collective):
    """Sends each source's operand to its target; who is no target gets zeros."""

    attributes = PAIRS

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        result = super().shape(i, *operands)
        need_pairs(i)
        return result

    def evaluate(self, ev: Evaluator, i: Instruction, *operands: Any) -> Any:
        moved = tuple(_permuted(i, x) for x in operands)
        return moved[0] if len(moved) == 1 else moved


def need_pairs(i: Instruction) -> None:
    """Rejects pairs that send from one source, or to one target, twice."""
    pairs = attr(i, "source_target_pairs")
    for name, ids in (("source", [s for s, _ in pairs]), ("target", [t for _, t in pairs])):
        if len(set(ids)) != len(ids):
            reject(i, f"source_target_pairs name a {name} twice", f"{name}s {ids}")


def _permuted(i: Instruction, x: np.ndarray) -> np.ndarray:
    pairs = [tuple(p) for p in i.source_target_pairs]
    if any(p != (0, 0) for p in pairs):
        raise HeronError("EVAL004", f"'{i.opcode}' needs several devices", why=f"it sends {pairs}")
    return x if pairs else np.zeros_like(x)


@op("collective-permute-start")
class CollectivePermuteStart(Collective):
    """Begins a collective-permute; the value is (operand, result, context...)."""

    attributes = PAIRS

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        x = super().shape(i, *operands)
        need_pairs(i)
        if i.shape is None:
            return tuple_((x, x))
        parts = i.shape.tuple_shapes
        if parts is None or len(parts) < 2:
            reject(i, "the result must be (operand, result, context...)", f"it is {i.shape}")
        return i.shape

    def evaluate(self, ev: Evaluator, i: Instruction, *operands: Any) -> Any:
        moved = tuple(_permuted(i, x) for x in operands)
        parts = (i.shape.tuple_shapes or ())[2:]
        context = [np.zeros(s.dims, s.element_type.dtype) for s in parts]
        if len(operands) == 1:
            return operands[0], moved[0], *context
        return operands, moved, *context


@op("collective-permute-done")
class CollectivePermuteDone(Done):
    pass


class DeviceNumber(Op):
    def shape(self, i: Instruction) -> Shape:
        return scalar(U32)

    def evaluate(self, ev: Evaluator, i: Instruction) -> np.ndarray:
        return np.zeros((), np.uint32)


@op("partition-id")
class PartitionId(DeviceNumber):
    """This device's number among the partitions of its replica."""


@op("replica-id")
class ReplicaId(DeviceNumber):
    """This device's number among the replicas."""
