"""The question in which shardings an op is computed: all that the answer depends on, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from heron.analysis.sharding.rule import OpRule
from heron.analysis.sharding.rules import rule_of
from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo import facts
from heron.hlo.calls import markers
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from heron.records import dataclass


@dataclass(frozen=True)
class Asked:
    """All of an op that a choice depends on, shardings left out.

    Attributes:
        rule: its sharding rule.
        arrays: the dimensions of each array and the bytes of an element, operands first.
        is_product: whether it sums products.
        is_elementwise: whether it works element by element.
    """

    rule: OpRule
    arrays: tuple[tuple[tuple[int, ...], float], ...]
    is_product: bool
    is_elementwise: bool

    @staticmethod
    def of(i: Instruction, rule: OpRule | None = None) -> Asked | None:
        """That of an instruction, with another rule than its own where one is given; None without a rule."""
        rule = rule or rule_of(i)
        if rule is None:
            return None
        shapes = [s for shape in (*[o.shape for o in i.operands], i.shape) for s in _arrays(shape)]
        arrays = tuple([(s.dims, s.element_type.bits / 8) for s in shapes])
        return _asked(rule, arrays, facts.is_product(i), i.op.is_elementwise)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.rule, self.arrays))


#: one object for equal facts, which are compared for each question
_asked = lru_cache(1 << 14)(Asked)


class Question(NamedTuple):
    """All that a choice depends on: equal questions have one answer.

    `has`, `wants`: the shardings of operands and results, None for any; `groups`: operands that may stay partial sums
    together; `shared`: the atoms along which operands with other users are partial sums.
    """

    op: Asked
    mesh: AtomicMesh
    has: tuple[TensorSharding | None, ...]
    wants: tuple[TensorSharding | None, ...]
    groups: tuple[tuple[int, ...], ...]
    shared: tuple[frozenset[int], ...]
    moves: bool


def question(
    i: Instruction,
    asked: Asked,
    operands: Sequence[TensorSharding | None],
    results: Sequence[TensorSharding | None],
    mesh: AtomicMesh,
    moves: bool,
    keeps_sums: bool,
    scatters: bool = False,
) -> Question:
    """The question how `i` is computed; see `compute_shardings`. ``scatters``: whether ways are asked for that scatter
    partial sums which other ops need too: they gain where these take them so."""
    groups: tuple[tuple[int, ...], ...] = ()
    shared: tuple[frozenset[int], ...] = ()
    if any([s is not None and s.unreduced for s in operands]):
        groups = _linear_groups(i, operands) if keeps_sums else ()
        shared = _shared(i, operands) if scatters else ()
    has = tuple([s and s.close() for s in operands])
    wants = tuple([s and s.close() for s in results])
    return Question(asked, mesh, has, wants, groups, shared, moves)


def _arrays(shape: Shape) -> list[Shape]:
    return [shape] if shape.is_array else [s for _, s in shape.leaves() if s.is_array]


def _linear_groups(i: Instruction, operands: Sequence[TensorSharding | None]) -> tuple[tuple[int, ...], ...]:
    """Operands in which `i` is linear, those left out that are zero; none where a partial sum has other users, which
    would reduce it a second time."""
    if len(operands) != len(i.operands):
        return ()
    found: list[tuple[int, ...]] = []
    is_marker = i.opcode == "custom-call" and markers.is_identity(i)
    for group in [(0,)] if is_marker else facts.linear_groups(i):
        if not all(_is_finite(o) for n, o in enumerate(i.operands) if n not in group):
            continue
        partial = tuple(n for n in group if (s := operands[n]) is not None and s.unreduced)
        zero = all(is_splat(i.operands[n], 0) for n in group if n not in partial)
        if partial and zero and all(len(i.operands[n].users) == 1 for n in partial):
            found.append(partial)
    return tuple(found)


def _shared(i: Instruction, operands: Sequence[TensorSharding | None]) -> tuple[frozenset[int], ...]:
    """The atoms of partial sums that other ops need too, each once."""
    if len(operands) != len(i.operands):
        return ()
    pairs = zip(i.operands, operands, strict=True)
    return tuple(dict.fromkeys(s.unreduced for o, s in pairs if s is not None and s.unreduced and len(o.users) > 1))


def _is_finite(factor: Instruction) -> bool:
    """Whether no element is an infinity or a NaN: times that, summands of opposite signs give a NaN, and the sum may
    not."""
    t = factor.shape.element_type
    if not (t.is_float or t.is_complex):
        return True
    value = splat_value(factor)
    return value is not None and bool(np.isfinite(np.complex128(value)))
