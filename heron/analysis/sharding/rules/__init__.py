"""The sharding rules of all ops, one file a family of ops; `rule_of` gives the rule of an instruction.

rule_of(dot)    # ([i, k], [k, j])->([i, j]) {i=8, j=16, k=32} reduction={k}
"""

from __future__ import annotations

from functools import lru_cache

from heron.analysis.sharding.rule import OpRule
from heron.analysis.sharding.rules import (  # noqa: F401 # pyright: ignore[reportUnusedImport]
    calls,
    collectives,
    convolution,
    dot,
    elementwise,
    gather,
    movement,
    reduction,
    rows,
    slicing,
    structure,
    window,
)
from heron.analysis.sharding.rules.registry import RULES, WITHOUT
from heron.hlo.ir.instruction import Instruction

__all__ = ["RULES", "WITHOUT", "rule_of"]


def rule_of(i: Instruction) -> OpRule | None:
    """The sharding rule of `i`; None for an op that has none: its arrays are whole, or its neighbours' edges decide.

    Equal rules are the same object.
    """
    make = RULES.get(i.opcode)
    if make is None:
        return None
    found = make(i)
    return None if found is None else _shared(found)


@lru_cache(maxsize=8192)
def _shared(rule: OpRule) -> OpRule:
    return rule
