"""Collectives of manual code: along axes that are not manual, exchanged dimensions are whole, others pass through."""

from __future__ import annotations

from heron.analysis.sharding.rule import FactorKind, OpRule
from heron.analysis.sharding.rules.builder import RuleBuilder
from heron.analysis.sharding.rules.registry import rule
from heron.hlo.ir.instruction import Instruction

_WHOLE = FactorKind.NEED_REPLICATION


@rule("all-reduce", "collective-broadcast", "collective-permute")
def whole_arrays(i: Instruction) -> OpRule | None:
    """Each result is like its operand."""
    return _each(i, ())


@rule("all-gather", "reduce-scatter", "all-to-all")
def along_dimension(i: Instruction) -> OpRule | None:
    """The exchanged dimension is whole, on both sides apart."""
    return _each(i, tuple(i.attrs.get("dimensions") or ()))


def _each(i: Instruction, exchanged: tuple[int, ...]) -> OpRule | None:
    """Arrays of the same dimensions share factors, others have their own. None for a permute into given memory."""
    b = RuleBuilder.of(i)
    if len(b.operands) != len(b.results):
        return None
    for shape in dict.fromkeys(b.operands):
        like = [dims == shape for dims in b.operands]
        passing = [d for d in range(len(shape)) if d not in exchanged]
        for d in passing:
            where = [d if here else None for here in like]
            b.add(shape[d], where, where)
        for d in exchanged:
            where = [d if here else None for here in like]
            b.add(shape[d], where, None, _WHOLE)
            b.add(b.results[like.index(True)][d], None, where, _WHOLE)
    return b.build()


@rule("ragged-all-to-all")
def ragged_all_to_all(i: Instruction) -> OpRule:
    """Rows are exchanged; what a row consists of passes through."""
    b = RuleBuilder.of(i)
    vectors = [None] * (len(b.operands) - 2)
    for d, size in enumerate(b.operands[1]):
        if d:
            b.add(size, (d, d, *vectors), d)
        else:
            b.add(b.operands[0][0], (0, None, *vectors), None, _WHOLE)
            b.add(size, (None, 0, *vectors), 0, _WHOLE)
    return b.build()
