"""Slices at fixed places and at places known at run time."""

from __future__ import annotations

from heron.analysis.sharding.rule import FactorKind, OpRule
from heron.analysis.sharding.rules.builder import RuleBuilder
from heron.analysis.sharding.rules.registry import rule
from heron.hlo.ir.instruction import Instruction


@rule("slice")
def cut(i: Instruction) -> OpRule:
    """Along sliced dimensions elements move between neighbours."""
    x, y = i.operands[0].shape.dims, i.shape.dims
    return RuleBuilder.of(i).same(x, _where_cut(x, y, FactorKind.PERMUTATION)).build()


@rule("dynamic-slice")
def dynamic_slice(i: Instruction) -> OpRule:
    """Sliced dimensions must be whole, and nothing propagates along them: the operand's is not the result's."""
    x, y = i.operands[0].shape.dims, i.shape.dims
    b = RuleBuilder.of(i)
    for d, (size, kind) in enumerate(zip(x, _where_cut(x, y, FactorKind.NEED_REPLICATION), strict=True)):
        b.add(size, _first(b, d), d, kind, is_blocked=kind is not FactorKind.PASS_THROUGH)
    return b.build()


@rule("dynamic-update-slice")
def dynamic_update_slice(i: Instruction) -> OpRule:
    """Along an updated dimension the operand's parts take of the whole update what falls into them."""
    b = RuleBuilder.of(i)
    x, update = b.operands[:2]
    starts = [None] * (len(b.operands) - 2)
    for d, (size, part) in enumerate(zip(x, update, strict=True)):
        if size == part:
            b.add(size, (d, d, *starts), d)
        else:
            b.add(size, (d, None, *starts), d, is_positional=True)
            b.add(part, (None, d, *starts), None, FactorKind.NEED_REPLICATION)
    return b.build()


def _first(b: RuleBuilder, d: int) -> list[int | None]:
    return [d, *[None] * (len(b.operands) - 1)]


def _where_cut(x: tuple[int, ...], y: tuple[int, ...], kind: FactorKind) -> list[FactorKind]:
    return [FactorKind.PASS_THROUGH if a == b else kind for a, b in zip(x, y, strict=True)]
