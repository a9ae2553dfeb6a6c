"""Values that change nothing when combined: they may stand beyond an array's ends, and count on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron.analysis.values.splat import splat_value
from heron.evaluator import Evaluator, flatten
from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner

#: numbers on which a computation is tried
_SAMPLES = (-3, 0, 1, 2, 100)


def identities(p: Partitioner, i: Instruction, inits: list[Instruction]) -> list[Instruction] | None:
    """Neutral values for the results of a reduce-window: known for single ops, one for each result.

    They are `inits` themselves where these change nothing. None where no such values are known.
    """
    opcodes = facts.combiners(i.to_apply)
    if not opcodes:
        return inits if starts_are_neutral(i) else None
    types = [x.shape.element_type for x in inits]
    found = [facts.identity(opcode, t) for opcode, t in zip(opcodes, types, strict=True)]
    if any(e is None for e in found):
        return inits if starts_are_neutral(i) else None
    if all(splat_value(x) == e for x, e in zip(inits, found, strict=True)):
        return inits
    return [p.constant(e, t) for e, t in zip(found, types, strict=True)]


def starts_are_neutral(i: Instruction) -> bool:
    """Whether the initial values are constants that change neither themselves nor some numbers, first or second."""
    starts = i.operands[len(i.operands) // 2 :]
    if any(s.opcode != "constant" for s in starts):
        return False
    initial = [s.literal.array for s in starts]
    samples = [[np.asarray(number).astype(x.dtype) for x in initial] for number in _SAMPLES]
    ev = Evaluator()
    for values in (initial, *samples):
        for operands in ((*initial, *values), (*values, *initial)):
            if any(a != b for a, b in zip(flatten(ev.call(i.to_apply, *operands)), values, strict=True)):
                return False
    return True
