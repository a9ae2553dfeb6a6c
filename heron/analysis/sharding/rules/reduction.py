"""Reductions of whole dimensions: kept dimensions pass through, reduced ones are combined."""

from __future__ import annotations

from functools import lru_cache

from heron.analysis.sharding.rule import FactorKind, OpRule
from heron.analysis.sharding.rules.builder import RuleBuilder
from heron.analysis.sharding.rules.registry import rule
from heron.hlo import facts
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction


@rule("reduce")
def reduce(i: Instruction) -> OpRule:
    """Any number of arrays, then as many initial values."""
    return _reduced(i.operands[0].shape.dims, len(i.operands) // 2, i.dimensions, reducer_of(i.to_apply))


@lru_cache(maxsize=1024)
def _reduced(dims: tuple[int, ...], count: int, gone: tuple[int, ...], reducer: str) -> OpRule:
    kept = tuple(size for d, size in enumerate(dims) if d not in gone)
    b = RuleBuilder([dims] * count + [()] * count, [kept] * count)
    at = 0
    for d, size in enumerate(dims):
        places = [d] * count + [None] * count
        if d in gone:
            b.add(size, places, None, FactorKind.REDUCTION, reducer=reducer)
        else:
            b.add(size, places, at)
            at += 1
    return b.build()


def reducer_of(c: Computation) -> str:
    """The opcode with which a computation combines values: one commutative op, the same for each of several pairs.

    "" for a general computation.
    """
    if c.root.opcode != "tuple":
        return facts.combiner(c) or ""
    count = len(c.parameters) // 2
    found: set[str] = set()
    for n, part in enumerate(c.root.operands):
        a, b = c.parameters[n], c.parameters[count + n]
        if not facts.is_combiner(part.op) or set(part.operands) != {a, b} or part.shape.bare is not a.shape.bare:
            return ""
        found.add(part.opcode)
    return found.pop() if len(found) == 1 else ""
