"""Ops in which several devices take part.

The meaning of one is ``exchanged(ev, i, members, operands)``: the results of this device, after all members brought
their operands. The -start op does the work, -done hands the results on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape, scalar, tuple_
from heron.hlo.ir.types import U32
from heron.hlo.meaning.batched import simple_opcode
from heron.hlo.meaning.combine import Combiner
from heron.hlo.ops.rules import attr, default, given, need_arrays, need_dim, need_dims, stated

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation, Members
    from heron.hlo.ir.instruction import Instruction

Arrays = tuple[np.ndarray, ...]

CHANNEL = {"channel_id": Attr(AttrKind.INT)}
GROUPS_ALONE = {**CHANNEL, "replica_groups": Attr(AttrKind.REPLICA_GROUPS, "{}", shown=True)}
GROUPS = {**GROUPS_ALONE, "constrain_layout": Attr(AttrKind.BOOL, False)}
GLOBAL_IDS = {"use_global_device_ids": Attr(AttrKind.BOOL, False)}
DIMENSIONS = {"dimensions": Attr(AttrKind.INTS, required=True)}
TO_APPLY = {"to_apply": Attr(AttrKind.COMPUTATION, required=True)}


class Collective(Op):
    """Any number of operands, each exchanged in the same way; several give a tuple."""

    operands = ("operands*",)
    traits = {Trait.COLLECTIVE}

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        if not operands:
            reject(i, "needs at least one operand")
        need_arrays(i, *operands)
        return _one_or_tuple(tuple(map(default, operands)))

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: Any) -> Any:
        results = self.exchanged(ev, i, ev.own_group(i), operands)
        return results if i.shape.is_tuple else results[0]

    def exchanged(self, ev: Evaluation, i: Instruction, members: Members, operands: Arrays) -> Arrays:
        """This device's results, one an operand."""
        raise NotImplementedError(self.name)


def _one_or_tuple(shapes: tuple[Shape, ...]) -> Shape:
    return shapes[0] if len(shapes) == 1 else tuple_(shapes)


def need_shapes(i: Instruction, results: Arrays, wanted: tuple[Shape, ...]) -> Arrays:
    """Raises EVAL004 unless `results` have the sizes the program states: it was written for other groups."""
    for r, s in zip(results, wanted, strict=True):
        if r.shape != s.dims and not any(s.dynamic):
            raise HeronError(
                "EVAL004",
                f"'{i.opcode}' needs several devices, or groups of another size",
                why=f"the program states {s.bare}, this group gives {list(r.shape)}",
                hint="`evaluate_devices` (`heron eval --devices N`) runs a program on several",
            )
    return results


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
    """The group's operands one behind the other along a dimension.

    Shape: as stated: the operand's, with that dimension as many times larger as the group has members.
    """

    traits = {Trait.COLLECTIVE, Trait.MOVES_BETWEEN, Trait.EQUALIZES}
    attributes = {**GROUPS, **DIMENSIONS, **GLOBAL_IDS}

    def exchanged(self, ev: Evaluation, i: Instruction, members: Members, operands: Arrays) -> Arrays:
        (dim,) = i.dimensions

        def join(brought: list[Arrays]) -> Arrays:
            return tuple(np.concatenate(parts, dim) for parts in zip(*brought, strict=True))

        return need_shapes(i, ev.exchange(i, members, operands, join), _results(i))

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        super().shape(i, *operands)
        return need_stated(i, operands, need_one_dimension(i, operands[0].rank), grows=True)


def _results(i: Instruction) -> tuple[Shape, ...]:
    """The stated shapes of the results, in the value of a -start op as well."""
    parts = i.shape
    if i.op.holds_operands:
        parts = i.shape.at((1,))
    return parts.tuple_shapes if parts.tuple_shapes is not None else (parts,)


@op("all-gather-start")
class AllGatherStart(AllGather):
    """Begins an all-gather; the value is (operands, results).

    Shape: as stated.
    """

    done = "all-gather-done"
    holds_operands = True

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        Collective.shape(self, i, *operands)
        need_one_dimension(i, operands[0].rank)
        to = given(i, "the result shape must be given: it depends on the number of devices")
        if to.tuple_shapes is None or len(to.tuple_shapes) < 2:
            reject(i, "the result must be (operands, results)", f"it is {to}")
        return to

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: Any) -> Any:
        results = self.exchanged(ev, i, ev.own_group(i), operands)
        parts = i.shape.tuple_shapes or ()
        return tuple(v if s.is_tuple else v[0] for v, s in zip((operands, results), parts, strict=False))


class Done(Op):
    """The results, when the -start op's work is finished."""

    operands = ("started",)
    traits = {Trait.COLLECTIVE}

    def shape(self, i: Instruction, started: Shape) -> Shape:
        parts = started.tuple_shapes
        if parts is None or len(parts) < 2:
            reject(i, "operand 0 must be what the -start op returns", f"it is {started}")
        return parts[1]

    def evaluate(self, ev: Evaluation, i: Instruction, started: Any) -> Any:
        return started[1]


@op("all-gather-done")
class AllGatherDone(Done):
    """The result of a finished all-gather.

    Shape: the second element of the operand's.
    """

    pass
    traits = {Trait.COLLECTIVE, Trait.FREE}


@op("all-reduce")
class AllReduce(Collective):
    """The group's operands combined elementwise by `to_apply`.

    Shape: the operand's; a tuple of the operands' for several.
    """

    traits = {Trait.COLLECTIVE, Trait.EQUALIZES, Trait.IN_PLACE}
    attributes = {**GROUPS, **GLOBAL_IDS, **TO_APPLY}

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        result = super().shape(i, *operands)
        _need_combiner(i, operands)
        return result

    def exchanged(self, ev: Evaluation, i: Instruction, members: Members, operands: Arrays) -> Arrays:
        return ev.exchange(i, members, operands, lambda brought: _combined(ev, i, brought))


def _need_combiner(i: Instruction, operands: tuple[Shape, ...]) -> None:
    """Rejects a computation that does not make one scalar of two; all but a single op also needs the operands' kind."""
    body = attr(i, "to_apply")
    given, gives = [p.shape for p in body.parameters], body.root.shape
    if len(given) != 2 or not all(s.is_array and not s.rank and s.bare is gives.bare for s in given):
        why = f"it makes {gives.bare} of ({', '.join(str(s.bare) for s in given)})"
        reject(i, f"to_apply={body.name} must make one scalar of two of its type", why)
    if simple_opcode(body) is not None:
        return
    for n, s in enumerate(operands):
        if s.element_type.kind != gives.element_type.kind:
            reject(i, f"operand {n} is not of the kind that {body.name} combines", f"{s} and {gives.bare}")


def _combined(ev: Evaluation, i: Instruction, brought: list[Arrays]) -> Arrays:
    """Each operand's values reduced over the group."""
    results: list[np.ndarray] = []
    for o, parts in zip(i.operands, zip(*brought, strict=True), strict=True):
        combine = Combiner(ev, i.to_apply, (o.shape.element_type,))
        results += combine.leave(combine.fold(combine.enter((np.stack(parts),))))
    return tuple(results)


@op("all-reduce-start")
class AllReduceStart(AllReduce):
    """Begins an all-reduce; the value stands for the results.

    Shape: that of the all-reduce.
    """

    done = "all-reduce-done"


@op("all-reduce-done")
class AllReduceDone(Op):
    """The result of a finished all-reduce.

    Shape: the operand's.
    """

    operands = ("started",)
    traits = {Trait.COLLECTIVE, Trait.FREE}

    def shape(self, i: Instruction, started: Shape) -> Shape:
        return started

    def evaluate(self, ev: Evaluation, i: Instruction, started: Any) -> Any:
        return started


@op("reduce-scatter")
class ReduceScatter(Collective):
    """Each device's share, along a dimension, of the group's operands combined.

    Shape: as stated: the operand's, with that dimension as many times smaller as the group has members.
    """

    attributes = {**GROUPS, **GLOBAL_IDS, **DIMENSIONS, **TO_APPLY}

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        super().shape(i, *operands)
        _need_combiner(i, operands)
        return need_stated(i, operands, need_one_dimension(i, operands[0].rank), grows=False)

    def exchanged(self, ev: Evaluation, i: Instruction, members: Members, operands: Arrays) -> Arrays:
        whole = ev.exchange(i, members, operands, lambda brought: _combined(ev, i, brought))
        mine = members.index(ev.device.number)
        return need_shapes(i, tuple(_pieces(i, x, len(members))[mine] for x in whole), _results(i))


def _pieces(i: Instruction, x: np.ndarray, count: int) -> list[np.ndarray]:
    """`x` cut into equal parts along the op's dimension."""
    (dim,) = i.dimensions
    if x.shape[dim] % count:
        raise HeronError(
            "EVAL004", f"'{i.opcode}' among {count} devices", why=f"{count} does not divide {x.shape[dim]}"
        )
    return np.split(x, count, dim)


@op("all-to-all")
class AllToAll(Collective):
    """Device n gets piece n of everyone: pieces of one operand along `dimensions`, or one operand each.

    Shape: the operand's; without `dimensions`, a tuple of the operands'.
    """

    traits = {Trait.COLLECTIVE, Trait.MOVES_BETWEEN}
    attributes = {**GROUPS, "dimensions": Attr(AttrKind.INTS)}

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        result = super().shape(i, *operands)
        if i.attrs.get("dimensions") is not None:
            need_one_dimension(i, operands[0].rank)
            if len(operands) != 1:
                reject(i, "with dimensions, one operand is split", f"{len(operands)} operands given")
        return result if stated(i) is None or i.shape.bare is result.bare else _need_tuple(i, operands)

    def exchanged(self, ev: Evaluation, i: Instruction, members: Members, operands: Arrays) -> Arrays:
        if i.attrs.get("dimensions") is None and len(operands) != len(members):
            why = f"{len(operands)} operands for a group of {len(members)}"
            raise HeronError("EVAL004", "'all-to-all' needs one operand for each device of the group", why=why)
        pieces = operands if i.attrs.get("dimensions") is None else _pieces(i, operands[0], len(members))
        brought = ev.exchange(i, members, pieces, list)
        mine = members.index(ev.device.number)
        received = tuple(parts[mine] for parts in brought)
        return received if i.attrs.get("dimensions") is None else (np.concatenate(received, i.dimensions[0]),)


def _need_tuple(i: Instruction, operands: tuple[Shape, ...]) -> Shape:
    """The tuple form with a single operand is stated as a 1-tuple."""
    want = tuple_(tuple(map(default, operands)))
    if i.shape.bare is not want.bare:
        reject(i, "the result must have the operands' shapes", f"it is {i.shape}")
    return want


@op("ragged-all-to-all")
class RaggedAllToAll(Op):
    """All-to-all of pieces of differing length, written into `output` at the offsets the receivers expect.

    Shape: that of `output`.
    """

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

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, output: np.ndarray, *vectors: np.ndarray) -> Any:
        members = ev.own_group(i)
        if vectors[0].ndim != 1 or vectors[0].size % len(members):
            why = f"{list(vectors[0].shape)} offsets among {len(members)} devices"
            raise HeronError("EVAL004", "'ragged-all-to-all' needs the same number of pieces for each device", why=why)
        starts, sizes, targets, _ = (v.tolist() for v in vectors)
        pieces = [(to, _span(i, x, start, size)) for start, size, to in zip(starts, sizes, targets, strict=True)]
        brought = ev.exchange(i, members, pieces, list)
        each, mine = len(pieces) // len(members), members.index(ev.device.number)
        result = output.copy()
        for sent in brought:
            for to, piece in sent[mine * each : (mine + 1) * each]:
                _span(i, result, to, len(piece))[...] = piece
        return result


def _span(i: Instruction, x: np.ndarray, start: int, size: int) -> np.ndarray:
    """Rows of `x`. Raises EVAL008 for a span outside."""
    if size < 0 or start < 0 or start + size > len(x):
        raise HeronError("EVAL008", f"'{i.opcode}' names rows {start} to {start + size}", why=f"there are {len(x)}")
    return x[start : start + size]


@op("collective-broadcast")
class CollectiveBroadcast(Collective):
    """Everyone gets the operand of the group's first device; who is in no group gets zeros.

    Shape: the operand's.
    """

    traits = {Trait.COLLECTIVE, Trait.MOVES_BETWEEN, Trait.EQUALIZES}
    attributes = GROUPS_ALONE

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: Any) -> Any:
        members = ev.group(i)
        if members is None:
            results = tuple(map(np.zeros_like, operands))
        else:
            results = ev.exchange(i, members, operands, lambda brought: brought[0])
        return results if i.shape.is_tuple else results[0]


class DeviceNumber(Op):
    def shape(self, i: Instruction) -> Shape:
        return scalar(U32)


@op("partition-id")
class PartitionId(DeviceNumber):
    """This device's number among the partitions of its replica.

    Shape: u32[].
    """

    traits = {Trait.FREE, Trait.DEVICE_ID}

    def evaluate(self, ev: Evaluation, i: Instruction) -> np.ndarray:
        return np.array(ev.device.partition, np.uint32)


@op("replica-id")
class ReplicaId(DeviceNumber):
    """This device's number among the replicas.

    Shape: u32[].
    """

    traits = {Trait.FREE, Trait.DEVICE_ID}

    def evaluate(self, ev: Evaluation, i: Instruction) -> np.ndarray:
        return np.array(ev.device.replica, np.uint32)
