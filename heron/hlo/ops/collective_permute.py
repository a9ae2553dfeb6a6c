"""collective-permute: each device sends its operand, or slices of it, to at most one other device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Trait, op, reject
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.meaning import slices_in_place
from heron.hlo.ops.collectives import CHANNEL, Arrays, Collective, Done
from heron.hlo.ops.rules import attr, stated

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation, Members
    from heron.hlo.ir.instruction import Instruction

PAIRS = {
    **CHANNEL,
    "source_target_pairs": Attr(AttrKind.PAIRS, required=True),
    "slice_sizes": Attr(AttrKind.INT_LISTS),
}


@op("collective-permute")
class CollectivePermute(Collective):
    """Sends each source's operand to its target; who is no target gets zeros.

    Shape: the operand's.
    """

    traits = {Trait.COLLECTIVE, Trait.MOVES_BETWEEN}
    attributes = PAIRS

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        if i.attrs.get("slice_sizes") is not None:
            need_in_place(i, operands)
            return operands[1]
        result = super().shape(i, *operands)
        need_pairs(i)
        return result

    def exchanged(self, ev: Evaluation, i: Instruction, members: Members, operands: Arrays) -> Arrays:
        pairs = ev.permuted_pairs(i)
        if i.attrs.get("slice_sizes") is not None:
            return slices_in_place.permute(ev, i, members, pairs, operands)
        brought = ev.exchange(i, members, operands, list)
        source = next((s for s, t in pairs if t == ev.device.number), None)
        return tuple(map(np.zeros_like, operands)) if source is None else brought[members.index(source)]

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: Any) -> Any:
        results = self.exchanged(ev, i, ev.own_group(i), operands)
        return results if i.attrs.get("slice_sizes") is not None or i.shape.is_tuple else results[0]


def need_pairs(i: Instruction) -> None:
    """Rejects pairs that send from one source, or to one target, twice."""
    pairs = attr(i, "source_target_pairs")
    for name, ids in (("source", [s for s, _ in pairs]), ("target", [t for _, t in pairs])):
        if len(set(ids)) != len(ids):
            reject(i, f"source_target_pairs name a {name} twice", f"{name}s {ids}")


def need_in_place(i: Instruction, operands: tuple[Shape, ...]) -> None:
    """Checks the form that writes slices into a buffer: input, output, and where the slices begin in each.

    Input and output are arrays with a tuple of scalars for offsets (or a tuple of such, for several slices), or tuples
    of arrays with a tuple of those.
    """
    if len(operands) != 4:
        reject(i, "with slice_sizes, it takes input, output and the offsets in both", f"{len(operands)} operands given")
    for buffers, offsets in zip(operands[:2], operands[2:], strict=True):
        if buffers.is_tuple != operands[0].is_tuple:
            reject(i, "input and output must both be arrays or both tuples", f"{operands[0]} and {operands[1]}")
        pairs = ((buffers, offsets),)
        if buffers.tuple_shapes is not None:
            parts = offsets.tuple_shapes or ()
            if len(parts) != len(buffers.tuple_shapes) or len(parts) != len(operands[0].tuple_shapes or ()):
                reject(i, "each array needs its offsets", f"{offsets} for {buffers}")
            pairs = tuple(zip(buffers.tuple_shapes, parts, strict=True))
        for buffer, at in pairs:
            starts = at.tuple_shapes or ()
            several = starts if starts and all(s.is_tuple for s in starts) else (at,)
            if any(len(s.tuple_shapes or ()) != buffer.rank for s in several) or not buffer.is_array:
                reject(i, "offsets need one index a dimension of their array", f"{at} for {buffer}")


@op("collective-permute-start")
class CollectivePermuteStart(CollectivePermute):
    """Begins a collective-permute; the value is (operand, result, context...).

    Shape: a tuple: the operand's shape twice, and contexts where stated.
    """

    done = "collective-permute-done"
    holds_operands = True

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        if i.attrs.get("slice_sizes") is not None:
            need_in_place(i, operands)
            want = operands[:2]
        else:
            want = (Collective.shape(self, i, *operands),) * 2
            need_pairs(i)
        if stated(i) is None:
            return tuple_(want)
        parts = i.shape.tuple_shapes
        if parts is None or len(parts) < 2:
            reject(i, "the result must be (operand, result, context...)", f"it is {i.shape}")
        return i.shape

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: Any) -> Any:
        moved = self.exchanged(ev, i, ev.own_group(i), operands)
        parts = (i.shape.tuple_shapes or ())[2:]
        context = [np.zeros(s.dims, s.element_type.dtype) for s in parts]
        if i.attrs.get("slice_sizes") is not None:
            return operands[0], moved, *context
        if len(operands) == 1:
            return operands[0], moved[0], *context
        return operands, moved, *context


@op("collective-permute-done")
class CollectivePermuteDone(Done):
    """The result of a finished collective-permute.

    Shape: the second element of the operand's.
    """

    traits = {Trait.COLLECTIVE, Trait.FREE}
