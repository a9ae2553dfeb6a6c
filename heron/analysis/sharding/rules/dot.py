"""Products: batch and free dimensions pass through, contracted ones are summed."""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from heron.analysis.sharding.rule import FactorKind, OpRule
from heron.analysis.sharding.rules.builder import RuleBuilder
from heron.analysis.sharding.rules.registry import rule
from heron.hlo.ir.instruction import Instruction
from heron.hlo.meaning.products import outer_dims

_WHOLE = FactorKind.NEED_REPLICATION


@rule("dot")
def dot(i: Instruction) -> OpRule:
    """Result: batch, free dimensions of lhs, free dimensions of rhs."""
    numbers = (i.lhs_batch_dims, i.lhs_contracting_dims, i.rhs_batch_dims, i.rhs_contracting_dims)
    return _product(i.operands[0].shape.dims, i.operands[1].shape.dims, i.shape.dims, numbers)


@lru_cache(maxsize=1024)
def _product(
    lhs: tuple[int, ...], rhs: tuple[int, ...], result: tuple[int, ...], numbers: tuple[tuple[int, ...], ...]
) -> OpRule:
    b = RuleBuilder((lhs, rhs), (result,))
    lhs_batch, lhs_contracted, rhs_batch, rhs_contracted = numbers
    at = 0
    for x, y in zip(lhs_batch, rhs_batch, strict=True):
        b.add(lhs[x], (x, y), at)
        at += 1
    for x in range(len(lhs)):
        if x not in lhs_batch and x not in lhs_contracted:
            b.add(lhs[x], (x, None), at)
            at += 1
    for y in range(len(rhs)):
        if y not in rhs_batch and y not in rhs_contracted:
            b.add(rhs[y], (None, y), at)
            at += 1
    for x, y in zip(lhs_contracted, rhs_contracted, strict=True):
        b.add(lhs[x], (x, y), None, FactorKind.REDUCTION, reducer="add")
    return b.build()


@rule("ragged-dot")
def ragged_dot(i: Instruction) -> OpRule:
    """As a dot; the ragged dimension and the groups are whole, for groups may begin anywhere."""
    b = RuleBuilder.of(i)
    lhs, rhs, sizes = b.operands
    ragged = i.lhs_ragged_dims[0]
    numbers = (i.lhs_batch_dims, i.lhs_contracting_dims, i.rhs_batch_dims, i.rhs_contracting_dims)
    outer = {d: n for n, d in enumerate(outer_dims(numbers, ragged)[: len(sizes) - 1])}
    group = i.rhs_group_dims[0] if i.rhs_group_dims else None
    at = 0
    if ragged in i.lhs_contracting_dims:
        b.add(sizes[-1], (None, None, len(sizes) - 1), 0, _WHOLE)
        at = 1
    elif group is not None:
        b.add(sizes[-1], (None, group, len(sizes) - 1), None, _WHOLE)

    def add(x: int, y: int | None, result: int | None, kind: FactorKind) -> None:
        is_summed = kind is FactorKind.REDUCTION
        kind = _WHOLE if x == ragged and x not in i.lhs_batch_dims else kind
        b.add(lhs[x], (x, y, outer.get(x)), result, kind, reducer="add" * (is_summed and kind is not _WHOLE))

    for x, y in zip(i.lhs_batch_dims, i.rhs_batch_dims, strict=True):
        add(x, y, at, FactorKind.PASS_THROUGH)
        at += 1
    for x in range(len(lhs)):
        if x not in i.lhs_batch_dims and x not in i.lhs_contracting_dims:
            add(x, None, at, FactorKind.PASS_THROUGH)
            at += 1
    for y in range(len(rhs)):
        if y not in i.rhs_batch_dims and y not in i.rhs_contracting_dims and y != group:
            b.add(rhs[y], (None, y, None), at)
            at += 1
    for x, y in zip(i.lhs_contracting_dims, i.rhs_contracting_dims, strict=True):
        add(x, y, None, FactorKind.REDUCTION)
    return b.build()


@rule("scaled-dot")
def scaled_dot(i: Instruction) -> OpRule:
    """As a dot; of a dimension with scales whole blocks alone can be split off."""
    b = RuleBuilder.of(i)
    lhs, rhs = b.operands[:2]
    at = 0
    for x, y in zip(i.lhs_batch_dims, i.rhs_batch_dims, strict=True):
        _blocks(b, x, y, at)
        at += 1
    for x in range(len(lhs)):
        if x not in i.lhs_batch_dims and x not in i.lhs_contracting_dims:
            _blocks(b, x, None, at)
            at += 1
    for y in range(len(rhs)):
        if y not in i.rhs_batch_dims and y not in i.rhs_contracting_dims:
            _blocks(b, None, y, at)
            at += 1
    for x, y in zip(i.lhs_contracting_dims, i.rhs_contracting_dims, strict=True):
        _blocks(b, x, y, None)
    return b.build()


def _blocks(b: RuleBuilder, x: int | None, y: int | None, result: int | None) -> None:
    """The blocks of lhs dimension `x` and rhs dimension `y` as one factor, what a block has as another."""
    places = [x, y, *(d if scale else None for d, scale in zip((x, y), b.operands[2:], strict=True))]
    sizes = [dims[d] for dims, d in zip(b.operands, places, strict=True) if d is not None]
    blocks = gcd(*sizes)
    kind = FactorKind.REDUCTION if result is None else FactorKind.PASS_THROUGH
    b.add(blocks, places, result, kind, reducer="add" * (result is None))
    if (rest := sizes[0] // blocks) > 1:
        b.add(rest, [x, y, None, None], result, _WHOLE)
    for n, d in enumerate(places):
        if n > 1 and d is not None and (more := b.operands[n][d] // blocks) > 1:
            b.add(more, [d if m == n else None for m in range(4)], None, _WHOLE)
