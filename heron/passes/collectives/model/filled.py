"""Sums of a loop's rounds that fill an array, exchanged at once behind the loop."""

from __future__ import annotations

import numpy as np

from heron.analysis.devices.per_device import integers
from heron.analysis.values.trip_count import Counter
from heron.hlo.facts import combiner, reindexes
from heron.hlo.ir.instruction import Instruction
from heron.passes.collectives.model.pipelined_late import Store, stores
from heron.passes.collectives.model.rounds import counted
from heron.passes.control_flow.model.ownership import own_computations
from heron.passes.rewriting.tuples import take_apart


def exchange_behind(loop: Instruction) -> list[int]:
    """Move all-reduces behind a loop that stores their results in arrays which it fills; the elements these are."""
    counter = counted(loop)
    if counter is None or not any(_fills(loop, s, counter) for s in stores(loop, counter)):
        return []
    own_computations(loop)
    found = [s for s in stores(loop, counter) if _fills(loop, s, counter)]
    for s in found:
        loop.body.replace(s.exchange, s.exchange.operands[0])
    take_apart(loop)
    caller = loop.parent
    assert caller is not None
    by_element = {n: s.exchange for s in found for n in s.updates}
    for read in list(loop.users):
        exchange = by_element.get(read.index)
        if exchange is None:
            continue
        users, was_root = list(read.users), read.is_root
        whole = caller.add("all-reduce", [read], read.shape, like=exchange, **exchange.attrs)
        read.replace_uses_with(whole, only=users)
        if was_root:
            caller.root = whole
    return sorted(by_element)


def _fills(loop: Instruction, s: Store, counter: Counter) -> bool:
    """Whether the rounds fill one array with results of the exchange, as they are but for their form."""
    if s.exchange.opcode != "all-reduce" or combiner(s.exchange.to_apply) is None or len(s.updates) != 1:
        return False
    (update,) = s.updates.values()
    value = update.operands[1]
    while value is not s.exchange:
        if not reindexes(value) or value.opcode == "broadcast":
            return False
        value = value.operands[0]
    if s.needed != (s.exchange.operands[0],):
        return False
    dims, part = update.shape.dims, update.operands[1].shape.dims
    cut = [d for d, (a, b) in enumerate(zip(dims, part, strict=True)) if a != b]
    if len(cut) != 1 or len(update.operands) != 2 + len(dims) or not part[cut[0]]:
        return False
    starts = _starts(loop, update.operands[2 + cut[0]], counter)
    if starts is None:
        return False
    length = part[cut[0]]
    begun = set(np.clip(starts.astype(np.int64), 0, dims[cut[0]] - length).tolist())
    return begun == set(range(0, dims[cut[0]], length)) and dims[cut[0]] % length == 0


def _starts(loop: Instruction, start: Instruction, counter: Counter) -> np.ndarray | None:
    """A start index in each round."""
    rounds = counter.start + np.arange(counter.trips) * counter.step

    def number(i: Instruction) -> np.ndarray | None:
        is_number = i.opcode == "get-tuple-element" and i.operands[0] is loop.body.parameters[0]
        return rounds.astype(i.shape.element_type.dtype) if is_number and i.index == counter.index else None

    return integers(start, number, counter.trips)
