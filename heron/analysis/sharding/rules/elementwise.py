"""Ops that work element by element: every dimension passes through. Scalar operands have no dimensions."""

from __future__ import annotations

from functools import lru_cache

from heron.analysis.sharding.rule import OpRule
from heron.analysis.sharding.rules.builder import RuleBuilder, array_dims
from heron.analysis.sharding.rules.registry import rule
from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait


@rule(*facts.having(Trait.ELEMENTWISE), "map", "add-dependency", "domain")
def same_dims(i: Instruction) -> OpRule | None:
    """All arrays have the same dimensions, or none; of a tuple each array has its own."""
    arrays = tuple(array_dims(i.shape))
    operands = tuple([dims for o in i.operands for dims in array_dims(o.shape)])
    if i.shape.is_tuple:
        return _apart(arrays) if operands == arrays else None
    return same(operands, arrays) if arrays else None


@lru_cache(maxsize=1024)
def _apart(arrays: tuple[tuple[int, ...], ...]) -> OpRule:
    b = RuleBuilder(arrays, arrays)
    for n, dims in enumerate(arrays):
        for d, size in enumerate(dims):
            where = [d if m == n else None for m in range(len(arrays))]
            b.add(size, where, where)
    return b.build()


@lru_cache(maxsize=1024)
def same(operands: tuple[tuple[int, ...], ...], results: tuple[tuple[int, ...], ...]) -> OpRule:
    """The rule of an op whose arrays all have the same dimensions, but for scalars."""
    return RuleBuilder(operands, results).same(results[0]).build()
